"""Snapshot: one version of a Delta table, opened without Spark: its columns, files and rows.

A snapshot never changes: later commits are not in it. A table with a feature that this reader would
read wrongly is refused by that feature's name. Columns starting with `_sluice` are read where an
order or identity needs them, and never shown. Data files never change once written, so a footer
read once is right for every version.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise, zip_longest
from operator import itemgetter
from threading import Lock
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
from cachetools import LRUCache, cached
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow.fs import FileSystem, FileType, LocalFileSystem, SubTreeFileSystem

from sluice.delta.log.files import File, active_files, file_name, kept_rows, mask_of
from sluice.delta.log.opened import CommitCache, commit_of, newest_version, open_version
from sluice.delta.log.position import unread_features
from sluice.delta.places.delta_rs import files_below
from sluice.delta.places.lake_layout import MissingFiles
from sluice.delta.reading.mapped_file import Unusable
from sluice.delta.reading.row_index import TableIndex
from sluice.errors import Retryable, SluiceError, UsageError
from sluice.language.names import QUARANTINE, RESERVED_PREFIX, internal
from sluice.read.key_order import (
    FIRST,
    LAST,
    UNKNOWN,
    Bounds,
    KeyRange,
    Place,
    from_log,
    from_parquet,
    highest,
    lowest,
)

FOOTERS = 24_000_000  # bytes of cached footers, as in files; in memory they take seven times that
BOUNDS = 250_000  # bounds of row groups' columns that are cached
FILES = 4_096  # files whose columns are cached
SNAPSHOTS = 64  # kept, of any tables
DECODED = 48_000_000  # bytes of row groups' columns that stay decoded
FEW = 4  # row groups whose columns stay decoded
MANY = 24  # column chunks that are worth threads


@lru_cache(maxsize=64)
def filesystem(uri: str) -> FileSystem:
    """Return the folder at `uri`, local or in an object store."""
    if "://" in uri:
        return files_below(uri)
    return SubTreeFileSystem(uri, LocalFileSystem(use_mmap=True))


@cached(LRUCache(FOOTERS, getsizeof=lambda kept: kept.serialized_size), lock=Lock())
def footer(uri: str, path: str) -> pq.FileMetaData:
    """Return the footer of one file."""
    with filesystem(uri).open_input_file(path) as source:
        return pq.read_metadata(source)


@lru_cache(maxsize=FILES)
def leaves(uri: str, path: str) -> Mapping[str, tuple[int, ...]]:
    """Return the column chunks of each top-level column of one file; a nested one has several."""
    schema = footer(uri, path).schema
    found: dict[str, tuple[int, ...]] = {}
    for i in range(len(schema)):
        name = schema.column(i).path.partition(".")[0]
        found[name] = (*found.get(name, ()), i)
    return found


def row_groups(uri: str, path: str, indexes: Sequence[int], columns: Sequence[str]) -> pa.Table:
    """Return those of the columns that the file has, of some row groups one after the other."""
    present = [c for c in columns if c in leaves(uri, path)]
    with filesystem(uri).open_input_file(path) as source:
        return _decode(source, uri, path, indexes, present)


def _decode(
    source: pa.NativeFile, uri: str, path: str, indexes: Sequence[int], columns: Sequence[str]
) -> pa.Table:
    is_far = "://" in uri  # for a local file, gathering pieces takes longer than reading them
    reader = pq.ParquetFile(source, metadata=footer(uri, path), pre_buffer=is_far)
    many = len(indexes) * len(columns) >= MANY
    return reader.read_row_groups(list(indexes), columns=list(columns), use_threads=many)


_decoded: LRUCache[tuple[str, str, int, str], pa.ChunkedArray] = LRUCache(
    DECODED, getsizeof=lambda column: column.nbytes
)
_decoding = Lock()


def recalled_group(
    uri: str, path: str, index: int, columns: Sequence[str]
) -> Mapping[str, pa.ChunkedArray]:
    """Return those of the columns that the file has, of one row group, by their names.

    They stay decoded for the next such read. The file is looked for each time, so that nothing is
    returned of one that was deleted.
    """
    known = leaves(uri, path)
    with _decoding:
        found = {c: _decoded.get((uri, path, index, c)) for c in columns if c in known}
    missing = [c for c, column in found.items() if column is None]
    if not missing and filesystem(uri).get_file_info(path).type is FileType.NotFound:
        raise FileNotFoundError(path)
    if missing:
        with filesystem(uri).open_input_file(path) as source:
            read = _decode(source, uri, path, [index], missing)
            found |= {name: read[name] for name in missing}
            with _decoding:
                for name in missing:
                    if read[name].nbytes <= DECODED:
                        _decoded[uri, path, index, name] = read[name]
    return found


@lru_cache(maxsize=FILES)
def stored_bytes(uri: str, path: str, index: int, columns: tuple[str, ...]) -> int:
    """Return the size of columns of a row group in its file."""
    stored, known = footer(uri, path).row_group(index), leaves(uri, path)
    chunks = (stored.column(i) for name in columns for i in known.get(name, ()))
    return sum(chunk.total_compressed_size for chunk in chunks)


@cached(LRUCache(BOUNDS, getsizeof=lambda counts: len(counts[0])), lock=Lock())
def row_counts(uri: str, path: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the number of rows of each row group of a file, and of all before it."""
    meta = footer(uri, path)
    rows = tuple(meta.row_group(i).num_rows for i in range(meta.num_row_groups))
    return rows, tuple(accumulate(rows, initial=0))


