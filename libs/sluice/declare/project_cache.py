"""A loaded project, kept in Python's pickle for the next process as long as it would be the same.

Loading checks all of a configuration, which takes milliseconds for each table. A kept project is
valid for the same files of the configuration and of this package. The environment variables that
were read must also have the same values. Only fingerprints of these values are kept, because they
may be secret. It is read only if nobody but the user can write it.
"""

import hashlib
import json
import os
import pickle
import re
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from itertools import islice
from os import environ as process_environ
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from tempfile import mkstemp
from typing import TYPE_CHECKING, Any

from sluice.declare.registry import has_added
from sluice.limits import machine_memory

if TYPE_CHECKING:
    from sluice.declare.document import Document

PACKAGE = Path(__file__).parents[1]
LIBRARIES = (
    "croniter",
    "pydantic",
    "pyspark-client",
    "ruamel.yaml",
    "sqlglot",
)  # which read a configuration
SOURCES = (".py", ".sql", ".yaml", ".yml")  # that define a spark-pipelines project
OTHERS_MAY_WRITE = 0o022
MOST_FILES = 20_000
Stamp = tuple[str, int, int, int, int]
UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True)
class Noting(Mapping[str, str]):
    """An environment; `asked`: names of the variables that were read.

    `folders`: those outside the configuration whose sources (SOURCES) were read.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: process_environ)
    asked: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)

    def note_folder(self, folder: str) -> None:
        """Note that a folder's sources were read, for whoever asked as well."""
        self.folders.add(folder)
        if isinstance(self.environ, Noting):
            self.environ.note_folder(folder)

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return self.environ[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.environ)

    def __len__(self) -> int:
        return len(self.environ)


@dataclass(frozen=True)
class KeptResult:
    """A file that keeps a result, and the state of its sources."""

    file: Path
    state: str

    def read(self, environ: Mapping[str, str]) -> bytes | None:
        """Return the result; None if it is not valid, or another user could have written it."""

        def open_unlinked(path: str, flags: int) -> int:
            return os.open(path, flags | os.O_NOFOLLOW)

        with suppress(*UNREADABLE), open(self.file, "rb", opener=open_unlinked) as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.getuid() or status.st_mode & OTHERS_MAY_WRITE:
                return None
            head = json.loads(file.readline())
            is_same = head["environ"] == _fingerprints(environ, head["environ"], head["salt"])
            if isinstance(environ, Noting):
                for folder in head["folders"]:
                    environ.note_folder(folder)
            is_same = is_same and head["folders"] == _states(head["folders"])
            return file.read() if head["state"] == self.state and is_same else None
        return None

    def write(self, content: bytes, noted: Noting) -> None:
        """Keep a result. A folder that can't be written only costs time."""
        salt = secrets.token_hex()
        values = _fingerprints(noted.environ, noted.asked, salt)
        folders = _states(noted.folders)
        head = json.dumps(
            {"state": self.state, "salt": salt, "environ": values, "folders": folders}
        )
        with suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            handle, draft = mkstemp(".kept", dir=self.file.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(b"%s\n%s" % (head.encode(), content))
                Path(draft).replace(self.file)
            except OSError:
                Path(draft).unlink()


def kept_in(folder: Path, config: Path) -> KeptResult:
    """Return the file in a folder that keeps a configuration's result."""
    shown = repr((str(config), str(config.absolute())))  # messages show paths as given
    state = repr((shown, str(config.resolve()), made_by(), stamps(config)))
    name = hashlib.sha256(shown.encode()).hexdigest()[:16]
    return KeptResult(folder / f"{name}.kept", hashlib.sha256(state.encode()).hexdigest())


@cache
def made_by() -> tuple[object, ...]:
    """Return the identity of this process's code, whose files were read once, and machine."""
    return (sys.version, machine_memory(), *map(version, LIBRARIES), *stamps(PACKAGE, ".py"))


def stamps(folder: Path, suffix: str | tuple[str, ...] = "") -> tuple[Stamp, ...]:
    """Return the state of the files below a folder, without reading them.

    Declarations refer to files of queries and schemas, so any file counts, linked ones included.
    The state of too many files is never the same.
    """
    if folder.is_file():  # a spec, whose folder may hold the lake, too
        folder, suffix = folder.parent, SOURCES
    found = sorted(islice(_stamps(str(folder), suffix, ()), MOST_FILES))
    return tuple(found) if len(found) < MOST_FILES else ((secrets.token_hex(), 0, 0, 0, 0),)


def _states(folders: Iterable[str]) -> dict[str, str]:
    """Return fingerprints of the sources of folders."""
    found = {folder: repr(stamps(Path(folder), SOURCES)) for folder in folders}
    return {folder: hashlib.sha256(text.encode()).hexdigest() for folder, text in found.items()}


def _stamps(
    folder: str, suffix: str | tuple[str, ...], inside: tuple[tuple[int, int], ...]
) -> Iterator[Stamp]:
    for entry in _entries(folder):
        with suppress(OSError):  # an editor's file that has disappeared, or a broken link
            found = entry.stat()
            place = (found.st_dev, found.st_ino)
            if S_ISDIR(found.st_mode) and place not in inside:
                yield from _stamps(entry.path, suffix, (*inside, place))
            elif S_ISREG(found.st_mode) and entry.name.endswith(suffix):
                times = (found.st_mtime_ns, found.st_ctime_ns)
                yield (entry.path, found.st_size, *times, found.st_ino)


def _entries(folder: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _fingerprints(
    environ: Mapping[str, str], names: Iterable[str], salt: str
) -> dict[str, str | None]:
    """Return fingerprints of variables' current values, which they don't reveal."""
    key = bytes.fromhex(salt)
    values = ((name, environ.get(name)) for name in names)
    return {n: v and hashlib.blake2b(os.fsencode(v), key=key).hexdigest() for n, v in values}


MOST_KEPT = 32
OF_TABLE = 3  # parts of a field's place: section, table, field
PLAIN = {("lake",), ("start_date",), ("end_date",)}
SECRETIVE = re.compile("[@?;&]")  # stand beside passwords and tokens in a URL


def recall(kept: KeptResult, environ: Mapping[str, str]) -> Any:
    """Return the project that is kept; None if there is none, or it is no longer valid."""
    content = None if has_added() else kept.read(environ)
    if content is None:
        return None
    try:
        return pickle.loads(content)  # noqa: S301 - only this user could write it
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it can be loaded again
        return None


def keep(project: Any, documents: Iterable["Document"], kept: KeptResult, noted: Noting) -> None:
    """Keep a project, unless it may hold a secret; delete old ones."""
    if has_added() or any(map(_may_hold_secrets, documents)):
        return
    kept.write(pickle.dumps(project, pickle.HIGHEST_PROTOCOL), noted)
    with suppress(OSError):
        files = sorted(kept.file.parent.glob("*.kept"), key=lambda file: file.stat().st_mtime)
        for old in files[:-MOST_KEPT]:
            old.unlink(missing_ok=True)


def _may_hold_secrets(document: "Document") -> bool:
    """Return whether a value of the environment is used where it might be a secret."""
    for where, own in document.variables.items():
        value = str(document.at(where))
        is_path = len(where) == OF_TABLE and where[-1] == "path"
        if value != own and (SECRETIVE.search(value) or not (is_path or where in PLAIN)):
            return True
    return False
