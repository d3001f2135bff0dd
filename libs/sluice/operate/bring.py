"""Tables whose definition differs from the lake's, and the tables that depend on them.

They are rebuilt, new views are built, and the views over them follow. An environment takes this
before its ordinary steps, and a promotion takes it in the lake.
"""

from collections.abc import Iterable

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.continuity import redefinitions
from sluice.delta.log.opened import exists
from sluice.delta.log.position import head_as_found
from sluice.delta.places.lake_layout import layout
from sluice.engine.advance import Run, advance
from sluice.engine.batch_report import BatchReport
from sluice.errors import SluiceError
from sluice.operate.definitions.rebuild import Computed, rebuild, take_over
from sluice.operate.preview import downstream
from sluice.read.pending import pending
from sluice.spark.session import Spark


def redefined_parts(project: Project, table: Table) -> dict[str, str]:
    """Return the differences by stored table: the table itself, and its internal tables."""
    lake = layout(project)
    return redefinitions(table, lambda name: head_as_found(lake.uri(name)))


def to_rebuild(project: Project) -> list[Table]:
    """Return the tables that were filled by other definitions, inputs first."""
    return [t for t in project.graph.tables.values() if redefined_parts(project, t)]


def to_bring(project: Project) -> list[Table]:
    """Return the tables that differ, views that are new or behind, and all views over them.

    Inputs come first. Views also lag after a process that updated them was killed.
    """
    graph = project.graph
    every = graph.tables.values()
    differ = [t for t in every if redefined_parts(project, t) or _is_behind(project, t)]
    ids = {table.id for table in (*differ, *downstream(project, differ))}
    return [table for table in graph.tables.values() if table.id in ids]


def _is_behind(project: Project, table: Table) -> bool:
    """True if a view is not built, or not up to its inputs; false if nobody can know."""
    if not (table.is_view and table.is_stored):
        return False
    try:
        return not exists(layout(project).uri(table.id)) or bool(pending(project, table))
    except SluiceError:
        return False


def bring(
    spark: Spark, project: Project, table: Table, run: Run, computed: Computed | None = None
) -> Iterable[BatchReport]:
    """Rebuild a table that another definition filled; bring any other view up to its inputs.

    `computed`: an environment whose rows are taken over if they are the result.
    """
    if redefined_parts(project, table):
        return rebuild(spark, project, table, run, computed=computed)
    if not table.is_view:
        return ()
    if computed:
        return take_over(spark, project, table, run, computed)
    return advance(spark, project, table, run)


def brought(spark: Spark, project: Project, table: Table, run: Run) -> Iterable[BatchReport]:
    """Rebuild a table before its step in an environment; the lake itself asks for that."""
    if project.environment and redefined_parts(project, table):
        return rebuild(spark, project, table, run)
    return ()


def bring_up(spark: Spark, project: Project, table: Table, run: Run) -> tuple[BatchReport, ...]:
    """Bring a view up to its inputs; in an environment, by its current definition."""
    first = brought(spark, project, table, run)
    return (*first, *advance(spark, project, table, run))
