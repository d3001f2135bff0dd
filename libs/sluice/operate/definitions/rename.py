"""Another name for a stored table that keeps its history and the positions of those that read it.

Positions name tables by id. So every table that reads the renamed one, or reflects its rows, gets a
commit without changed rows: its position with the new names. Its earlier positions are read by
these names, too. Then the folders are moved. Each step may run twice.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sluice.declare.meaning.definition import meaning
from sluice.declare.meaning.renamed import definitions_before
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.opened import exists
from sluice.delta.log.position import Head, Position, readable_head
from sluice.delta.notes import failures
from sluice.delta.places.failpoint import passing
from sluice.delta.places.folders import move
from sluice.delta.places.inventory import folders_of, stored
from sluice.delta.places.lake_layout import layout
from sluice.delta.writing.commit import commit_position
from sluice.engine.planning.node import Node
from sluice.engine.planning.nodes import nodes_of
from sluice.errors import UsageError
from sluice.gate.counting import batch_counts
from sluice.language.internal import FORGOTTEN, MARK, declared, internal, renamed

MOVED, FOLLOWS, REBUILD = "moved", "follows", "rebuild"


@dataclass(frozen=True)
class Renamed:
    """One table of a rename, and its `version` if it got a commit.

    `what`: it moved to the new name, follows the table by it, or needs a rebuild to do so.
    """

    table: str
    what: str
    version: int | None = None


def rename(project: Project, old: str, table: Table) -> list[Renamed]:
    """Rename the stored table `old` to `table`, and return all affected tables.

    Safe to repeat: another attempt finishes the first. Raises UsageError if both are there.
    """
    _check(project, old, table)
    lake, nodes = layout(project), _nodes(project)
    done = []
    for name in sorted(stored(lake)):
        at = readable_head(lake.uri(name))
        if at and at.position and (one := _followed(at, at.position, name, old, table, nodes)):
            done.append(one)
    followed = [one for one in done if declared(one.table) != table.id or one.what == REBUILD]
    return [*_move(project, old, table), *followed]


def _check(project: Project, old: str, table: Table) -> None:
    lake, graph = layout(project), project.graph
    if old in graph.tables:
        raise UsageError(
            f"{old} is declared under that name",
            hint=f"write {table.name!r} in the files of the configuration first, where it is "
            "declared and wherever it is named; then run this again",
        )
    if _leads_to_forgotten(project, old, table):
        raise UsageError(
            f"{old} can't be renamed: an earlier {table.id} has left subjects that were forgotten "
            f"({internal(table.id, FORGOTTEN)}), and would withhold rows of this one",
            hint="choose another name; or delete that folder of the lake, which ends the "
            "withholding",
        )
    twice = set(_targets(old, table, folders_of(lake, old)).values())
    if there := sorted(twice & {*folders_of(lake, table.id)}):
        raise UsageError(
            f"{old} can't be renamed: the lake has a table {table.id} already ({', '.join(there)})",
            hint=f"if it is not wanted, run `sluice drop {table.id}` first",
        )
    at = readable_head(lake.uri(old)) if exists(lake.uri(old)) else None
    kind = at.position.meaning.get("kind", table.kind) if at and at.position else table.kind
    if kind != table.kind:
        raise UsageError(
            f"{old} is of kind {kind}, but {table.id} is declared with kind {table.kind}"
        )


def _leads_to_forgotten(project: Project, old: str, table: Table) -> bool:
    """True if a dropped table of the new name has left its forgotten subjects.

    A killed rename has moved such a folder only if the table itself alone is left to move.
    """
    lake = layout(project)
    is_there = internal(table.name, FORGOTTEN) in folders_of(lake, table.id)
    return table.is_delivered and is_there and len(folders_of(lake, old)) > 1


def _nodes(project: Project) -> dict[str, Node]:
    graph = project.graph
    return {n.id: n for table in graph.tables.values() for n in nodes_of(table, graph)}


def _names(position: Position, old: str) -> bool:
    return old in map(declared, (*position.reads, *position.frontier))


def _followed(
    at: Head, position: Position, name: str, old: str, table: Table, nodes: dict[str, Node]
) -> Renamed | None:
    """Commit a position with the new names, by the new definition if nothing else differs.

    Returns None for a table that neither its position nor its definition ties to the old name.
    """
    named = renamed(name, old, table.id)
    node, now = nodes.get(named), position.renamed(old, table.id)
    is_same = node is None or position.definition == node.definition
    is_only_named = (
        node is not None
        and not is_same
        and position.definition in definitions_before(node.table, old, table.id)
    )
    if not (is_only_named or _names(position, old)):
        return None
    if node and is_only_named:
        meant = meaning(node.table)
        now = replace(now, definition=node.definition, parts=node.parts, meaning=meant)
    now = replace(now, batch=at.next_batch, attempt=uuid.uuid4().hex)
    passing("renaming", name)
    done = commit_position(at, now)
    what = FOLLOWS if is_same or is_only_named else REBUILD
    return Renamed(named, what, done.version)


def _move(project: Project, old: str, table: Table) -> Iterator[Renamed]:
    """Move the folders, the table's own last: while it exists, the rename is unfinished."""
    lake, pipeline = layout(project), old.partition(".")[0]
    folders = _targets(old, table, folders_of(lake, old))
    batch_counts.rename(lake, old, table.id)
    failures.rename(lake, old, table.id)
    for folder in sorted(folders, key=_lateness):
        passing("renaming", folder)
        move(f"{lake.root}/{pipeline}/{folder}", f"{lake.root}/{table.pipeline}/{folders[folder]}")
        yield Renamed(f"{table.pipeline}.{folders[folder]}", MOVED)


def _lateness(folder: str) -> tuple[bool, bool]:
    """Return the place of a folder in the order: subjects that were forgotten, then the table."""
    return MARK not in folder, folder.endswith(internal("", FORGOTTEN))


def _targets(old: str, table: Table, folders: list[str]) -> dict[str, str]:
    name = old.partition(".")[2]
    return {folder: table.name + folder[len(name) :] for folder in folders}
