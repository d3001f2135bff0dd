"""Source of a dimension as found before a load: its files, and those of them to read.

Only listings and logs are read; no Spark is started. A snapshot is read whole. Of a log of changes,
the files that arrived since the last load are read. All files are read if one that was read before
has changed or is missing, or if it is unknown which were read. This is necessary because replaced
rows are not kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from sluice.declare.meaning.definition import definition
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import Head, head_as_found
from sluice.delta.notes import intervals
from sluice.delta.places.lake import layout
from sluice.delta.places.walk import LandedFile
from sluice.delta.reading import landing
from sluice.dimensions.loaded import not_noted, note
from sluice.dimensions.spec import Dimension
from sluice.engine.judging.quarantining import NO_INTERVAL
from sluice.errors import UsageError
from sluice.language.internal import INTERVALS, STATE, internal
from sluice.language.interval import Interval

WHOLE = Interval(NO_INTERVAL, NO_INTERVAL + timedelta(microseconds=1))
IN_FILES = ("json", "csv", "parquet", "delta")


@dataclass(frozen=True)
class Found:
    """Source of a dimension. `options`: how to read it, at the version that was found.

    `made`: the fingerprint of how its files are read.
    """

    table: Table
    spec: Dimension
    files: tuple[LandedFile, ...]
    made: str
    uri: str
    loads_uri: str
    state_id: str
    state_uri: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def note(self) -> str:
        """The note of its files once they are loaded."""
        return note(self.spec, self.files, self.made)

    def is_loaded(self, before: Head) -> bool:
        """True if exactly this was loaded last and the table, whose head is `before`, has it."""
        noted = _noted(self)
        is_same = noted is not None and noted.files == self.note and _has(before, noted)
        return self.spec.format in IN_FILES and is_same


@dataclass(frozen=True)
class Due:
    """Files that a load reads. `state`: the log's state to extend; None: everything is read."""

    files: tuple[LandedFile, ...]
    state: Head | None = None
    noted: intervals.Note | None = None
    warnings: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """The size of its files."""
        return sum(f.size for f in self.files)


def find(project: Project, table: Table) -> Found:
    """Return the source as it is now. Raises UsageError if there are no files."""
    spec = table.spec
    assert isinstance(spec, Dimension)
    lake, path = layout(project), project.resolve(spec.path) if spec.path else ""
    made, options = definition(table), dict(spec.options)
    files: tuple[LandedFile, ...] = ()
    if spec.format == "delta" and (at := landing.delta_table(path)):
        files, made = at.files, f"{made} {at.identity} {at.version}"
        is_pinned = any(name.lower() in ("versionasof", "timestampasof") for name in options)
        options = options if is_pinned else {"versionAsOf": str(at.version), **options}
    elif spec.format in IN_FILES:
        files = _files(table, path)
    uris, state_id = (lake.uri(table.id), lake.uri(table.id, INTERVALS)), internal(table.id, STATE)
    return Found(table, spec, files, made, *uris, state_id, lake.uri(state_id), options)


def _files(table: Table, path: str) -> tuple[LandedFile, ...]:
    files = landing.delivered(path, table.id)
    if not files:
        raise UsageError(
            f"{table.id}: there are no files at {path}",
            hint="a dimension must be loaded before facts are joined; for an empty one, deliver a "
            "file without rows",
        )
    return files


def due(found: Found, before: Head | None, *, again: bool = False) -> Due:
    """Return what to read for a table whose head is `before`; `again`: everything."""
    if again or before is None or not before.is_filled:
        return Due(found.files)
    noted = _noted(found)
    if noted is None or not _has(before, noted):
        return _whole(found, "the record of the last load is missing; everything is read again")
    if not found.spec.is_log:
        return Due(found.files)
    if (state := _state(found, before)) is None:
        return _whole(
            found, "the table is no longer as the last load left it; everything is read again"
        )
    fresh = not_noted(found.files, found.made, noted.files)
    if fresh is None:
        count = len(found.files)
        return _whole(
            found, f"a file that was read has changed or disappeared: all {count} are read"
        )
    return Due(fresh, state, noted)


def _state(found: Found, before: Head) -> Head | None:
    """Return the state of a log, if it covers all files behind the table."""
    at, position = head_as_found(found.state_uri), before.position
    used = position.references.get(found.state_id) if position else None
    if at is None or at.position is None or used is None or used.table != at.table:
        return None
    return at if used.version <= at.version else None


def _noted(found: Found) -> intervals.Note | None:
    return next(iter(intervals.deliveries(found.loads_uri)), None)


def _has(at: Head, noted: intervals.Note) -> bool:
    """True if a table has the batch of a note, so no older state of the table was restored."""
    return noted.batch < at.next_batch


def _whole(found: Found, why: str) -> Due:
    return Due(found.files, warnings=(f"{found.table.id}: {why}",))
