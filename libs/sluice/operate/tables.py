"""Tables that are dropped or renamed, and the tables that depend on them.

Another name for a stored table that keeps its history and the positions of those that read it.

Positions name tables by id. So every table that reads the renamed one, or reflects its rows, gets a
commit without changed rows: its position with the new names. Its earlier positions are read by
these names, too. Then the folders are moved. Each step may run twice.
"""

import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from sluice.declare.meaning import definitions_before, meaning
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta import failures
from sluice.delta.failures import begun_at
from sluice.delta.log.opened import exists
from sluice.delta.log.position import Head, Position, head_as_found
from sluice.delta.places import lake_layout
from sluice.delta.places.failpoint import passing
from sluice.delta.places.folders import move, remove
from sluice.delta.places.lake_layout import LakeLayout, folders_of, layout, names_in, stored_tables
from sluice.delta.writing.commit import commit_position
from sluice.engine.plan import Node, nodes_of, only_looked_up
from sluice.errors import UsageError
from sluice.gate import counts
from sluice.language.names import FORGOTTEN, MARK, declared_id, internal, rename_id, unknown


def dependents(project: Project, table_id: str) -> list[str]:
    """Return the other stored tables that read a table or were built from it, by id.

    Tables not built yet don't count: the run that builds them first builds this table.
    """
    lake = layout(project)
    there = {declared_id(name) for name in stored_tables(lake)}
    reading = {t.id for t in project.graph.tables.values() if table_id in t.reads}
    built = {declared_id(name) for name in built_from(lake, table_id)}
    return sorted((reading & there | built) - {table_id})


def built_from(lake: LakeLayout, table_id: str) -> dict[str, Position]:
    """Return the other stored tables whose position names a table or its internal tables, by id."""
    found = {}
    for name in stored_tables(lake):
        if declared_id(name) == table_id:
            continue  # it may be broken, and dropped for that reason
        at = head_as_found(lake.uri(name))
        if at and at.position and table_id in map(declared_id, at.position.reads):
            found[name] = at.position
    return found


def fed_by(project: Project, table: Table) -> list[Table]:
    """Return a table, and all that hold rows made from its rows or looked up there, inputs first.

    Each follows the one before by its feed, except for those that `looks_up` names.
    """
    found = {table.id: table}
    for other in project.graph.tables.values():
        if other.id not in found and other.reads & found.keys():
            found[other.id] = other
    return list(found.values())


def dropped_from(lake: LakeLayout, ids: Collection[str]) -> list[str]:
    """Return the folders of dropped tables that are among those tables, or were made from them."""
    found = []
    for name in lake_layout.kept_folders(lake):
        heads = (head_as_found(uri) for uri in lake_layout.folders_in(lake, name) if exists(uri))
        read = {declared_id(i) for at in heads if at and at.position for i in at.position.reads}
        if name.rpartition("@")[0] in ids or read & {*ids}:
            found.append(name)
    return found


def looks_up(project: Project, table: Table, ids: Collection[str]) -> bool:
    """True if a table looks rows up in one of those tables without following its changes."""
    graph = project.graph
    return any({*only_looked_up(node, graph)} & {*ids} for node in nodes_of(table, graph))


@dataclass(frozen=True)
class Dropped:
    """One table that was removed; `kept_at` is empty if its files were deleted at once."""

    table: str
    kept_at: str
    until: datetime | None


def drop(project: Project, table_id: str, now: datetime, *, at_once: bool = False) -> list[Dropped]:
    """Drop a table and those kept beside it. Safe to repeat: another attempt finishes the first.

    Raises UsageError while another table depends on it, and if its files would keep subjects for a
    week that somebody has begun to forget.
    """
    if needed_by := dependents(project, table_id):
        raise UsageError(
            f"{table_id} can't be dropped, because other tables depend on it: "
            f"{', '.join(needed_by)}",
            hint="drop these first; or declare them without it, and run `sluice rebuild` for each",
        )
    lake = layout(project)
    if not at_once and begun_at(lake, table_id):
        raise UsageError(
            f"{table_id} can't be kept for a week: a `sluice forget` of it has not ended",
            hint="run exactly that command again, then this; or give --now, which keeps nothing",
        )
    target, folders = lake_layout.drop(lake, table_id, now)
    failures.clear(lake, table_id)
    counts.clear(lake, table_id)
    until = None if at_once else now + lake_layout.KEPT
    if at_once:
        remove(target)
    lake_layout.end(lake, table_id)
    pipeline = table_id.partition(".")[0]
    return [Dropped(f"{pipeline}.{f}", "" if at_once else f"{target}/{f}", until) for f in folders]