@cached(LRUCache(BOUNDS, getsizeof=len), lock=Lock())
def group_bounds(uri: str, path: str, column: str, kind: pa.DataType) -> tuple[Bounds, ...]:
    """Return the bounds of a column in each row group of a file."""
    meta, chunks = footer(uri, path), leaves(uri, path).get(column, ())
    groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
    if len(chunks) != 1:
        return (UNKNOWN,) * len(groups)
    return tuple(
        from_parquet(kind, group.column(chunks[0]).statistics, group.num_rows) for group in groups
    )


class Rising(tuple[tuple[Place, Place], ...]):
    """First and last places of units, neither of which ever falls from one to the next."""

    __slots__ = ()


@cached(LRUCache(BOUNDS, getsizeof=len), lock=Lock())
def group_places(
    uri: str, path: str, column: str, kind: pa.DataType
) -> tuple[tuple[Place, Place], ...]:
    """Return the first and last place of a column's values in each row group."""
    found = [(lowest(b), highest(b)) for b in group_bounds(uri, path, column, kind)]
    rise = all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(found))
    return Rising(found) if rise else tuple(found)


class SnapshotExpired(Retryable):
    """A file of the version being read was vacuumed during the read."""


class NotBuilt(UsageError):
    """A table that the configuration names, but no run has made yet."""


@dataclass(frozen=True)
class DataFile:
    """One Parquet file of a snapshot, with its statistics from the log.

    `kept`: the rows that are still there, if some are not.
    """

    path: str
    rows: int | None
    bounds: Mapping[str, Bounds]
    partition: Mapping[str, Any]
    kept: pa.BooleanArray | None = None


@dataclass(frozen=True)
class RowGroup:
    """One row group of a file, with its statistics from the footer; `start`: its first row."""

    file: DataFile
    index: int
    rows: int
    bounds: Mapping[str, Bounds]
    start: int = 0

    @property
    def kept(self) -> pa.BooleanArray | None:
        """Rows that are still there, if some of the file's are not."""
        return None if self.file.kept is None else mask_of(self.file.kept, self.start, self.rows)


