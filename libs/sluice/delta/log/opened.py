"""Delta tables opened for reading, each version once in a process.

Opening a table replays its log, which costs more than the rows of a small batch. A version never
changes, but a folder may be replaced by another table: a version is known by the file of its
commit. In a store, two requests for such files replace the listing and reading of the log.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TypeVar

from cachetools import LRUCache
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow.fs import FileType

from sluice.delta.log import Log
from sluice.delta.places.delta_rs import (
    files_below,
    is_table,
    open_table,
    store_fault,
    stored_stamp,
)
from sluice.delta.places.folders import LOG, local_path
from sluice.delta.places.lake_layout import DamagedLog
from sluice.errors import Retryable, UsageError

CHECKPOINTS = {"delta.checkpointInterval": "10"}  # delta-rs's 100 makes opening five times slower
MOST = 128
FAR = 50  # commits to request one by one; a log that is further ahead is opened again
CommitStamp = tuple[object, ...]  # of a commit's file: inode, time, bytes; in a store its tag
CommitKey = tuple[str, int, CommitStamp]  # table, version

Value = TypeVar("Value")


class CommitCache(LRUCache[CommitKey, Value]):
    """Values that belong to commits, kept in this process for all its threads.

    Nothing is kept for a commit that is not known, nor a value that is too large.
    """

    def __init__(self, most: float, getsizeof: Callable[[Value], float] | None = None) -> None:
        super().__init__(most, getsizeof)
        self._lock = Lock()

    def find(self, commit: CommitKey | None) -> Value | None:
        """Return the commit's value; None if there is none."""
        with self._lock:
            return self.get(commit) if commit else None

    def take(self, commit: CommitKey | None) -> Value | None:
        """Return the commit's value, and forget it."""
        with self._lock:
            return self.pop(commit, None) if commit else None

    def keep(self, commit: CommitKey | None, value: Value) -> None:
        """Keep the commit's value."""
        if commit and self.getsizeof(value) <= self.maxsize:
            with self._lock:
                self[commit] = value


_tables: CommitCache[DeltaTable] = CommitCache(MOST)
_newest: dict[str, int] = {}  # tables, with the newest version found


def open_version(uri: str, version: int | None = None) -> DeltaTable:
    """Return the table as of a version, or as it is now. Callers only read it.

    Raises TableNotFoundError, DamagedLog, or DeltaError for a version that is gone.
    """
    commit = commit_of(uri, version)
    if (known := _tables.find(commit)) is not None:
        return known
    try:
        table = open_table(uri, version=commit[1] if commit else version)
    except TableNotFoundError:
        raise
    except DeltaError as error:
        if version is not None or store_fault(error):
            raise
        raise DamagedLog(uri, error) from error
    if version is None:
        _newest[uri] = table.version()
    _tables.keep(commit or commit_of(uri, table.version()), table)
    return table


def exists(uri: str) -> bool:
    """True if there is a Delta table at a URI."""
    return commit_of(uri) is not None or is_table(uri)


def newest_version(uri: str) -> int:
    """Return the newest version of the table at a URI; -1 if there is no table."""
    if commit := commit_of(uri):
        return commit[1]
    return open_version(uri).version() if is_table(uri) else -1


def open_for_writer(uri: str, version: int | None = None) -> DeltaTable:
    """Return the table as of a version, or as it is now, for one writer.

    Nobody else gets this object afterwards.
    """
    return _tables.take(commit_of(uri, version)) or open_table(uri, version=version)


def keep(uri: str, table: DeltaTable) -> None:
    """Keep a table that has just committed, open at its new version. Nobody writes it again."""
    _newest[uri] = table.version()
    _tables.keep(commit_of(uri, table.version()), table)


def commit_of(uri: str, version: int | None = None) -> CommitKey | None:
    """Return the identity of a commit, the newest by default; None if it is not known.

    The newest commit of a store's table is known once the table was opened. Raises DamagedLog.
    """
    try:
        if version is None:
            return _find_newest(uri)
        stamp = _stamp(uri, version)
    except NotADirectoryError:
        raise DamagedLog(uri, f"{LOG} is a file, and no folder") from None
    except (OSError, ValueError):
        return None
    return (uri, version, stamp) if stamp else None


