"""Source of a dimension as found before a load: its files, and those of them to read.

Only listings and logs are read; no Spark is started. A snapshot is read whole. In a log of changes,
the files that arrived since the last load are read. All files are read if one that was read before
has changed or is missing, or if it is unknown which were read. This is necessary because replaced
rows are not kept.

Files of a snapshot share one note, a fingerprint of their listing. Files of a log are noted one by
one, so that the next load can distinguish new files from those already read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from sluice.declare.declared import FILES
from sluice.declare.meaning import definition
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta import intervals
from sluice.delta.log.files import active_files
from sluice.delta.log.position import Head, head, head_as_found
from sluice.delta.places.delta_rs import is_table, open_table
from sluice.delta.places.folders import LandedFile
from sluice.delta.places.lake_layout import layout
from sluice.delta.reading import landing
from sluice.delta.reading.landing import fingerprint
from sluice.dimensions import Dimension
from sluice.errors import UsageError
from sluice.language.interval import Interval
from sluice.language.names import INTERVALS, STATE, internal

WHOLE = Interval(intervals.NO_INTERVAL, intervals.NO_INTERVAL + timedelta(microseconds=1))
IN_FILES = ("json", "csv", "parquet", "delta")


@dataclass(frozen=True)
class LandedDimension:
    """Source of a dimension. `options`: how to read it, at the version that was found.

    `path`: the declared one, resolved; or ''. `made`: the fingerprint of how its files are read.
    """

    table: Table
    spec: Dimension
    files: tuple[LandedFile, ...]
    made: str
    uri: str
    loads_uri: str
    state_id: str
    state_uri: str
    path: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def note(self) -> str:
        """The note of its files once loaded; it changes with them and their interpretation."""
        if self.spec.is_log:
            return " ".join(_print(file, self.made) for file in self.files)
        return fingerprint(self.files, self.made)

    @property
    def noted(self) -> intervals.Note | None:
        """The note of the last load."""
        return next(iter(intervals.deliveries(self.loads_uri)), None)

    def is_loaded(self, before: Head | None) -> bool:
        """True if exactly this was loaded last and the table, whose head is `before`, has it."""
        noted = self.noted
        if before is None or noted is None or self.spec.format not in IN_FILES:
            return False
        return noted.files == self.note and _has(before, noted)


def find(project: Project, table: Table) -> LandedDimension:
    """Return the source as it is now. Raises UsageError if there are no files."""
    spec = table.spec
    assert isinstance(spec, Dimension)
    lake, path = layout(project), project.resolve(spec.path) if spec.path else ""
    made, options = definition(table), dict(spec.options)
    files: tuple[LandedFile, ...] = ()
    if spec.format == "delta" and (at := delta_table(path)):
        files, made = at.files, f"{made} {at.identity} {at.version}"
        is_pinned = any(name.lower() in ("versionasof", "timestampasof") for name in options)
        options = options if is_pinned else {"versionAsOf": str(at.version), **options}
    elif spec.format in IN_FILES:
        files = landing.list_delivered(path, table.id)
        if not files:
            raise UsageError(
                f"{table.id}: there are no files at {path}",
                hint="a dimension must be loaded before facts are joined; for an empty one, "
                "deliver a file without rows",
            )
    uris, state_id = (lake.uri(table.id), lake.uri(table.id, INTERVALS)), internal(table.id, STATE)
    state = state_id, lake.uri(state_id)
    return LandedDimension(table, spec, files, made, *uris, *state, path, options)


@dataclass(frozen=True)
class LandedTable:
    """One version of somebody else's Delta table."""

    identity: str
    version: int
    files: tuple[LandedFile, ...]


def delta_table(path: str) -> LandedTable | None:
    """Return the Delta table at `path` as it is now; None if there is none."""
    if not is_table(path):
        return None
    table = open_table(path)
    actions = active_files(table).to_pylist()
    files = [LandedFile(f"{path}/{a['path']}", a["size_bytes"], 0) for a in actions]
    return LandedTable(str(table.metadata().id), table.version(), tuple(files))


@dataclass(frozen=True)
class PendingFiles:
    """Files that a load reads. `state`: the log's state to extend; None: everything is read."""

    files: tuple[LandedFile, ...]
    state: Head | None = None
    noted: intervals.Note | None = None
    warnings: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """The size of its files."""
        return sum(f.size for f in self.files)


def choose_files(
    landed: LandedDimension, before: Head | None, *, again: bool = False
) -> PendingFiles:
    """Return what to read for a table whose head is `before`; `again`: everything."""
    if again or before is None or not before.is_filled:
        return PendingFiles(landed.files)
    noted = landed.noted
    if noted is None or not _has(before, noted):
        return _read_all(landed, "the record of the last load is missing; everything is read again")
    if not landed.spec.is_log:
        return PendingFiles(landed.files)
    if (state := _state(landed, before)) is None:
        return _read_all(
            landed, "the table is no longer as the last load left it; everything is read again"
        )
    fresh = choose_unread(landed.files, landed.made, noted.files)
    if fresh is None:
        count = len(landed.files)
        return _read_all(
            landed, f"a file that was read has changed or disappeared: all {count} are read"
        )
    return PendingFiles(fresh, state, noted)


def _state(landed: LandedDimension, before: Head) -> Head | None:
    """Return the state of a log, if it covers all files behind the table."""
    at, position = head_as_found(landed.state_uri), before.position
    used = position.references.get(landed.state_id) if position else None
    if at is None or at.position is None or used is None or used.table != at.table:
        return None
    return at if used.version <= at.version else None


def _has(at: Head, noted: intervals.Note) -> bool:
    """True if a table has the batch of a note, so no older state of the table was restored."""
    return noted.batch < at.next_batch


def _read_all(landed: LandedDimension, why: str) -> PendingFiles:
    return PendingFiles(landed.files, warnings=(f"{landed.table.id}: {why}",))


def choose_unread(
    files: Sequence[LandedFile], made: str, noted: str
) -> tuple[LandedFile, ...] | None:
    """Return the files of a log that were not read yet.

    Return None if a file that was read has changed, is missing, or was read differently.
    """
    prints = {_print(file, made): file for file in files}
    known = set(noted.split())
    if not known <= prints.keys():
        return None
    return tuple(file for print_, file in prints.items() if print_ not in known)


def _print(file: LandedFile, made: str) -> str:
    """Fingerprint a file. States of logs name files by real paths; older states are rebuilt."""
    return fingerprint([file], f"{made} real paths")


def nothing_new(project: Project, table: Table) -> str | None:
    """Return the reason why there is nothing to load; None if there may be something."""
    spec = table.spec
    assert isinstance(spec, Dimension)
    if spec.format not in FILES:
        return None
    found = find(project, table)
    is_same = found.is_loaded(head(found.uri))
    return f"{table.id} is loaded, and its files are the same" if is_same else None
