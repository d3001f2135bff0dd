"""Commits of a table, newest first: the position in the inputs, and when each was made.

Each is read from the log's file of just that version. So it belongs to that version, even after
later commits. A commit without a position that changes rows is somebody else's: in a table's past,
nothing before it is shown.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from itertools import takewhile
from typing import Any

from sluice.delta.log import parse_actions
from sluice.delta.log.opened import open_version
from sluice.delta.log.position import CREATE, UPKEEP, Pin, Position
from sluice.errors import ForeignCommit, HistoryLost, SluiceError
from sluice.language.interval import show
from sluice.read.snapshot import NotBuilt, filesystem

VersionPosition = tuple[int, Position]


@dataclass(frozen=True)
class Commit:
    """One version of a table; `written` and `removed`: bytes of files that it added and removed."""

    version: int
    at: datetime
    operation: str
    position: Position | None
    changes_data: bool
    written: int = 0
    removed: int = 0


def commit(uri: str, version: int) -> Commit | None:
    """Return the commit of that version; None if the log no longer has it."""
    try:
        with filesystem(uri).open_input_stream(f"_delta_log/{version:020d}.json") as stream:
            actions = parse_actions(uri, version, stream.read())
    except FileNotFoundError:
        return None
    info: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
    changes = any(a.get(k, {}).get("dataChange") for a in actions for k in ("add", "remove"))
    at = datetime.fromtimestamp(info.get("timestamp", 0) / 1000, UTC)
    position = Position.of_commit(version, info.get("userMetadata"))
    written, removed = (
        sum(a[kind].get("size") or 0 for a in actions for kind in kinds if kind in a)
        for kinds in (("add", "cdc"), ("remove",))
    )
    operation = str(info.get("operation", ""))
    return Commit(version, at, operation, position, bool(changes), written, removed)


def back_from(uri: str, version: int) -> Iterator[Commit]:
    """Yield the commits from that version back to the log's start, newest first."""
    return _walk_back(partial(commit, uri), version)


def range_of(uri: str, after: int, upto: int) -> Iterator[Commit]:
    """Yield the commits (after, upto] that the log still has, newest first."""
    return takewhile(lambda found: found.version > after, back_from(uri, upto))


class Past:
    """Past of a table; `version` is its newest one at the moment, if there was one."""

    def __init__(self, name: str, uri: str, moment: datetime) -> None:
        self.name, self.uri, self._moment = name, uri, moment
        self._commit = cache(partial(commit, uri))
        table = open_version(uri)
        self._table, self._head = str(table.metadata().id), table.version()
        every = _walk_back(self._commit, self._head)
        self.version = next((c.version for c in every if c.at <= moment), None)
        every = _walk_back(self._commit, self._head)
        self._names = next((c.position for c in every if c.position), None)

    @property
    def has_positions(self) -> bool:
        """False for a table that records nothing of what it reflects, such as a quarantine."""
        return self._names is not None

    def walk_positions(self, upto: int | None = None) -> Iterator[VersionPosition]:
        """Yield the versions that record a position, with it, from one of them back."""
        for found in _walk_back(self._commit, self.version if upto is None else upto):
            position = found.position
            if self._is_foreign(found) or (position and position.kind == CREATE):
                return
            if position and self._names:
                yield found.version, position.as_named_in(self._names)

    def alike(self, version: int) -> Iterator[VersionPosition]:
        """Yield those of `walk_positions` that have a version's rows and are not before it."""
        newest = version
        while newest != self.version and not self._changes_data(newest + 1):
            newest += 1
        for number, position in self.walk_positions(newest):
            yield number, position
            if number <= version:
                return

    def holds(self, pin: Pin) -> bool:
        """True if the version that was read is surely this table's, and not after the moment."""
        if self.version is None or pin.table != self._table or pin.version > self.version:
            return False
        found = next(self.walk_positions(pin.version), None)
        return found is not None and pin.attempt in ("", found[1].attempt)

    def data_version(self, version: int) -> int:
        """Return the version that gave the table the rows that it has at this one."""
        oldest = version
        for found in _walk_back(self._commit, version):
            oldest = found.version
            if found.changes_data:
                break
        return oldest

    def skip_upkeep(self, version: int) -> int:
        """Return the last of the upkeep commits right after a version.

        Vacuum deletes its files last.
        """
        while (later := self._commit(version + 1)) and not later.changes_data:
            if later.position is None or later.position.kind not in UPKEEP:
                break
            version += 1
        return version

    def absence(self) -> SluiceError | None:
        """Return why the table had no rows at the moment, if that shows in its log."""
        when, oldest = show(self._moment), None
        for oldest in _walk_back(self._commit, self._head):
            if oldest.at <= self._moment and self._is_foreign(oldest):
                return ForeignCommit(
                    f"version {oldest.version} of {self.name!r} ({oldest.operation}) was not "
                    f"written by Sluice and changed its rows before {when}",
                    hint="`--version` reads it as it is; a time before that commit can be shown",
                )
        if oldest is None or oldest.version > 0:
            begins = f"begins with version {oldest.version}" if oldest else "is gone"
            return HistoryLost(
                f"{self.name!r} can't be shown as of {when}: its log {begins}",
                hint=f"the log goes back to {show(oldest.at)}" if oldest else "",
            )
        if self.version is None or next(self.walk_positions(), None) is None:
            return NotBuilt(f"table {self.name!r} had not been built by {when}")
        return None

    def _changes_data(self, version: int) -> bool:
        found = self._commit(version)
        return found is None or found.changes_data

    def _is_foreign(self, found: Commit) -> bool:
        return found.position is None and found.changes_data and self.has_positions


def _walk_back(read: Callable[[int], Commit | None], version: int | None) -> Iterator[Commit]:
    while version is not None and version >= 0 and (found := read(version)):
        yield found
        version -= 1
