"""Folders: moved or removed whole, small files in them, and the files that suppliers deliver.

Links of this machine are followed wherever they lead, because suppliers deliver by links to their
shares. Links that lead back, links to nothing, pipes, sockets, devices and unreadable files are
found, too. They appear as files with a `fault`, so that none is missed silently.
"""

import os
import stat
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType, LocalFileSystem, copy_files

from sluice.cache import discard_rows
from sluice.delta.places.delta_rs import locate

LOG = "_delta_log"  # of a Delta table
SUFFIX = ".json"
HIDDEN = ("_", ".")
FILE = "file://"
_BY_EFFECTIVE_USER = os.access in os.supports_effective_ids
_AWAY = (FileNotFoundError, NotADirectoryError)
_KINDS = (
    (stat.S_ISFIFO, "it is a pipe"),
    (stat.S_ISSOCK, "it is a socket"),
    (stat.S_ISCHR, "it is a device"),
    (stat.S_ISBLK, "it is a device"),
)


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
    filesystem, path = locate(uri)
    if filesystem.get_file_info(path).type != FileType.NotFound:
        _delete(filesystem, path)
    discard_rows(local_path(uri) or uri)


def move(uri: str, to: str) -> None:
    """Move a folder; on a local disk in one step, elsewhere it is copied first."""
    filesystem, path = locate(uri)
    _, target = locate(to)
    if isinstance(filesystem, LocalFileSystem):
        filesystem.create_dir(target.rpartition("/")[0], recursive=True)
        filesystem.move(path, target)
    else:
        copy_files(path, target, source_filesystem=filesystem, destination_filesystem=filesystem)
        _delete(filesystem, path)
    discard_rows(local_path(uri) or uri)


def remove_table(uri: str) -> int:
    """Remove a Delta table, its log last, and return its number of files.

    If it is stopped halfway, the rest is still found as a table.
    """
    filesystem, path = locate(uri)
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


class SmallFiles:
    """JSON files in the folder at `uri`, by their names without ending.

    Each is read, written and deleted whole: object stores can do no more. A reader never sees half
    a file. If two processes write at once, the last one wins. So only notes whose loss alters no
    table are stored like this.
    """

    def __init__(self, uri: str):
        found = locate(uri)
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


@dataclass(frozen=True)
class LandedFile:
    """One file of a delivery.

    `uri`: a path of this machine, or a location in a store. A path that is not UTF-8 is written as
    `file://` with percent escapes. `fault`: the reason why the file can't be read.
    """

    uri: str
    size: int
    modified: int
    fault: str = ""

    @property
    def shown(self) -> str:
        """The `uri` on one line."""
        return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in self.uri)


@dataclass(frozen=True)
class _Folder:
    """A folder to list. `place`: the path where it was found; `real`: its real path.

    `through`: the folders whose links led here.
    """

    place: str
    real: str
    through: tuple[str, ...] = ()

    def is_led_back_by(self, target: str) -> bool:
        above = _join(target, "")
        return any(_join(real, "").startswith(above) for real in (*self.through, self.real))


def local_path(uri: str) -> str | None:
    """Return the path of a local file, as `os` takes it; None for one in a store."""
    if uri.startswith(FILE):
        return os.fsdecode(unquote_to_bytes(uri.removeprefix(FILE)))
    return None if "://" in uri and not uri.startswith("/") else uri


def files(root: str) -> Iterator[tuple[str, LandedFile]]:
    """Yield each way to each file below `root`: the path where it was found, and the file.

    The file carries its real path. Links may lead to a file more than once. Raises OSError for a
    folder that can't be listed.
    """
    try:
        link = root if stat.S_ISLNK(Path(root).lstat().st_mode) else ""
    except _AWAY:
        return
    walk = _Walk(root)
    yield from walk.entry(root, walk.top, (), link=link)
    while walk.folders:
        yield from walk.below(walk.folders.pop())


def stamp(path: str) -> object:
    """Return a stamp that changes when the file is written or replaced; None if it is missing."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


class _Walk:
    def __init__(self, root: str):
        self.root, self.top = root, os.path.realpath(root)
        self.inside, self.shown = _join(self.top, ""), _join(root, "")
        self.folders: list[_Folder] = []

    def below(self, folder: _Folder) -> Iterator[tuple[str, LandedFile]]:
        try:
            with os.scandir(folder.real) as entries:
                found = [e for e in entries if not e.name.startswith(HIDDEN)]
        except _AWAY:
            return  # removed meanwhile
        for entry in found:
            place, real = _join(folder.place, entry.name), _join(folder.real, entry.name)
            if entry.is_symlink():
                yield from self.link(place, real, folder)
            elif entry.is_dir(follow_symlinks=False):
                self.folders.append(_Folder(place, real, folder.through))
            else:
                yield from self.entry(place, real, folder.through, look=entry.stat)

    def link(self, place: str, real: str, folder: _Folder) -> Iterator[tuple[str, LandedFile]]:
        """Yield the file that a link leads to; note a folder."""
        target = os.path.realpath(real)
        if Path(target).is_dir() and folder.is_led_back_by(target):
            yield place, self._faulty(real, "it is a link to a folder that contains it")
            return
        yield from self.entry(place, target, (*folder.through, folder.real), link=real)

    def entry(
        self,
        place: str,
        real: str,
        through: tuple[str, ...],
        *,
        look: Callable[[], os.stat_result] | None = None,
        link: str = "",
    ) -> Iterator[tuple[str, LandedFile]]:
        """Yield the file at `real`; note a folder. `link`: the link that led there."""
        try:
            found = look() if look else Path(real).stat()
        except OSError as error:
            if link or not isinstance(error, _AWAY):
                yield place, self._faulty(link or real, _why_not(error, link))
            return
        if stat.S_ISDIR(found.st_mode):
            self.folders.append(_Folder(place, real, through))
        elif fault := _fault(found.st_mode, real):
            yield place, self._faulty(real, fault)
        else:
            yield place, LandedFile(self._uri(real), found.st_size, found.st_mtime_ns)

    def _faulty(self, real: str, why: str) -> LandedFile:
        return LandedFile(self._uri(real), 0, 0, why)

    def _uri(self, real: str) -> str:
        """Return the path below the root as given, even if the root is a link."""
        if real.startswith(self.inside):
            real = self.shown + real[len(self.inside) :]
        elif real == self.top:
            real = self.root
        try:
            real.encode()
        except UnicodeEncodeError:
            return FILE + quote(os.fsencode(real))
        return real


def _fault(mode: int, real: str) -> str:
    if not stat.S_ISREG(mode):
        return next((why for is_so, why in _KINDS if is_so(mode)), "it is not a file")
    is_open = os.access(real, os.R_OK, effective_ids=_BY_EFFECTIVE_USER)
    return "" if is_open else "permission denied"


def _why_not(error: OSError, link: str) -> str:
    if link and isinstance(error, _AWAY):
        target = os.fsencode(Path(link).readlink()).decode(errors="backslashreplace")
        return f"it is a broken link ({target})"
    if isinstance(error, PermissionError):
        return "permission denied"
    return f"it can't be examined: {error.strerror}"


def _join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"
