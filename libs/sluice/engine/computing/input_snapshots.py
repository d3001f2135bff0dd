"""Rows for an operator: at pinned versions, with only the columns that it uses."""

from pyspark.sql import DataFrame, SparkSession

from sluice.delta.log.position import Pin, Pins
from sluice.delta.reading.spark_reads import snapshot
from sluice.engine.context import Context
from sluice.engine.query.operator import Operator, names


def snapshots_at(
    session: SparkSession, context: Context, operator: Operator, pins: Pins
) -> dict[str, DataFrame]:
    """Return each input at its pinned version."""
    return {i: snapshot_at(session, context, operator, i, pins[i]) for i in operator.inputs}


def snapshot_at(
    session: SparkSession, context: Context, operator: Operator, input_id: str, pin: Pin
) -> DataFrame:
    """Return one input at its pinned version."""
    rows = snapshot(session, context.lake.uri(input_id), pin.version, context.limits)
    columns = operator.columns(input_id)
    return rows.select(*names(columns)) if columns else rows
