"""Tables whose definition has changed since they were built."""

from typing import Any

from sluice.declare.meaning.definition import meaning, meaning_of_deliveries
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head_as_found
from sluice.delta.log.redefinition import redefined
from sluice.delta.places.lake_layout import layout
from sluice.engine.planning.nodes import nodes_of
from sluice.engine.planning.plan import replaced_by_build


def meanings(project: Project, table: Table) -> dict[str, dict[str, Any]]:
    """Return the definition of each stored table behind a declared one, in order."""
    found = {table.delivered_to: meaning_of_deliveries(table)} if table.is_delivered else {}
    return found | {node.id: meaning(node.table) for node in nodes_of(table, project.graph)}


def redefined_parts(project: Project, table: Table) -> dict[str, str]:
    """Return the differences by stored table: the table itself, and its internal tables."""
    lake = layout(project)
    nodes = {node.id: node for node in nodes_of(table, project.graph)}
    found = {}
    for name, now in meanings(project, table).items():
        before = head_as_found(lake.uri(name))
        if name not in nodes or not replaced_by_build(nodes[name], lake, before):
            found[name] = redefined(before, now)
    return {name: what for name, what in found.items() if what}


def to_rebuild(project: Project) -> list[Table]:
    """Return the tables that were filled by other definitions, inputs first."""
    return [t for t in project.graph.tables.values() if redefined_parts(project, t)]