def _find_newest(uri: str) -> CommitKey | None:
    """Return the newest commit. A log that was listed once is only asked for later ones."""
    number = _newest.get(uri)
    stamp = None if number is None else _stamp(uri, number)
    if number is None or stamp is None:
        number = _newest_listed(uri)
        stamp = None if number is None else _stamp(uri, number)
    if number is None or stamp is None:
        return None
    for later in range(number + 1, number + FAR):
        ahead = _stamp(uri, later)
        if ahead is None:
            break
        number, stamp = later, ahead
    else:
        return None
    _newest[uri] = number
    return uri, number, stamp


def _newest_listed(uri: str) -> int | None:
    """Return the newest version in a local log; None for a store, whose logs are long to list."""
    place = local_path(uri)
    if place is None:
        return None
    names = (entry.name for entry in os.scandir(Path(place, LOG)))
    return max(int(n[:20]) for n in names if n[20:] == ".json" and n[:20].isdigit())


def _stamp(uri: str, version: int) -> CommitStamp | None:
    """Return what distinguishes the file of a commit from others; None if there is no such file."""
    place, name = local_path(uri), f"_delta_log/{version:020}.json"
    if place is None:
        return stored_stamp(f"{uri}/{name}")
    try:
        found = os.stat(f"{place}/{name}")  # noqa: PTH116  # a Path costs more than the call
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


_REFUSED = re.compile("Permission denied|os error 13|Errno 13", re.IGNORECASE)


@dataclass(frozen=True)
class Foreign:
    """Somebody else's table at its newest version."""

    uri: str
    table_id: str
    version: int

    @classmethod
    def at(cls, uri: str, reader: str) -> "Foreign":
        """Return the table at a URI. Raises UsageError if none can be opened there."""
        try:
            found = open_version(uri)
        except TableNotFoundError:
            raise UsageError(
                f"{reader}: there is no Delta table at {uri}, or no permission to read it",
                hint="give the folder with its `_delta_log`, and let the job's user read it",
            ) from None
        except (DeltaError, OSError) as error:
            if fault := store_fault(error):
                raise fault from error
            raise UsageError(
                f"{reader}: the Delta table at {uri} can't be opened: {error}",
                hint="its owner may have switched on an unsupported feature, or revoked read "
                "access",
            ) from None
        return cls(uri, str(found.metadata().id), found.version())

    @property
    def log(self) -> Log:
        return Log(self.uri)

    def columns(self, version: int) -> list[str]:
        """Return the names of its columns as of a version."""
        return [field.name for field in open_version(self.uri, version).schema().fields]

    def can_open(self, version: int) -> bool:
        """True if the log still shows a version."""
        try:
            return bool(open_version(self.uri, version))
        except DeltaError:
            return False

    def fingerprint(self, version: int) -> str:
        """Return the fingerprint of a commit; nothing if it was cleaned."""
        try:
            actions = self.log.actions(version)
        except FileNotFoundError:
            return ""
        return hashlib.sha256(json.dumps(actions, sort_keys=True).encode()).hexdigest()[:16]

    def missing(self, paths: Sequence[str]) -> list[str]:
        """Return the missing ones of these files, by their paths in its folder."""
        known = [path for path in paths if ":" not in path]
        with naming_refusals(self.uri):
            found = files_below(self.uri).get_file_info(known)
        return [p for p, info in zip(known, found, strict=True) if info.type != FileType.File]


@contextmanager
def naming_refusals(uri: str) -> Iterator[None]:
    """Raise UsageError if a file may not be read, Retryable if it is gone."""
    try:
        yield
    except FileNotFoundError as error:
        raise Retryable(f"{uri}: a file was deleted while it was read: {error}") from error
    except OSError as error:
        if fault := store_fault(error):
            raise fault from error
        if not _REFUSED.search(f"{error} {error.__cause__}"):
            raise
        raise UsageError(
            f"there is no permission to read {uri}: {str(error).splitlines()[0]}",
            hint="nothing was committed; let the user of the job read its files",
        ) from error
