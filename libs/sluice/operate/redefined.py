"""Tables that the configuration defines otherwise than it did when they were filled."""

from sluice.declare.definition import meaning, meaning_of_deliveries
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head_as_found
from sluice.delta.places.lake import layout
from sluice.engine.planning.nodes import nodes_of
from sluice.engine.planning.plan import replaced_by_build
from sluice.engine.planning.redefinition import redefined
from sluice.sources.delivery import stored_as
from sluice.sources.spec import Source


def redefined_parts(project: Project, table: Table) -> dict[str, str]:
    """Return what differs, by stored table: the table's own, and the internal ones behind it."""
    lake = layout(project)
    found = {}
    for node in nodes_of(table, project.graph):
        before = head_as_found(lake.uri(node.id))
        if not replaced_by_build(node, lake, before):
            found[node.id] = redefined(before, meaning(node.table))
    if table.is_dimension:
        found[table.id] = redefined(head_as_found(lake.uri(table.id)), meaning(table))
    if isinstance(table.spec, Source):
        name, delivered = stored_as(table, table.spec), meaning_of_deliveries(table)
        found[name] = redefined(head_as_found(lake.uri(name)), delivered)
    return {name: what for name, what in found.items() if what}


def to_rebuild(project: Project) -> list[Table]:
    """Return the tables that were filled by other definitions, inputs first."""
    return [t for t in project.graph.tables.values() if redefined_parts(project, t)]
