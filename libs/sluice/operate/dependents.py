"""Tables that depend on a table: declared over it, or built from it by what their commits say."""

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import Position, readable_head
from sluice.delta.places.inventory import stored
from sluice.delta.places.lake import LakeLayout, layout
from sluice.language.internal import declared


def dependents(project: Project, table_id: str) -> list[str]:
    """Return the other tables that read a table or were built from it, by id."""
    reading = {t.id for t in project.graph.tables.values() if _reads(t, table_id)}
    built = {declared(name) for name in built_from(layout(project), table_id)}
    return sorted((reading | built) - {table_id})


def built_from(lake: LakeLayout, table_id: str) -> dict[str, Position]:
    """Return the other stored tables whose position names a table or one kept beside it, by id."""
    found = {}
    for name in stored(lake):
        if declared(name) == table_id:
            continue  # it may be broken, and be dropped for that
        at = readable_head(lake.uri(name))
        if at and at.position and table_id in map(declared, at.position.reads):
            found[name] = at.position
    return found


def _reads(table: Table, table_id: str) -> bool:
    names = (reference.name for reference in table.spec.references())
    return table_id in {*table.inputs, *map(table.reference, names)}
