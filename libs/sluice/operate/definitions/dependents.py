"""Tables that depend on a table: declared over it, or built from it according to their commits."""

from collections.abc import Collection

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.opened import exists
from sluice.delta.log.position import Position, readable_head
from sluice.delta.places import dropped
from sluice.delta.places.inventory import stored
from sluice.delta.places.lake_layout import LakeLayout, layout
from sluice.engine.planning.nodes import nodes_of
from sluice.engine.planning.plan import only_looked_up
from sluice.language.internal import declared


def dependents(project: Project, table_id: str) -> list[str]:
    """Return the other stored tables that read a table or were built from it, by id.

    Tables not built yet don't count: the run that builds them first builds this table.
    """
    lake = layout(project)
    there = {declared(name) for name in stored(lake)}
    reading = {t.id for t in project.graph.tables.values() if _reads(t, table_id)}
    built = {declared(name) for name in built_from(lake, table_id)}
    return sorted((reading & there | built) - {table_id})


def built_from(lake: LakeLayout, table_id: str) -> dict[str, Position]:
    """Return the other stored tables whose position names a table or its internal tables, by id."""
    found = {}
    for name in stored(lake):
        if declared(name) == table_id:
            continue  # it may be broken, and dropped for that reason
        at = readable_head(lake.uri(name))
        if at and at.position and table_id in map(declared, at.position.reads):
            found[name] = at.position
    return found


def _reads(table: Table, table_id: str) -> bool:
    names = (reference.name for reference in table.spec.references())
    return table_id in {*table.inputs, *map(table.reference, names)}


def fed_by(project: Project, table: Table) -> list[Table]:
    """Return a table, and all that hold rows made from its rows or looked up there, inputs first.

    Each follows the one before by its feed, except for those that `looks_up` names.
    """
    found = {table.id: table}
    for other in project.graph.tables.values():
        if other.id not in found and any(_reads(other, name) for name in found):
            found[other.id] = other
    return list(found.values())


def dropped_from(lake: LakeLayout, ids: Collection[str]) -> list[str]:
    """Return the folders of dropped tables that are among those tables, or were made from them."""
    return [name for name in dropped.kept(lake) if _is_from(lake, name, ids)]


def _is_from(lake: LakeLayout, name: str, ids: Collection[str]) -> bool:
    heads = (readable_head(uri) for uri in dropped.folders_in(lake, name) if exists(uri))
    read = {declared(i) for at in heads if at and at.position for i in at.position.reads}
    return name.rpartition("@")[0] in ids or bool(read & {*ids})


def looks_up(project: Project, table: Table, ids: Collection[str]) -> bool:
    """True if a table looks rows up in one of those tables without following its changes."""
    graph = project.graph
    return any({*only_looked_up(node, graph)} & {*ids} for node in nodes_of(table, graph))