@dataclass(frozen=True)
class Snapshot:
    """A table as of `version`; `actions`: its files in one order, the newest first."""

    name: str
    uri: str
    version: int
    schema: pa.Schema
    partitions: frozenset[str]
    actions: pa.Table
    kept: Mapping[str, pa.BooleanArray] = field(default_factory=dict)

    @classmethod
    def open(
        cls, name: str, uri: str, version: int | None = None, *, build: str = ""
    ) -> "Snapshot":
        """Return the table at `uri`, at its head or at `version`.

        `build` is the command that makes it. Of each version, the last snapshot is kept. Raises
        UsageError for a version that the table can't have.
        """
        if version is not None and (type(version) is not int or version < 0):
            hint = "a version is a whole number, from 0 on"
            raise UsageError(f"{version!r} is not a version of table {name!r}", hint=hint)
        commit = commit_of(uri, version)
        if (known := _snapshots.find(commit)) is not None and known.name == name:
            return known
        table = open_delta(name, uri, version, build=build)
        refuse_unreadable(name, table)
        schema = pa.schema(table.schema().to_arrow())
        newest_first = [("modification_time", "descending"), ("path", "ascending")]
        actions = active_files(table).sort_by(newest_first)
        partitions = frozenset(table.metadata().partition_columns)
        kept = kept_rows(table)
        found = cls(name, uri, table.version(), schema, partitions, actions, kept)
        if commit and commit[1] == found.version:
            _snapshots.keep(commit, found)
        return found

    @cached_property
    def visible(self) -> tuple[str, ...]:
        """Columns that a reader sees."""
        return tuple(n for n in self.schema.names if not n.startswith(RESERVED_PREFIX))

    @cached_property
    def visible_schema(self) -> pa.Schema:
        return pa.schema([self.schema.field(c) for c in self.visible])

    def type_of(self, column: str) -> pa.DataType:
        return self.schema.field(column).type

    def count(self) -> int:
        """Return the number of rows, from statistics; only files without them are opened."""
        stored = sum(
            f.rows if f.rows is not None else footer(self.uri, f.path).num_rows
            for f in self.files(())
        )
        return stored - int(sum(mask.false_count for mask in self.kept.values()))

    def files(self, columns: Iterable[str], within: Iterable[KeyRange] = ()) -> list[DataFile]:
        """Return every data file, with the bounds of these columns.

        Most files that are outside a range are skipped.
        """
        known = {c: self._bounds_of(c) for c in columns}
        chosen: Sequence[int] = range(len(self._files))
        for key_range in within:
            chosen = _within(key_range, chosen, self._places_of)
        return [
            DataFile(
                path,
                rows,
                {c: bounds[i] for c, bounds in known.items()},
                partition,
                self.kept.get(file_name(path)) if self.kept else None,
            )
            for i in chosen
            for path, rows, partition in (self._files[i],)
        ]

    def row_groups(
        self, file: DataFile, columns: Iterable[str], within: Iterable[KeyRange] = ()
    ) -> list[RowGroup]:
        """Return the file's row groups with the bounds of these columns; opens its footer.

        Most row groups that are outside a range are skipped.
        """
        try:
            opened = footer(self.uri, file.path)
        except FileNotFoundError:
            raise self.report_expired() from None
        rows, starts = row_counts(self.uri, file.path)

        def places_of(column: str) -> Sequence[tuple[Place, Place]]:
            if column in file.partition:
                bounds = file.bounds[column]
                return [(lowest(bounds), highest(bounds))] * len(rows)
            return group_places(self.uri, file.path, column, self.type_of(column))

        chosen: Sequence[int] = range(opened.num_row_groups)
        for key_range in within:
            chosen = _within(key_range, chosen, places_of)
        stored = [c for c in columns if c not in file.partition]
        known = {c: group_bounds(self.uri, file.path, c, self.type_of(c)) for c in stored}
        fixed = {c: file.bounds[c] for c in columns if c in file.partition}
        return [
            RowGroup(file, i, rows[i], fixed | {c: known[c][i] for c in stored}, starts[i])
            for i in chosen
        ]

    def read(self, group: RowGroup, columns: Iterable[str], *, again: bool = False) -> pa.Table:
        """Return the row group's rows that are still there, in the table's types."""
        rows, kept = self.read_stored([group], columns, again=again), group.kept
        return rows if kept is None else rows.filter(kept)

    def read_stored(
        self, groups: Sequence[RowGroup], columns: Iterable[str], *, again: bool = False
    ) -> pa.Table:
        """Return all rows of one file's row groups, one after the other, in the table's types.

        Columns that the file lacks are null. Those of a few groups that may be read `again` stay
        decoded.
        """
        file, fields = groups[0].file, [self.schema.field(c) for c in columns]
        stored = [f.name for f in fields if f.name not in file.partition]
        try:
            if again and len(groups) <= FEW:
                parts = [recalled_group(self.uri, file.path, g.index, stored) for g in groups]
                known = parts[0] if len(parts) == 1 else _join(parts)
            else:
                found = row_groups(self.uri, file.path, [g.index for g in groups], stored)
                known = dict(zip(found.column_names, found.columns, strict=True))
        except FileNotFoundError:
            raise self.report_expired() from None
        rows = sum(group.rows for group in groups)
        columns = [_column(known.get(field.name), file, rows, field) for field in fields]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

    def look_up(
        self, file: DataFile, values: Mapping[str, Any], columns: Sequence[str]
    ) -> pa.Table | None:
        """Return columns of some rows of a file, with all that have the values of a key.

        None if this machine has no index of the file by one of the key's columns.
        """
        if not self._index.is_begun:
            return None
        data = File(quote(file.path), *self._stamps.get(file.path, ()))
        for column in (name for name in values if name not in file.partition):
            if (index := self._index.of(data, column)) is None:
                continue
            fields = pa.schema([self.schema.field(c) for c in columns])
            stored = pa.schema([f for f in fields if f.name not in file.partition])
            with suppress(Unusable, pa.ArrowException, OverflowError):
                numbers = index.find_value(column, values[column])
                if file.kept is not None:
                    kept = mask_of(file.kept, 0, index.count).take(pa.array(numbers))
                    numbers = numbers[kept.to_numpy(zero_copy_only=False)]
                found = index.take(numbers, stored)
                known = dict(zip(found.column_names, found.columns, strict=True))
                filled = [_column(known.get(f.name), file, len(numbers), f) for f in fields]
                return pa.Table.from_arrays(filled, schema=fields)
        return None

    @cached_property
    def _index(self) -> TableIndex:
        """This machine's index of the rows; it is looked up, never made."""
        return TableIndex(self.uri)

    @cached_property
    def _stamps(self) -> Mapping[str, tuple[int, int]]:
        """Bytes and time of each file by its path: those of its index in a store."""
        stamps = self.actions.select(["path", "size_bytes", "modification_time"]).to_pylist()
        return {unquote(f["path"]): (f["size_bytes"], f["modification_time"]) for f in stamps}

    @cached_property
    def starts(self) -> Mapping[str, int]:
        """Number of stored rows before those of each file, by its path."""
        every = self.files(())
        rows = (footer(self.uri, f.path).num_rows if f.rows is None else f.rows for f in every)
        return dict(zip((file.path for file in every), accumulate(rows, initial=0), strict=False))

    @cached_property
    def _files(self) -> list[tuple[str, int | None, dict[str, Any]]]:
        names = {"path", "num_records", *(f"partition.{p}" for p in self.partitions)}
        kept = [name for name in self.actions.column_names if name in names]
        return [
            (
                unquote(stats["path"]),
                stats.get("num_records"),
                {p: stats[f"partition.{p}"] for p in self.partitions},
            )
            for stats in self.actions.select(kept).to_pylist()
        ]

    @cached_property
    def _known(self) -> dict[str, list[Bounds]]:
        return {}

    @cached_property
    def _placed(self) -> dict[str, list[tuple[Place, Place]]]:
        return {}

    def _places_of(self, column: str) -> list[tuple[Place, Place]]:
        if column not in self._placed:
            self._placed[column] = [(lowest(b), highest(b)) for b in self._bounds_of(column)]
        return self._placed[column]

    def _bounds_of(self, column: str) -> list[Bounds]:
        if column not in self._known:
            kinds = ("min", "max", "null_count", "partition")
            wanted = {"num_records", *(f"{kind}.{column}" for kind in kinds)}
            kept = [name for name in self.actions.column_names if name in wanted]
            rows = self.actions.select(kept).to_pylist()
            self._known[column] = [from_log(self.type_of(column), stats, column) for stats in rows]
        return self._known[column]

    def missing(self) -> list[str]:
        """Return the data files that are not there."""
        paths = [file.path for file in self.files(())]
        found = filesystem(self.uri).get_file_info(paths)
        return [p for p, f in zip(paths, found, strict=True) if f.type is FileType.NotFound]

    def report_expired(self) -> SluiceError:
        """Return the error for a file that is not there: MissingFiles of the newest version."""
        if self.version == newest_version(self.uri) and (paths := self.missing()):
            return MissingFiles(self.uri, self.version, paths)
        return SnapshotExpired(
            f"version {self.version} of {self.name!r} can't be read any more: "
            "a file of it was vacuumed",
            hint="open the table again to read its newest version",
        )


