"""Rows for an operator: at pinned versions, with only the columns that it uses."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from sluice.delta.log.position import Pin
from sluice.delta.reading.table import snapshot
from sluice.engine.context import Context
from sluice.engine.query.operator import Operator, names


def snapshots_at(
    session: SparkSession, context: Context, operator: Operator, pins: Mapping[str, Pin]
) -> dict[str, DataFrame]:
    """Return each input at its pinned version."""
    found = {}
    for input_id in operator.inputs:
        rows = snapshot(session, context.lake.uri(input_id), pins[input_id].version, context.limits)
        columns = operator.columns(input_id)
        found[input_id] = rows.select(*names(columns)) if columns else rows
    return found
