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

from sluice.delta.places.stores import open_table
from sluice.delta.places.walk import local_path

CHECKPOINTS = {"delta.checkpointInterval": "10"}  # delta-rs's 100 makes opening five times slower
MOST = 128
Commit = tuple[str, int, int, int, int]  # table, version, and its file: inode, time, bytes

_tables: LRUCache[Commit, DeltaTable] = LRUCache(MOST)
_opening = Lock()
_listed: dict[Path, int] = {}  # logs, with the newest version that was found


def opened(uri: str, version: int | None = None) -> DeltaTable:
    """Return the table as of a version, or as it is now. Callers only read it.

    Raises TableNotFoundError, or DeltaError for a version that is gone.
    """
    commit = commit_of(uri, version)
    if commit is None:
        return open_table(uri, version=version)
    with _opening:
        if commit in _tables:
            return _tables[commit]
    table = open_table(uri, version=commit[1])
    with _opening:
        _tables[commit] = table
    return table


def taken(uri: str, version: int | None = None) -> DeltaTable:
    """Return the table as of a version, or as it is now, for one writer.

    Nobody else gets this object any more.
    """
    commit = commit_of(uri, version)
    with _opening:
        known = _tables.pop(commit, None) if commit else None
    return known or open_table(uri, version=version)


def keep(uri: str, table: DeltaTable) -> None:
    """Keep a table that has just committed, open at its new version. Nobody writes it again."""
    if commit := commit_of(uri, table.version()):
        with _opening:
            _tables[commit] = table


def commit_of(uri: str, version: int | None = None) -> Commit | None:
    """Return the identity of a commit of a local table, the newest by default; None if unknown."""
    place = local_path(uri)
    if place is None:
        return None
    log = Path(place, "_delta_log")
    try:
        number = _newest(log) if version is None else version
        found = _file(log, number).stat()
    except (OSError, ValueError):
        return None
    return uri, number, found.st_ino, found.st_mtime_ns, found.st_size


def _newest(log: Path) -> int:
    """Return the newest version. A log that was listed once is only asked for later ones."""
    known = _listed.get(log)
    if known is None or not _file(log, known).exists():
        names = (entry.name for entry in os.scandir(log))
        known = max(int(n[:20]) for n in names if n[20:] == ".json" and n[:20].isdigit())
    while _file(log, known + 1).exists():
        known += 1
    _listed[log] = known
    return known


def _file(log: Path, version: int) -> Path:
    return log / f"{version:020}.json"
