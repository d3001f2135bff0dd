"""Small files beside the tables: each is read, written and deleted whole.

Object stores can do no more. A reader never sees half a file. If two processes write at once, the
last one wins. So only notes whose loss alters no table are stored like this.
"""

import uuid
from contextlib import suppress

from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from sluice.delta.places.delta_rs import located
from sluice.delta.places.folders import sync

SUFFIX = ".json"


class SmallFiles:
    """JSON files in the folder at `uri`, by their names without ending."""

    def __init__(self, uri: str):
        found = located(uri)
        self._files: FileSystem = found[0]
        self._folder: str = found[1]

    def names(self) -> list[str]:
        """Return the names of all files; none if there is no folder."""
        listed = self._files.get_file_info(FileSelector(self._folder, allow_not_found=True))
        names = [f.base_name for f in listed if f.type == FileType.File]
        return [n.removesuffix(SUFFIX) for n in names if n.endswith(SUFFIX)]

    def read(self, name: str) -> bytes | None:
        """Return a file's content; None if there is no such file."""
        try:
            with self._files.open_input_stream(self._path(name)) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Put a file in place of an earlier one of that name."""
        if isinstance(self._files, LocalFileSystem):
            self._files.create_dir(self._folder, recursive=True)
        replace_file(self._files, self._path(name), content)

    def delete(self, name: str) -> None:
        """Delete a file; do nothing if there is none."""
        if self._files.get_file_info(self._path(name)).type == FileType.File:
            with suppress(FileNotFoundError):  # another process was first
                self._files.delete_file(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}{SUFFIX}"


def replace_file(
    filesystem: FileSystem, path: str, content: bytes, *, is_lasting: bool = False
) -> None:
    """Replace a file atomically; readers see the earlier one until then.

    `is_lasting`: on this machine's disk, a power cut leaves one of the two, and the new one later.
    """
    if not isinstance(filesystem, LocalFileSystem):
        put(filesystem, path, content)
        return
    folder, _, name = path.rpartition("/")
    draft = f"{folder}/.{name}-{uuid.uuid4()}"
    put(filesystem, draft, content)
    if is_lasting:
        sync([draft])
    filesystem.move(draft, path)
    if is_lasting:
        sync([folder])


def put(filesystem: FileSystem, path: str, content: bytes) -> None:
    """Write a file whole."""
    with filesystem.open_output_stream(path) as stream:
        stream.write(content)
