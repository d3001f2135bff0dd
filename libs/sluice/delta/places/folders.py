"""Folders of a lake: the files below them, and folders that are moved or removed whole."""

import os
from collections.abc import Iterable
from pathlib import Path

from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType, LocalFileSystem, copy_files

from sluice.delta.places.delta_rs import located

LOG = "_delta_log"  # of a Delta table


def files_in(filesystem: FileSystem, folder: str) -> list[FileInfo]:
    """Return the files below a folder, at any depth; none if there is no folder."""
    found = filesystem.get_file_info(FileSelector(folder, recursive=True, allow_not_found=True))
    return [info for info in found if info.type == FileType.File]


def sync(paths: Iterable[str | Path]) -> None:
    """Wait until files, or the names in folders, are on this machine's disk; each once."""
    for path in dict.fromkeys(paths):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove(uri: str) -> None:
    """Remove everything at `uri`; do nothing if nothing is there."""
    filesystem, path = located(uri)
    if filesystem.get_file_info(path).type != FileType.NotFound:
        _delete(filesystem, path)


def move(uri: str, to: str) -> None:
    """Move a folder; on a local disk in one step, elsewhere it is copied first."""
    filesystem, path = located(uri)
    _, target = located(to)
    if isinstance(filesystem, LocalFileSystem):
        filesystem.create_dir(target.rpartition("/")[0], recursive=True)
        filesystem.move(path, target)
        return
    copy_files(path, target, source_filesystem=filesystem, destination_filesystem=filesystem)
    _delete(filesystem, path)


def remove_table(uri: str) -> int:
    """Remove a Delta table, its log last, and return its number of files.

    If it is stopped halfway, the rest is still found as a table.
    """
    filesystem, path = located(uri)
    files = [file.path for file in files_in(filesystem, path)]
    for file in sorted(files, key=lambda file: f"/{LOG}/" in file):
        filesystem.delete_file(file)
    remove(uri)
    return len(files)


def _delete(filesystem: FileSystem, path: str) -> None:
    """Delete a folder, the deepest ones in it first: some stores refuse one that holds another.

    In others a folder is gone with its last file, or must stay because versions in it are locked.
    """
    if isinstance(filesystem, LocalFileSystem):
        filesystem.delete_dir(path)
        return
    found = filesystem.get_file_info(FileSelector(path, recursive=True))
    below = (f.path for f in found if f.type == FileType.Directory)
    for folder in (*sorted(below, reverse=True), path):
        try:
            filesystem.delete_dir(folder)
        except OSError:
            if files_in(filesystem, folder):
                raise
