"""Comparison of a project with another configuration: what a change of definitions would do.

It compares meanings, so formatting and names of files don't count. It reads the lake only to see
which tables can be extended, and changes nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sluice.declare.meaning.definition import fingerprint
from sluice.declare.meaning.differences import Meaning, differences
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import REBUILD, head_as_found
from sluice.delta.log.redefinition import meanings
from sluice.delta.places.lake_layout import layout
from sluice.engine.planning.nodes import nodes_of

NEW, GONE, EXTEND, UNTOUCHED = "new", "gone", "extend", "untouched"


@dataclass(frozen=True)
class Compared:
    """Outlook of one stored table: `next` is new, gone, rebuild, extend or untouched."""

    table: str
    next: str
    reason: str = ""


def compare(project: Project, other: Project) -> list[Compared]:
    """Return what would happen to each stored table of `other` if it became `project`.

    Inputs come first, and at the end the tables that only `other` declares.
    """
    tables = project.graph.tables.values()
    before = {n: m for t in other.graph.tables.values() for n, m in meanings(t).items()}
    moved, found = set[str](), list[Compared]()
    for table in tables:
        mine = list(_parts(project, table, before, moved))
        found += mine
        moved |= {table.id} if any(part.next != UNTOUCHED for part in mine) else set()
    left = before.keys() - {part.table for part in found}
    gone = (Compared(n, GONE, "no declaration names it any more") for n in before if n in left)
    return [*found, *gone]


def differing(project: Project, compared: list[Compared]) -> list[Table]:
    """Return the declared tables that are new or differ, inputs first."""
    names = {part.table for part in compared if part.next not in (UNTOUCHED, GONE)}
    return [t for t in project.graph.tables.values() if names & meanings(t).keys()]


def _parts(
    project: Project, table: Table, before: Mapping[str, Meaning], moved: set[str]
) -> Iterator[Compared]:
    """Yield the outlook of a table and of the internal ones behind it, in order."""
    above = [t.id for t in project.graph.ancestors(table.id) if t.id in moved]
    follows = f"follows {', '.join(above)}" if above else ""
    for name, now in meanings(table).items():
        was = before.get(name)
        if was is None:
            yield Compared(name, NEW)
        elif fingerprint(dict(was)) == fingerprint(dict(now)):
            yield Compared(name, UNTOUCHED, follows)
        else:
            yield Compared(name, _way(project, table, name, was), differences(was, now))


def _way(project: Project, table: Table, name: str, was: Meaning) -> str:
    """Return extend if the lake has the table by the other definition, and it can be extended."""
    lake = layout(project)
    at = head_as_found(lake.uri(name))
    if at is None or not at.position or at.position.definition != fingerprint(dict(was)):
        return REBUILD
    nodes = (node for node in nodes_of(table, project.graph) if node.id == name)
    return EXTEND if any(node.batch.extension(node, lake) for node in nodes) else REBUILD
