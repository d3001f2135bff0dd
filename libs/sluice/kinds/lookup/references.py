"""Rows of dimensions, and of views over dimensions, that a lookup joins to its facts."""

from collections.abc import Collection

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.delta.log.position import Pins
from sluice.delta.reading.spark_reads import snapshot
from sluice.engine.context import Context
from sluice.engine.query.operator import Operator, names
from sluice.engine.query.unstored import unstored_rows
from sluice.engine.query.validity import CURRENT
from sluice.kinds.lookup.broadcast import broadcast_of


def references_at(
    session: SparkSession,
    context: Context,
    operator: Operator,
    pins: Pins,
    known: Collection[str] = (),
) -> dict[str, DataFrame]:
    """Return all references but `known`, stored or not, at their pinned versions."""
    found = {}
    for table_id in (i for i in operator.references if i not in known):
        rows = dimension_at(session, context, table_id, pins)
        used = rows.select(*names(operator.columns(table_id)))
        is_broadcast = broadcast_of(context, table_id, pins).is_chosen
        found[table_id] = F.broadcast(used) if is_broadcast else used
    return found


def dimension_at(session: SparkSession, context: Context, table_id: str, pins: Pins) -> DataFrame:
    """Return a dimension, or a view over dimensions, at pinned versions."""
    table = context.graph.tables[table_id]
    if table.is_stored:
        uri, version = context.lake.uri(table_id), pins[table_id].version
        return snapshot(session, uri, version, context.limits)
    inputs = {i: _current_at(session, context, i, pins) for i in table.inputs}
    return unstored_rows(table, inputs)


def _current_at(session: SparkSession, context: Context, table_id: str, pins: Pins) -> DataFrame:
    """Return a dimension at its pinned version; of a history, only the current rows."""
    rows = dimension_at(session, context, table_id, pins)
    return rows.where(CURRENT) if context.graph.tables[table_id].spec.has_history else rows