_snapshots: CommitCache[Snapshot] = CommitCache(SNAPSHOTS)


def _within(
    key_range: KeyRange,
    units: Sequence[int],
    places_of: Callable[[str], Sequence[tuple[Place, Place]]],
) -> Sequence[int]:
    """Return the units that may hold rows of the range, looking at one column at a time.

    After columns that have one value in the range, the next one's places count by themselves.
    """
    bounds = zip_longest(key_range.low or (), key_range.high or ())
    for column, (first, last) in zip(key_range.columns, bounds, strict=False):
        known, low, high = places_of(column), first or FIRST, last or LAST
        if isinstance(known, Rising) and isinstance(units, range):
            begin = bisect_left(known, low, units.start, units.stop, key=itemgetter(1))
            units = range(begin, bisect_right(known, high, begin, units.stop, key=itemgetter(0)))
        else:
            units = [i for i in units if known[i][0] <= high and known[i][1] >= low]
        if low != high:
            break
    return units


def _join(parts: Sequence[Mapping[str, pa.ChunkedArray]]) -> Mapping[str, pa.ChunkedArray]:
    """Return the columns of parts of one file, one part after the other."""
    return {
        name: pa.chunked_array([chunk for part in parts for chunk in part[name].chunks])
        for name in parts[0]
    }


