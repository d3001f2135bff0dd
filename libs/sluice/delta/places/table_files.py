"""The files of a table, on a disk or in a store: opened, written, and created by one writer only.

Also the test that a store lets only one of several commits of a version win, as Delta requires.

A commit is a file that must not exist yet. On a disk, it is a draft, then a hard link to its place,
which the file system grants to one writer. In a store, it is one request with a condition, made by
obstore: the clients of delta-rs and pyarrow have no public call for it.

Not every server that speaks S3 respects `If-None-Match`. With others, commits would silently
overwrite each other. So before the first commit to a lake RIVALS commits of one version race. A
note in the lake saves later processes the race.
"""

import hashlib
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Field, Schema
from deltalake.exceptions import CommitFailedError
from deltalake.schema import PrimitiveType
from pyarrow.fs import PyFileSystem

from sluice.declare.stores import S3, keys_of_environ, scheme_of, store_of
from sluice.delta.places.delta_rs import (
    RETRIES,
    endpoint_of,
    files_below,
    open_table,
    options,
    region,
)
from sluice.delta.places.folders import LOG, SmallFiles, local_path, remove, sync
from sluice.errors import StoreRefused
from sluice.language.names import STORE

if TYPE_CHECKING:
    from obstore.store import ObjectStore

Encode = Callable[[Any], None]  # writes a file's bytes to a path or to a sink of Arrow's
CONDITIONS = {"conditional_put": "etag", "checksum_algorithm": "sha256"}  # as for delta-rs
PATIENCE = timedelta(seconds=30)
AT_ONCE_BYTES = 8_000_000  # a file of which parts are read takes longer by as many requests
OF_DELTA_RS = (*RETRIES, *S3.options, "endpoint_url", "region", "allow_http")  # options for it


class TableFiles(ABC):
    """The files of one table, by their paths in its log."""

    @abstractmethod
    def open(self, path: str) -> pq.ParquetFile:
        """Open a data file; the caller closes it."""

    @abstractmethod
    def write(self, path: str, encode: Encode) -> int:
        """Write a file; return its bytes."""

    @abstractmethod
    def commit(self, version: int, text: str, named: Iterable[str]) -> None:
        """Create the commit of a version, after the files that it names are safe.

        Raises FileExistsError if there is one.
        """


@dataclass(frozen=True)
class FilesOnDisk(TableFiles):
    """Those in a folder of this machine."""

    folder: Path

    def open(self, path: str) -> pq.ParquetFile:
        return pq.ParquetFile(self.folder / unquote(path), memory_map=True)

    def write(self, path: str, encode: Encode) -> int:
        place = self.folder / unquote(path)
        place.parent.mkdir(exist_ok=True, parents=True)
        encode(place)
        return place.stat().st_size

    def commit(self, version: int, text: str, named: Iterable[str]) -> None:
        log = self.folder / LOG
        draft = log / f"_commit_{uuid.uuid4()}.json.tmp"
        draft.write_text(text, encoding="utf-8")
        try:
            sync([*self._with_folders(named), draft])
            os.link(draft, log / f"{version:020d}.json")
            sync([log])
        finally:
            draft.unlink()

    def _with_folders(self, named: Iterable[str]) -> Iterator[Path]:
        """Yield files, then the folders that hold their names."""
        files = [self.folder / unquote(name) for name in named]
        yield from files
        for file in files:
            yield from (above for above in file.parents if above.is_relative_to(self.folder))


