"""Tables whose definition has changed since they were built."""

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head_as_found
from sluice.delta.log.redefinition import redefinitions
from sluice.delta.places.lake_layout import layout


def redefined_parts(project: Project, table: Table) -> dict[str, str]:
    """Return the differences by stored table: the table itself, and its internal tables."""
    lake = layout(project)
    return redefinitions(table, lambda name: head_as_found(lake.uri(name)))


def to_rebuild(project: Project) -> list[Table]:
    """Return the tables that were filled by other definitions, inputs first."""
    return [t for t in project.graph.tables.values() if redefined_parts(project, t)]