def found(project: Project, name: str) -> str:
    """Return the id of a table in the lake, declared or not, by its id or only its name."""
    if MARK in name:
        raise UsageError(
            f"{name} belongs to {declared_id(name)}, and is dropped with it",
            hint=f"name {declared_id(name)}",
        )
    lake = layout(project)
    known = sorted(names_in(lake) | {*lake_layout.begun_drops(lake)})
    meant = [i for i in known if name in (i, i.partition(".")[2])]
    if len(meant) > 1:
        raise UsageError(
            f"{name!r} names several tables: {', '.join(meant)}", hint="write <pipeline>.<table>"
        )
    if not meant:
        message, _, hint = unknown("table", name, known).partition("; ")
        raise UsageError(f"{message} in the lake {lake.root}", hint=hint)
    return meant[0]


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
    lake, graph = layout(project), project.graph
    nodes = {n.id: n for each in graph.tables.values() for n in nodes_of(each, graph)}
    done = []
    for name in sorted(stored_tables(lake)):
        at = head_as_found(lake.uri(name))
        if (
            at
            and at.position
            and (one := _commit_position(at, at.position, name, old, table, nodes))
        ):
            done.append(one)
    followed = [one for one in done if declared_id(one.table) != table.id or one.what == REBUILD]
    return [*_move(project, old, table), *followed]


def _check(project: Project, old: str, table: Table) -> None:
    lake, graph = layout(project), project.graph
    if old in graph.tables:
        raise UsageError(
            f"{old} is declared under that name",
            hint=f"write {table.name!r} in the files of the configuration first, where it is "
            "declared and wherever it is named; then run this again",
        )
    folders, subjects = folders_of(lake, old), internal(table.name, FORGOTTEN)
    is_left = subjects in folders_of(lake, table.id)
    if table.is_delivered and is_left and len(folders) > 1:  # else a killed rename has moved it
        raise UsageError(
            f"{old} can't be renamed: an earlier {table.id} has left subjects that were forgotten "
            f"({internal(table.id, FORGOTTEN)}), and would withhold rows of this one",
            hint="choose another name; or delete that folder of the lake, which ends the "
            "withholding",
        )
    twice = set(_targets(old, table, folders).values())
    if there := sorted(twice & {*folders_of(lake, table.id)}):
        raise UsageError(
            f"{old} can't be renamed: the lake has a table {table.id} already ({', '.join(there)})",
            hint=f"if it is not wanted, run `sluice drop {table.id}` first",
        )
    at = head_as_found(lake.uri(old)) if exists(lake.uri(old)) else None
    kind = at.position.meaning.get("kind", table.kind) if at and at.position else table.kind
    if kind != table.kind:
        raise UsageError(
            f"{old} is of kind {kind}, but {table.id} is declared with kind {table.kind}"
        )


def _commit_position(
    at: Head, position: Position, name: str, old: str, table: Table, nodes: dict[str, Node]
) -> Renamed | None:
    """Commit a position with the new names, by the new definition if nothing else differs.

    Returns None for a table that neither its position nor its definition ties to the old name.
    """
    named = rename_id(name, old, table.id)
    node, now = nodes.get(named), position.rename_table(old, table.id)
    is_same = node is None or position.definition == node.definition
    is_only_named = (
        node is not None
        and not is_same
        and position.definition in definitions_before(node.table, old, table.id)
    )
    is_named = old in map(declared_id, (*position.reads, *position.frontier))
    if not (is_only_named or is_named):
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
    counts.rename(lake, old, table.id)
    failures.rename(lake, old, table.id)
    subjects = internal("", FORGOTTEN)  # moved last but one
    for folder in sorted(folders, key=lambda f: (MARK not in f, f.endswith(subjects))):
        passing("renaming", folder)
        move(f"{lake.root}/{pipeline}/{folder}", f"{lake.root}/{table.pipeline}/{folders[folder]}")
        yield Renamed(f"{table.pipeline}.{folders[folder]}", MOVED)


def _targets(old: str, table: Table, folders: list[str]) -> dict[str, str]:
    name = old.partition(".")[2]
    return {folder: table.name + folder[len(name) :] for folder in folders}