@dataclass(frozen=True)
class FilesInStore(TableFiles):
    """Those below a URI."""

    uri: str

    def open(self, path: str) -> pq.ParquetFile:
        file = self._files.open_input_file(unquote(path))
        if file.size() > AT_ONCE_BYTES:
            return pq.ParquetFile(file, pre_buffer=True)
        with file:
            return pq.ParquetFile(pa.BufferReader(file.read_buffer()))

    def write(self, path: str, encode: Encode) -> int:
        sink = pa.BufferOutputStream()
        encode(sink)
        data = sink.getvalue()
        self._client.put(unquote(path), memoryview(data).cast("B"))
        return int(data.size)

    def commit(self, version: int, text: str, named: Iterable[str]) -> None:  # noqa: ARG002 # put
        from obstore.exceptions import AlreadyExistsError

        try:
            self._client.put(f"{LOG}/{version:020d}.json", text.encode(), mode="create")
        except AlreadyExistsError:
            raise FileExistsError(version) from None

    @cached_property
    def _files(self) -> PyFileSystem:
        return files_below(self.uri)

    @cached_property
    def _client(self) -> "ObjectStore":
        return connect(self.uri)


def table_files(uri: str) -> TableFiles:
    """Return the files of the table at a URI. In a store, `may_create` must hold."""
    folder = local_path(uri)
    return FilesInStore(uri) if folder is None else FilesOnDisk(Path(folder))


def may_create(uri: str) -> bool:
    """True if commits can be created here: on a disk, or in a store to which obstore has keys."""
    if local_path(uri) is not None:
        return True
    if find_spec("obstore") is None:
        return False
    return scheme_of(uri) not in S3.schemes or keys_of_environ() is not None


def connect(uri: str) -> "ObjectStore":
    """Return the client for the folder of a table, with the options of delta-rs."""
    from obstore.store import from_url

    asked = options(uri) or {}
    config = {name: value for name, value in asked.items() if name not in OF_DELTA_RS}
    if scheme_of(uri) in S3.schemes:
        known = {"endpoint": endpoint_of(uri), "region": region(), **(keys_of_environ() or {})}
        config = {name: value for name, value in known.items() if value} | CONDITIONS
    named: dict[str, Any] = {
        "config": config,
        "client_options": {"allow_http": endpoint_of(uri).startswith("http://")},
        "retry_config": {"max_retries": int(RETRIES["max_retries"]), "retry_timeout": PATIENCE},
    }
    return from_url(uri, **named)


RIVALS = 32
NOTE = "exclusive"
_ONCE = CommitProperties(max_commit_retries=0)


def check_exclusive(table_uri: str) -> None:
    """Raise StoreRefused if the store of a table would let two commits of a version win.

    Costs a race at the first commit to a lake, then one small file in a process.
    """
    if options(table_uri) is not None:
        lake = table_uri.rstrip("/").rsplit("/", 2)[0].partition("/__")[0]
        _check_lake(lake, endpoint_of(lake))


@lru_cache(maxsize=64)
def _check_lake(lake: str, endpoint: str) -> None:
    notes = SmallFiles(f"{lake}/{STORE}")
    # The mark differs in another store, and in a copy of the lake.
    mark = hashlib.sha256(f"{lake}\n{endpoint}".encode()).hexdigest().encode()
    if notes.read(NOTE) == mark:
        return
    if (count := winners(f"{lake}/{STORE}/{uuid.uuid4().hex}")) != 1:
        kind = store_of(lake)
        assert kind, "a lake in an unknown store is refused when the project is loaded"
        raise StoreRefused(
            f"the store of {lake} let {count} of {RIVALS} commits of one version win: tables would "
            "lose rows",
            hint=f"use a store, or a release of it, that lets one of several win: {kind.exclusive}",
        )
    notes.write(NOTE, mark)


def winners(uri: str) -> int:
    """Return how many of RIVALS commits of one version win, in a table made for it."""
    column = Field("n", PrimitiveType("long"))
    DeltaTable.create(uri, Schema([column]), storage_options=options(uri))
    rivals, ready = [open_table(uri) for _ in range(RIVALS)], Barrier(RIVALS)

    def commit(rival: DeltaTable) -> bool:
        ready.wait()
        try:
            rival.create_write_transaction([], "append", rival.schema(), commit_properties=_ONCE)
        except CommitFailedError:
            return False
        return True

    try:
        with ThreadPoolExecutor(RIVALS) as threads:
            return sum(threads.map(commit, rivals))
    finally:
        remove(uri)
