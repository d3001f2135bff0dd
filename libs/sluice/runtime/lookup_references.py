"""The rows of dimensions, and of views over dimensions, that a lookup joins its facts to."""

from collections.abc import Collection, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.operators.dimension import CURRENT, resolve
from sluice.operators.operator import Operator, names
from sluice.runtime.context import Context
from sluice.runtime.lookup_broadcast import broadcast_of
from sluice.specs.dimension import Dimension, DimensionView
from sluice.storage.position import Pin
from sluice.storage.table import snapshot

Pins = Mapping[str, Pin]


def references_at(
    session: SparkSession,
    context: Context,
    operator: Operator,
    pins: Pins,
    known: Collection[str] = (),
) -> dict[str, DataFrame]:
    """Each reference as of its pinned version, dimension views resolved; but not those `known`."""
    found = {}
    for table_id in (i for i in operator.references if i not in known):
        rows = dimension_at(session, context, table_id, pins)
        used = rows.select(*names(operator.columns(table_id)))
        is_broadcast = broadcast_of(context, table_id, pins).is_chosen
        found[table_id] = F.broadcast(used) if is_broadcast else used
    return found


def dimension_at(session: SparkSession, context: Context, table_id: str, pins: Pins) -> DataFrame:
    """A dimension, or a view over dimensions, at pinned versions."""
    table = context.graph.tables[table_id]
    if not isinstance(table.spec, DimensionView):
        uri, version = context.lake.uri(table_id), pins[table_id].version
        return snapshot(session, uri, version, context.limits)
    joined = {
        join.dimension: _current_at(session, context, input_id, pins)
        for join, input_id in zip(table.spec.join, table.inputs, strict=True)
    }
    return resolve(table.spec, joined)


def _current_at(session: SparkSession, context: Context, table_id: str, pins: Pins) -> DataFrame:
    """A dimension at its pinned version; of a history, the rows that stand."""
    rows, spec = dimension_at(session, context, table_id, pins), context.graph.tables[table_id].spec
    return rows.where(CURRENT) if isinstance(spec, Dimension) and spec.history else rows
