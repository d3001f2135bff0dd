"""The files of a delivery to a source or dimension: their location, and whether they changed.

A path may be a folder (all files below it), a file, or a pattern with `*`. Names that begin with
`_` or `.` are not data. This module reads only listings; `places.folders` lists this machine's
folders.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from pyarrow.fs import FileType

from sluice.delta.places import folders
from sluice.delta.places.delta_rs import locate, store_fault, uri_of
from sluice.delta.places.folders import LandedFile, local_path
from sluice.errors import Retryable, StoreRefused, UsageError


def list_files(path: str) -> list[LandedFile]:
    """Return the data files at `path`, by name; none if it does not exist.

    Each file is listed once, by its real path. A file that can't be read has a `fault`.
    """
    files = {file.uri: file for file in _list_landed(path)}
    return [files[uri] for uri in sorted(files)]


def list_delivered(path: str, reader: str) -> tuple[LandedFile, ...]:
    """List files like `list_files`, with errors that name the table.

    Raises UsageError for a folder without read permission, because its content is unknown. Raises
    Retryable for a folder that can't be listed now.
    """
    try:
        return tuple(list_files(path))
    except OSError as error:
        if fault := store_fault(error):
            raise fault from error
        if not isinstance(error, PermissionError):
            raise Retryable(f"{reader}: {path} can't be listed now: {error}") from error
        raise UsageError(
            f"{reader}: there is no permission to read the folder {error.filename or path}, so the "
            "delivery is unknown",
            hint="let the user of the job list it, and run again; nothing was committed",
        ) from error


def stamps(files: Sequence[LandedFile]) -> Mapping[str, object]:
    """Return stamps of this machine's files, which change when a file is written or replaced.

    Files in object stores have none, because stores replace files whole.
    """
    return {f.uri: folders.stamp(place) for f in files if (place := local_path(f.uri))}


def check_unchanged(files: Sequence[LandedFile], before: Mapping[str, object], reader: str) -> None:
    """Raise Retryable if a file was written, replaced or removed since its stamp was taken."""
    now = stamps(files)
    if changed := [f.shown for f in files if now.get(f.uri) != before.get(f.uri)]:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise Retryable(
            f"{reader}: {changed[0]}{more} changed while it was read",
            hint="nothing was committed; deliver a file under a name that begins with `_` or `.`, "
            "and rename it when it is complete",
        )


def fingerprint(files: Sequence[LandedFile], definition: str) -> str:
    """Return a short text that changes when a file or its interpretation changes."""
    parts = ((file.uri, str(file.size), str(file.modified), file.fault) for file in files)
    listing = "\n".join(" ".join(filter(None, of_file)) for of_file in parts)
    return hashlib.sha256(f"{definition}\n{listing}".encode()).hexdigest()[:16]


def _list_landed(path: str) -> Iterator[LandedFile]:
    if (place := local_path(path)) is not None:
        root, is_wanted = _split_pattern(place)
        return (file for at, file in folders.files(root) if is_wanted(at))
    filesystem, base = locate(path)
    root, is_wanted = _split_pattern(base)
    # The listing comes first, because a store gives the reason if it refuses that.
    objects = folders.files_in(filesystem, root) or [
        one for one in [filesystem.get_file_info(root)] if one.type == FileType.File
    ]
    if not objects:
        _check_bucket(uri_of(root.partition("/")[0], path))
    wanted = ((f, PurePosixPath(f.path.removeprefix(root))) for f in objects if is_wanted(f.path))
    return (
        LandedFile(uri_of(f.path, path), f.size, f.mtime_ns or 0)
        for f, below in wanted
        if not any(part.startswith(folders.HIDDEN) for part in below.parts)
    )


def _split_pattern(base: str) -> tuple[str, Callable[[str], object]]:
    """Return the folder to list, and a test for paths in it; only `*` is special.

    A pattern that ends with `/` means the files below folders.
    """
    before, *others = base.split("*")
    if not others:
        return base.rstrip("/") or "/", lambda _: True
    pattern = ".*".join(map(re.escape, (before, *others))) + ".*" * base.endswith("/")
    return before.rpartition("/")[0] or "/", re.compile(pattern, re.DOTALL).fullmatch


@lru_cache(maxsize=64)
def _check_bucket(uri: str) -> None:
    """Raise StoreRefused if a bucket does not exist; one without permission does exist.

    A store lists no files in a bucket that it does not have. A name is asked for once.
    """
    filesystem, name = locate(uri)
    try:
        is_missing = filesystem.get_file_info(name).type == FileType.NotFound
    except OSError:
        return
    if is_missing:
        raise StoreRefused(
            f"bucket {name!r}: there is no bucket of this name",
            hint="nothing was committed; create it, or correct the table's `path`",
        )
