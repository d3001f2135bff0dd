"""Delta tables opened for reading, each version once in a process.

Opening a table replays its log, which costs a batch of a few rows more than its rows do. A version
never changes, but a folder may be replaced by another table: a version is known by the file of its
commit.
"""

import os
from pathlib import Path
from threading import Lock

from cachetools import LRUCache
from deltalake import DeltaTable

from sluice.delta.places.walk import local_path

CHECKPOINTS = {"delta.checkpointInterval": "10"}  # delta-rs's 100 makes opening five times slower
MOST = 128
_Commit = tuple[str, int, int, int, int]

_tables: LRUCache[_Commit, DeltaTable] = LRUCache(MOST)
_opening = Lock()


def opened(uri: str, version: int | None = None) -> DeltaTable:
    """Return the table as of a version, or as it is now. Callers only read it.

    Raises TableNotFoundError, or DeltaError for a version that is gone.
    """
    commit = _commit(uri, version)
    if commit is None:
        return DeltaTable(uri, version=version)
    with _opening:
        if commit in _tables:
            return _tables[commit]
    table = DeltaTable(uri, version=commit[1])
    with _opening:
        _tables[commit] = table
    return table


def taken(uri: str) -> DeltaTable:
    """Return the table as it is now, for one writer; nobody else gets this object any more."""
    commit = _commit(uri, None)
    with _opening:
        known = _tables.pop(commit, None) if commit else None
    return known or DeltaTable(uri)


def keep(uri: str, table: DeltaTable) -> None:
    """Keep a table that has just committed, open at its new version. Nobody writes it again."""
    if commit := _commit(uri, table.version()):
        with _opening:
            _tables[commit] = table


def _commit(uri: str, version: int | None) -> _Commit | None:
    """Return the identity of a commit of a local table; None if it is unknown."""
    place = local_path(uri)
    if place is None:
        return None
    log = Path(place, "_delta_log")
    try:
        number = _newest(log) if version is None else version
        found = Path(log, f"{number:020}.json").stat()
    except (OSError, ValueError):
        return None
    return uri, number, found.st_ino, found.st_mtime_ns, found.st_size


def _newest(log: Path) -> int:
    names = (entry.name for entry in os.scandir(log))
    return max(int(name[:20]) for name in names if name[20:] == ".json" and name[:20].isdigit())