def _column(values: Any, file: DataFile, rows: int, field: pa.Field) -> Any:
    if values is not None:
        return values if values.type == field.type else values.cast(field.type)
    return pa.repeat(pa.scalar(file.partition.get(field.name), field.type), rows)


def open_delta(name: str, uri: str, version: int | None = None, *, build: str = "") -> DeltaTable:
    """Return the Delta table; an error about a missing one names the command that makes it."""
    try:
        if version is not None and commit_of(uri, version) is None:
            head = open_version(uri).version()
            if version > head:  # which delta-rs would look for commit by commit
                raise _no_version(name, version, "there is none yet", head)
        return open_version(uri, version)
    except TableNotFoundError:
        if name.endswith(internal("", QUARANTINE)):
            raise NotBuilt(f"{name} is empty: no row was ever quarantined") from None
        hint = f"run `{build}`" if build else ""
        raise NotBuilt(f"table {name!r} has not been built yet", hint=hint) from None
    except DeltaError as error:
        if version is None:
            raise
        raise _no_version(name, version, "its log is gone", open_version(uri).version()) from error


def _no_version(name: str, version: int, why: str, head: int) -> UsageError:
    return UsageError(
        f"version {version} of table {name!r} can't be read: {why}",
        hint=f"the newest version is {head}",
    )


def refuse_unreadable(name: str, table: DeltaTable) -> None:
    """Raise for a table with features that this reader does not support."""
    if features := unread_features(table):
        raise UsageError(
            f"table {name!r} uses {', '.join(sorted(features))}, which is not read without Spark",
            hint="read it with Spark, or rewrite it without that table feature",
        )
