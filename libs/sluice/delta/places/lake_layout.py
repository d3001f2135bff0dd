"""The place of tables: `<lake>/<pipeline>/<table>`, internal ones beside them as `<table>__x`.

Also the tables in a lake, whether or not a declaration names them, and those that were dropped.

The number of the lake's format is in a small file at its root, so that no older release writes to
it. The number rises with a change that an older release would misread. A lake without the file has
format 1: it is older than the number, or has no table yet.

An earlier, longer query of a view may have left tables behind. They were internal tables of the
view, such as `<view>__3` or `<view>__state`. Nothing reads them.

Dropped tables are kept for a week at `<lake>/__dropped/<pipeline>.<table>@<time>/`. Moving a table
there removes it from the lake; moving it back restores it. Folders are moved one by one, so a note
names a drop that has begun: the next attempt continues in the same folder.
"""

import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import shorten

from deltalake.exceptions import DeltaError

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.places.delta_rs import folder_names, is_table
from sluice.delta.places.failpoint import passing
from sluice.delta.places.folders import SUFFIX, SmallFiles, move, remove
from sluice.errors import HistoryLost, NewerLake, SluiceError
from sluice.language.names import (
    DROPPED,
    ENVIRONMENTS,
    FORGOTTEN,
    MARK,
    NOTES,
    PREVIEWS,
    QUALITY,
    REBUILT,
    STATE,
    declared_id,
    internal,
)


@dataclass(frozen=True)
class LakeLayout:
    """The folders of one lake. `root` is a local path or an object-store URI."""

    root: str

    def uri(self, table_id: str, suffix: str = "") -> str:
        """Return the URI of `pipeline.table`, or of its internal table `__suffix`."""
        pipeline, table = table_id.split(".", 1)
        return f"{self.root}/{pipeline}/{internal(table, suffix) if suffix else table}"

    @property
    def quality_uri(self) -> str:
        """Folder of quality results and reports."""
        return f"{self.root}/{QUALITY}"

    @property
    def counts_uri(self) -> str:
        """Folder of what was counted in each batch."""
        return f"{self.quality_uri}/facts"


def layout(project: Project) -> LakeLayout:
    """Return the layout of the project's lake; a relative root starts at the project's folder.

    Raises NewerLake if a newer release has written the lake in another format.
    """
    if "://" in project.lake:
        root = project.lake.rstrip("/")
    else:
        root = str((Path(project.root) / project.lake).resolve())
    check_format(root)
    return LakeLayout(root)


def table_at(uri: str) -> str:
    """Return the id of the declared table to which the table at a URI belongs."""
    pipeline, table = uri.rstrip("/").split("/")[-2:]
    return f"{pipeline}.{declared_id(table)}"


def moved_away(uri: str) -> str:
    """Return the repair for a table that can't be fixed in place."""
    return f"restore {uri} from a backup, or move it away and run `sluice rebuild {table_at(uri)}`"


class DamagedLog(HistoryLost, DeltaError):
    """A table's log that can't be read."""

    def __init__(self, uri: str, why: object) -> None:
        name, said = ".".join(uri.rstrip("/").split("/")[-2:]), str(why).partition("\n")[0]
        message = f"the log of {name} can't be read: {shorten(said, 160, placeholder=' …')}"
        super().__init__(message, hint=moved_away(uri))


class MissingFiles(HistoryLost):
    """A table whose newest version has lost data files."""

    def __init__(self, uri: str, version: int, paths: Sequence[str]) -> None:
        name, more = ".".join(uri.rstrip("/").split("/")[-2:]), len(paths) - 1
        others = f", and {more} more" if more else ""
        message = f"version {version} of {name} has lost a data file: {paths[0]}{others}"
        super().__init__(message, hint=moved_away(uri))


FORMAT = 1
FILE = "__format"
ASKED_AGAIN = 10.0  # seconds for which a process relies on an answer
_checked: dict[str, float] = {}
INSIDE = re.compile(f"/(?:{ENVIRONMENTS}|{PREVIEWS}|{REBUILT})/")


def check_format(lake: str) -> None:
    """Raise NewerLake if the lake's format is newer than this release. A server asks repeatedly.

    A lake that can't be read is asked again: what reads it next names the reason.
    """
    whole = _whole_lake(lake)
    if time.monotonic() < _checked.get(whole, 0.0):
        return
    try:
        content = SmallFiles(whole).read(FILE)
    except OSError:
        return
    found = FORMAT if content is None else _number(content, whole)
    if found > FORMAT:
        raise NewerLake(
            f"the lake {whole} has format {found}; this release of Sluice reads formats up to "
            f"{FORMAT}",
            hint="install the release that wrote it, or a newer one, wherever this lake is used; "
            "nothing was changed",
        )
    _checked[whole] = time.monotonic() + ASKED_AGAIN


def _number(content: bytes, lake: str) -> int:
    try:
        return int(json.loads(content)["format"])
    except (ValueError, TypeError, LookupError):
        raise SluiceError(
            f"{lake}/{FILE}{SUFFIX} does not say the lake's format: {content[:80]!r}",
            hint=f'write {{"format": {FORMAT}}} there if this release wrote the lake; nothing was '
            "changed",
        ) from None


def note_format(table_uri: str) -> None:
    """Note the format of the lake in which a table is about to be created, if it has no note.

    A preview's tables leave no note.
    """
    if f"/{PREVIEWS}/" in table_uri:
        return
    notes = SmallFiles(_whole_lake(table_uri.rstrip("/").rsplit("/", 2)[0]))
    if notes.read(FILE) is None:
        notes.write(FILE, json.dumps({"format": FORMAT}).encode())


def _whole_lake(lake: str) -> str:
    """Return the lake in which this one is an environment or a preview; else itself."""
    return INSIDE.split(lake)[0]


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
