"""The rows that an operator reads: at pinned versions, only the columns that it uses."""

from collections.abc import Collection, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.operators.dimension import CURRENT, resolve
from sluice.operators.operator import Operator, names
from sluice.runtime.broadcast import broadcast_of
from sluice.runtime.plan import BatchPlan
from sluice.specs.dimension import Dimension, DimensionView
from sluice.specs.project import Project
from sluice.storage.lake import layout
from sluice.storage.position import Pin
from sluice.storage.table import snapshot


def snapshots_at(
    session: SparkSession, project: Project, operator: Operator, pins: Mapping[str, Pin]
) -> dict[str, DataFrame]:
    """Each input as of its pinned version."""
    lake = layout(project)
    found = {}
    for input_id in operator.inputs:
        rows = snapshot(session, lake.uri(input_id), pins[input_id].version, project.limits)
        columns = operator.columns(input_id)
        found[input_id] = rows.select(*names(columns)) if columns else rows
    return found


def references_at(
    session: SparkSession,
    project: Project,
    operator: Operator,
    plan: BatchPlan,
    known: Collection[str] = (),
) -> dict[str, DataFrame]:
    """Each reference as of its pinned version, dimension views resolved; but not those `known`."""
    pins = {**plan.pins, **plan.references}
    found = {}
    for table_id in (i for i in operator.references if i not in known):
        rows = dimension_at(session, project, table_id, pins)
        used = rows.select(*names(operator.columns(table_id)))
        is_broadcast = broadcast_of(project, table_id, pins).is_chosen
        found[table_id] = F.broadcast(used) if is_broadcast else used
    return found


def dimension_at(
    session: SparkSession, project: Project, table_id: str, pins: Mapping[str, Pin]
) -> DataFrame:
    """A dimension, or a view over dimensions, at pinned versions."""
    table = project.graph.tables[table_id]
    if not isinstance(table.spec, DimensionView):
        uri, version = layout(project).uri(table_id), pins[table_id].version
        return snapshot(session, uri, version, project.limits)
    joined = {
        join.dimension: _current_at(session, project, input_id, pins)
        for join, input_id in zip(table.spec.join, table.inputs, strict=True)
    }
    return resolve(table.spec, joined)


def _current_at(
    session: SparkSession, project: Project, table_id: str, pins: Mapping[str, Pin]
) -> DataFrame:
    """As `dimension_at`; of a history the rows that stand."""
    rows, spec = dimension_at(session, project, table_id, pins), project.graph.tables[table_id].spec
    return rows.where(CURRENT) if isinstance(spec, Dimension) and spec.history else rows
