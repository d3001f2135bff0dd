"""The files that a source or dimension is delivered in: where they are, and whether they changed.

A path may be a folder (all files below it), a file, or a pattern with `*`. Names that begin with
`_` or `.` are not data. Only listings are read here.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from zoneinfo import ZoneInfo

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType

from sluice.specs.interval import Interval


@dataclass(frozen=True)
class LandedFile:
    """One file of a delivery."""

    uri: str
    size: int
    modified: int


@dataclass(frozen=True)
class LandedTable:
    """One version of a Delta table of somebody else's."""

    identity: str
    version: int
    files: tuple[LandedFile, ...]


def interval_path(path: str, interval: Interval, timezone: str) -> str:
    """`path` with its placeholders filled from the interval, in the schedule's zone."""
    zone = ZoneInfo(timezone)
    return path.format(
        interval_start=interval.start.astimezone(zone), interval_end=interval.end.astimezone(zone)
    )


def has_placeholder(path: str) -> bool:
    """Whether the path differs by interval."""
    return "{interval_" in path


def list_files(path: str) -> list[LandedFile]:
    """The data files at `path`, by name; none if it does not exist."""
    filesystem, base = FileSystem.from_uri(path) if "://" in path else _local(path)
    scheme = path.split("://", maxsplit=1)[0] + "://" if "://" in path else ""
    pattern = base if "*" in base else ""
    root = base.split("*")[0].rpartition("/")[0] if pattern else base.rstrip("/")
    found = [f for f in _walk(filesystem, root) if _is_data(f.path, root)]
    kept = [f for f in found if not pattern or fnmatch(f.path, pattern)]
    files = [LandedFile(scheme + f.path, f.size, f.mtime_ns or 0) for f in kept]
    return sorted(files, key=lambda f: f.uri)


def delta_table(path: str) -> LandedTable | None:
    """The Delta table at `path` as it is now, None if there is none."""
    if not DeltaTable.is_deltatable(path):
        return None
    table = DeltaTable(path)
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    files = [LandedFile(f"{path}/{a['path']}", a["size_bytes"], 0) for a in actions]
    return LandedTable(str(table.metadata().id), table.version(), tuple(files))


def fingerprint(files: Sequence[LandedFile], definition: str) -> str:
    """A short text that changes when a file, or what is made of it, changes."""
    listing = "\n".join(f"{f.uri} {f.size} {f.modified}" for f in files)
    return hashlib.sha256(f"{definition}\n{listing}".encode()).hexdigest()[:16]


def _local(path: str) -> tuple[FileSystem, str]:
    from pyarrow.fs import LocalFileSystem

    return LocalFileSystem(), path


def _walk(filesystem: FileSystem, root: str) -> list[FileInfo]:
    info = filesystem.get_file_info(root)
    if info.type == FileType.File:
        return [info]
    below = filesystem.get_file_info(FileSelector(root, recursive=True, allow_not_found=True))
    return [f for f in below if f.type == FileType.File]


def _is_data(path: str, root: str) -> bool:
    parts = path.removeprefix(root).split("/")
    return not any(part.startswith(("_", ".")) for part in parts if part)
