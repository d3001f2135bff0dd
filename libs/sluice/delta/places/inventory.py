"""Tables in a lake, whether or not a declaration names them, and tables that were dropped.

An earlier, longer query of a view may have left tables behind. They were internal tables of the
view, such as `<view>__3` or `<view>__state`. Nothing reads them.

Dropped tables are kept for a week at `<lake>/__dropped/<pipeline>.<table>@<time>/`. Moving a table
there removes it from the lake; moving it back restores it. Folders are moved one by one, so a note
names a drop that has begun: the next attempt continues in the same folder.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.places.delta_rs import folder_names, is_table
from sluice.delta.places.failpoint import passing
from sluice.delta.places.folders import SmallFiles, move, remove
from sluice.delta.places.lake_layout import LakeLayout, layout
from sluice.language.names import DROPPED, FORGOTTEN, MARK, NOTES, STATE, declared_id, internal

HIDDEN = ("_", ".")  # a folder with this prefix is not a pipeline
PART = re.compile(rf"(.+?){MARK}(?:{STATE}|\d+(?:{MARK}.*)?)")
LEFT_BEHIND = "an earlier query of {} created it, and nothing reads it any more"
REPAIR = "`sluice maintain {}` removes it"
KEPT = timedelta(days=7)
TIME = "%Y%m%dT%H%M%SZ"


def undeclared_tables(project: Project) -> list[str]:
    """Return the tables in the project's lake that none of its declarations names, by id."""
    return sorted(names_in(layout(project)) - project.graph.tables.keys())


def names_in(lake: LakeLayout) -> set[str]:
    """Return the lake's tables, by id, without those that have only notes of forgotten subjects.

    Dropping a table leaves these notes.
    """
    notes = internal("", FORGOTTEN)
    return {
        declared_id(table_id) for table_id in stored_tables(lake) if not table_id.endswith(notes)
    }


def leftovers(project: Project, tables: Iterable[Table]) -> dict[str, Table]:
    """Return the tables that these views no longer use, by id."""
    views = {table.id: table for table in tables if table.is_view}
    if not views:
        return {}
    found: dict[str, Table] = {}
    for table_id in sorted(stored_tables(layout(project))):
        part = PART.fullmatch(table_id)
        view = views.get(part[1]) if part else None
        if view and table_id not in made_of(view):
            found[table_id] = view
    return found


def made_of(view: Table) -> dict[str, Table]:
    """Return the stored tables that keep a view, states first, each with the part that it keeps."""
    found: dict[str, Table] = {}
    for part in view.parts or (view,):
        if part.spec.HAS_STATE:
            found[internal(part.id, STATE)] = part
        found[part.id] = part
    return found


def stored_tables(lake: LakeLayout) -> Iterator[str]:
    """Yield every Delta table of the lake, internal ones too, as `pipeline.table`."""
    for pipeline in _folders(lake.root):
        for table in _folders(f"{lake.root}/{pipeline}"):
            if is_table(f"{lake.root}/{pipeline}/{table}"):
                yield f"{pipeline}.{table}"


def folders_of(lake: LakeLayout, table_id: str) -> list[str]:
    """Return the names of the folders of a table and of its internal tables."""
    pipeline, _, table = lake.uri(table_id).rpartition("/")
    return [name for name in _folders(pipeline) if declared_id(name) == table]


def _folders(uri: str) -> list[str]:
    return [name for name in folder_names(uri) if not name.startswith(HIDDEN)]


def begun_drops(lake: LakeLayout) -> list[str]:
    """Return the tables whose drop began and did not end, by id."""
    return _notes(lake).names()


def drop(lake: LakeLayout, table_id: str, now: datetime) -> tuple[str, list[str]]:
    """Move a table with its internal tables; return the new place, and the names of its folders.

    Notes of deliveries go first. A source that has lost only these reads its files again. Notes of
    forgotten subjects stay, so that no later delivery restores their rows.
    """
    name = (_notes(lake).read(table_id) or b"").decode() or f"{table_id}@{now:{TIME}}"
    _notes(lake).write(table_id, name.encode())
    target, (pipeline, _, table) = f"{lake.root}/{DROPPED}/{name}", table_id.partition(".")
    going = {*folders_of(lake, table_id)} - {internal(table, FORGOTTEN)}
    notes = [f for f in sorted(going) if f in {internal(declared_id(f), note) for note in NOTES}]
    for folder in (*notes, *sorted(going - {*notes})):
        passing("dropping", folder)
        move(f"{lake.root}/{pipeline}/{folder}", f"{target}/{folder}")
    passing("dropped", table_id)
    return target, folder_names(target)


def end(lake: LakeLayout, table_id: str) -> None:
    """Note that the drop of a table is complete."""
    _notes(lake).delete(table_id)


def expire(lake: LakeLayout, now: datetime) -> list[str]:
    """Delete what was dropped a week ago, and return the tables by id."""
    expired = []
    for name in kept_folders(lake):
        table_id, _, text = name.rpartition("@")
        if table_id and datetime.strptime(text, TIME).replace(tzinfo=UTC) + KEPT <= now:
            remove(f"{lake.root}/{DROPPED}/{name}")
            expired.append(table_id)
    return expired


def kept_folders(lake: LakeLayout) -> list[str]:
    """Return the names of the folders of dropped tables, each `pipeline.table@time`."""
    return folder_names(f"{lake.root}/{DROPPED}")


def folders_in(lake: LakeLayout, name: str) -> list[str]:
    """Return the places of a dropped table and of its internal tables."""
    root = f"{lake.root}/{DROPPED}/{name}"
    return [f"{root}/{folder}" for folder in folder_names(root)]


def _notes(lake: LakeLayout) -> SmallFiles:
    return SmallFiles(f"{lake.root}/{DROPPED}")
