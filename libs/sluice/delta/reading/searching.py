"""Rows of a table's files that have some of the wanted values, found in this process.

A batch of some thousand facts matches a small part of a large dimension. A changed dimension row
matches few of many facts. Finding them here takes tens of milliseconds; sending or scanning the
whole table by Spark takes seconds. The result may hold too many rows, never too few: the join
itself is Spark's.

Files with an index are looked up, and Arrow searches the others. The compared columns are read
first, and the others only of row groups with matching rows.
"""

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql.types import StructType

from sluice.delta.log.files import FeedSize, File, active_files, file_name, kept_rows, size_of
from sluice.delta.log.opened import open_version
from sluice.delta.places.table_files import TableFiles, table_files
from sluice.delta.reading.local import arrow_schema, is_bare, to_spark_types, types_of
from sluice.delta.reading.mapped_file import Unusable
from sluice.delta.reading.row_index import Codes, Numbers, TableIndex, codes_of
from sluice.delta.reading.wanted import (
    ROW,
    FoundRows,
    KeySpans,
    Span,
    TypeMismatch,
    WantedValues,
    are_among,
    files_far,
    gather,
    is_exact,
    keep_found,
    may_hold,
    spans_of,
)
from sluice.limits import Limits

FILES = 8  # searched at a time
TOGETHER_BYTES = 64_000_000  # of a file's row groups, not compressed; all of their rows may match

WORTH_BYTES = 8_000_000  # of files, of which more are indexed
AT_ONCE_BYTES = 256_000_000  # of files that one search indexes, or half of what is left
FEW = 8  # one of so many rows of a file is looked up; of more, the file is searched


@dataclass(frozen=True)
class SearchedVersion:
    """One version of a table that is searched, and the columns wanted from it; none means all."""

    uri: str
    version: int
    limits: Limits
    columns: Sequence[str] = ()

    @property
    def is_large(self) -> bool:
        """True if Spark would scan it; smaller tables are read here in any case."""
        return self.bytes > self.limits.read_here_bytes

    @property
    def may_search(self) -> bool:
        """True if it is small enough to be searched here."""
        return self.bytes <= self.limits.searched_bytes

    @property
    def types(self) -> StructType:
        """Columns of the table in Spark's types."""
        return types_of(self.uri, self.version)

    @cached_property
    def _table(self) -> DeltaTable:
        return open_version(self.uri, self.version)

    @cached_property
    def _schema(self) -> pa.Schema:
        return arrow_schema(self.uri, self.version)

    @cached_property
    def bytes(self) -> int:
        """Bytes of its files."""
        return size_of(self._table).bytes

    def find_rows(
        self, wanted: Iterable[WantedValues], span: Span | None = None
    ) -> pa.Table | None:
        """Return the rows whose values all match one of `wanted`, and are within `span`.

        None if they can't be determined, or are too many.
        """
        return self.find_at_most(wanted, self.limits.handed_rows, span)

    def size_near(self, wanted: Iterable[WantedValues]) -> FeedSize | None:
        """Return the size of the files that may hold such rows; None if values can't be compared.

        Read from the log alone.
        """
        known = _all_exact(self._schema, wanted)
        return None if known is None else size_of(self._table, files_far(self._table, known))

    def most_rows(self, wanted: Iterable[WantedValues]) -> int | None:
        """Return the most rows that may be found, by indexes and the log; None if unknown."""
        known = _all_exact(self._schema, wanted) if self.may_search else None
        if known is None:
            return None
        parts = self._table.metadata().partition_columns
        files = files_of(self._table, files_far(self._table, known))
        return FileSearch(self.uri, self._schema, known, parts).most_rows(files)

    def find_at_most(
        self, wanted: Iterable[WantedValues], most: int, span: Span | None = None
    ) -> pa.Table | None:
        """Return rows like `find_rows`; None if more than `most`."""
        if is_bare():
            return self._chosen.empty_table()
        pages = self.find_by_file(wanted, most, span)
        if pages is None:
            return None
        found = [as_stored(page, self._chosen) for page in pages.values()]
        return to_spark_types(pa.concat_tables([self._chosen.empty_table(), *found]))

    def find_by_file(
        self, wanted: Iterable[WantedValues], most: int, span: Span | None = None
    ) -> Mapping[str, pa.Table] | None:
        """Return such rows by their file, with their numbers in it as ROW; or None."""
        schema = self._schema
        known = _all_exact(schema, wanted) if self.may_search else None
        if known is None:
            return None
        parts = self._table.metadata().partition_columns
        with suppress(TypeMismatch):
            return self._find(FileSearch(self.uri, schema, known, parts, most + 1, span), most)
        return None

    def _find(self, search: "FileSearch", most: int) -> Mapping[str, pa.Table] | None:
        """Return the rows of a search by file; None if they are more than `most`."""
        pages, count = dict[str, pa.Table](), 0
        files = files_of(self._table, files_far(self._table, search.wanted))
        for path, page in search.rows(files, self._chosen.names):
            pages[path] = page
            count += page.num_rows
            if count > most:
                return None
        if not self.columns and len(search.wanted) == 1 and not search.span:
            keep_found(self.uri, self.version, FoundRows(search.wanted[0], pages))
        return pages

    @cached_property
    def _chosen(self) -> pa.Schema:
        """The wanted columns in the table's types."""
        return pa.schema([self._schema.field(name) for name in self.columns or self._schema.names])


def files_of(table: DeltaTable, far: Collection[str] = ()) -> list[File]:
    """Return the files of a version of a table; those of these paths are far."""
    kept, parts = kept_rows(table), table.metadata().partition_columns
    return [
        File(
            file["path"],
            file["size_bytes"],
            file["modification_time"],
            file["path"] in far,
            kept.get(file_name(file["path"])),
            {name: file[f"partition.{name}"] for name in parts},
            file["num_records"],
        )
        for file in active_files(table).to_pylist()
    ]


def index_files(uri: str, version: int) -> int:
    """Index the files of a version by what its rows were searched by here; return their number."""
    index, left = TableIndex(uri), set[str]()
    if not index.is_begun:
        return 0
    files, schema = files_of(open_version(uri, version)), arrow_schema(uri, version)
    if sum(file.bytes for file in files) <= WORTH_BYTES:
        return 0
    for column, read in index.searched().items():
        some = [file for file in files if not ((kept := index.of(file, column)) and kept.has(read))]
        index.build(some, column, read, schema, files)
        left |= {file.path for file in some if index.of(file, column)}
    return len(left)


def as_stored(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows' columns in a table's types."""
    chosen = rows.select(schema.names)
    return chosen if chosen.schema.equals(schema) else to_spark_types(chosen).cast(schema)


def _all_exact(schema: pa.Schema, wanted: Iterable[WantedValues]) -> list[WantedValues] | None:
    exact = [_exact(schema, values) for values in wanted]
    known = [values for values in exact if values]
    return known if len(known) == len(exact) else None


def _exact(schema: pa.Schema, wanted: WantedValues) -> WantedValues | None:
    """Return the values in the table's types; None if Spark may treat different ones as equal."""
    found = {}
    for name, values in wanted.items():
        type_ = schema.field(name).type
        if pa.types.is_integer(type_) and pa.types.is_integer(values.type):
            values = values.cast(type_, safe=False)  # noqa: PLW2901 - at most it finds too much
        if type_ != values.type or not is_exact(type_):
            return None
        found[name] = values
    return found


@dataclass(frozen=True)
class FileSearch:
    """Columns of a table's files, the wanted values, and the largest number of rows per file, if
    limited.

    A row matches if all its values are among those of one of `wanted`, and one is within `span`,
    whose column is in the files and is read. A column that a file lacks is null in it.
    """

    uri: str
    stored: pa.Schema
    wanted: Sequence[WantedValues]
    parts: Collection[str] = ()
    most: int | None = None
    span: Span | None = None

    def rows(self, files: Sequence[File], columns: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
        """Yield the wanted rows of each file that may have some, with their numbers as ROW.

        `files`: all of the version.

        Raises TypeMismatch for a file with columns of other types.
        """
        left = yield from self._look_up([*filter(self._is_near, files)], columns)
        if sum(file.bytes for file in left) > WORTH_BYTES and self._index(left, files, columns):
            left = yield from self._look_up(left, columns)
        if left:
            for file, rows in ArrowSearch(table_files(self.uri), self, columns).scan(left):
                yield file.path, drop_lost(rows, file.kept)

    def most_rows(self, files: Iterable[File]) -> int | None:
        """Return the most rows that may be wanted of files, by their indexes or counts; or None."""
        counts = [self._most_of(file) for file in files if self._is_near(file)]
        known = [count for count in counts if count is not None]
        return sum(known) if self._codes and len(known) == len(counts) else None

    def _most_of(self, file: File) -> int | None:
        count = 0
        for column, codes in self._codes:
            index = self._table_index.of(file, column)
            if index is None:
                return file.rows
            count += len(index.find(column, codes))
        return count

    def _is_near(self, file: File) -> bool:
        return not file.is_far and any(map(file.may_have, self.of_parts))

    def _look_up(
        self, near: Sequence[File], columns: Sequence[str]
    ) -> Generator[tuple[str, pa.Table], None, Sequence[File]]:
        """Yield the wanted rows of indexed files; return the other files."""
        if not self._codes:
            return near
        left = list[File]()

        def known() -> Iterator[tuple[File, pa.Table]]:
            for one in near:
                rows = None
                with suppress(Unusable):
                    rows = self._indexed_rows(one, columns)
                if rows is None:
                    left.append(one)
                elif rows.num_rows:
                    yield one, rows

        for some in gather(known()):
            yield from self._compare(some, columns)
        return left

    def _indexed_rows(self, file: File, columns: Sequence[str]) -> pa.Table | None:
        """Return the rows of a file whose codes are wanted, with all columns that are compared.

        None if the file has no index, or many are wanted.
        """
        index, found, names = None, [], self._read_columns(columns)
        for column, codes in self._codes:
            index = self._table_index.of(file, column)
            if index is None or not index.has(names):
                return None
            found.append(index.find(column, codes))
        if index is None or FEW * sum(map(len, found)) > index.count:
            return None
        numbers = found[0] if len(found) == 1 else np.unique(np.concatenate(found))
        fields = [field for field in self.stored if field.name in names]
        rows = index.take(numbers, pa.schema([f for f in fields if f.name not in file.constants]))
        for name in file.constants.keys() & names:
            value = pa.scalar(file.constants[name], self.stored.field(name).type)
            rows = rows.append_column(name, pa.repeat(value, len(numbers)))
        return rows.select([f.name for f in fields]).append_column(ROW, pa.array(numbers))

    def _compare(
        self, found: Sequence[tuple[File, pa.Table]], columns: Sequence[str]
    ) -> Iterator[tuple[str, pa.Table]]:
        """Yield those rows of each file whose values are wanted; all are compared at once."""
        is_wanted = are_among(pa.concat_tables(page for _, page in found), self.distinct)
        at = 0
        for file, page in found:
            wanted = page.select([*columns, ROW])
            mask = is_wanted.slice(at, page.num_rows)
            at += page.num_rows
            some = wanted.filter(mask)
            some = some.filter(self.span.condition) if self.span else some
            yield file.path, drop_lost(some, file.kept)

    def _index(self, files: Sequence[File], every: Sequence[File], columns: Sequence[str]) -> bool:
        """Index columns of files, of all those of the version, if the table was searched before.

        True if some are.
        """
        read = self._read_columns(columns)
        compared = {column for column, _ in self._codes}
        due = [column for column in compared if self._table_index.is_due(column, read)]
        ends = [*accumulate(file.bytes for file in files)]
        most = max(AT_ONCE_BYTES, ends[-1] // 2)
        some = [file for file, end in zip(files, ends, strict=True) if end <= most]
        for column in due:
            self._table_index.build(some or files[:1], column, read, self.stored, every)
        return bool(due)

    def _read_columns(self, columns: Sequence[str]) -> set[str]:
        """Return these columns and those that are compared."""
        return {*columns, *(name for one in self.distinct for name in one)}

    @cached_property
    def _table_index(self) -> TableIndex:
        return TableIndex(self.uri)

    @cached_property
    def distinct(self) -> Sequence[Mapping[str, pa.Array]]:
        """The wanted values in the table's types."""
        return [
            {n: pc.unique(some).cast(self.stored.field(n).type) for n, some in one.items()}
            for one in self.wanted
        ]

    @cached_property
    def of_parts(self) -> Sequence[Mapping[str, set[Any]]]:
        """The wanted values of columns that the files' partitions hold."""
        return [
            {n: {*some.to_pylist()} for n, some in one.items() if n in self.parts}
            for one in self.distinct
        ]

    @cached_property
    def spans(self) -> Sequence[KeySpans]:
        """The clusters of the wanted whole numbers."""
        return spans_of(self.distinct)

    @cached_property
    def _codes(self) -> Sequence[tuple[str, Codes]]:
        """For each of `wanted`, the column with most values, and their codes in order.

        Empty if one has no column in the files, or values of other types.
        """
        try:
            known = [{n: v for n, v in one.items() if n not in self.parts} for one in self.distinct]
            chosen = [max(one, key=lambda name: len(one[name])) for one in known]
            return [(n, np.unique(codes_of(one[n]))) for n, one in zip(chosen, known, strict=True)]
        except (pa.ArrowInvalid, ValueError):
            return ()


def drop_lost(rows: pa.Table, kept: pa.BooleanArray | None) -> pa.Table:
    """Drop rows that the file has lost; the mask may end before the file does."""
    if kept is None or not rows.num_rows:
        return rows
    number = rows[ROW].cast(pa.int64())
    is_known = pc.less(number, len(kept))
    live = pc.take(kept, pc.min_element_wise(number, len(kept) - 1))
    return rows.filter(pc.or_(pc.invert(is_known), live))


@dataclass(frozen=True)
class ArrowSearch:
    """A search in files of a table."""

    place: TableFiles
    search: "FileSearch"
    columns: Sequence[str]

    def scan(self, files: Sequence[File]) -> Iterator[tuple[File, pa.Table]]:
        """Yield the wanted rows of each file, with their numbers as ROW.

        Rows that the file has lost are among them. Raises TypeMismatch for a file whose columns
        have values of other types.
        """
        with ThreadPoolExecutor(FILES) as pool:
            for at in range(0, len(files), FILES):
                some = files[at : at + FILES]
                yield from zip(some, pool.map(self._search, some), strict=True)

    def _search(self, file: File) -> pa.Table:
        near = [at for at, parts in enumerate(self.search.of_parts) if file.may_have(parts)]
        distinct = [self.search.distinct[at] for at in near]
        spans = [self.search.spans[at] for at in near]
        span, most = self.search.span, self.search.most
        left = None if most is None else most + file.lost
        compared = {n for one in distinct for n in one} | ({span.column} if span else set())
        schema = pa.schema([*map(self.search.stored.field, self.columns), (ROW, pa.int64())])
        found = [schema.empty_table()]
        try:
            with self.place.open(file.path) as opened:
                for groups in _near_groups(opened, spans):
                    rows = self._read(opened, file, groups, compared)
                    rows = rows.filter(are_among(rows, distinct))
                    rows = rows.filter(span.condition) if span else rows
                    if rows.num_rows:
                        found.append(self._numbered(opened, file, rows[ROW]).cast(schema))
                    if left is not None and sum(page.num_rows for page in found) >= left:
                        break
        except pa.ArrowInvalid as error:
            raise TypeMismatch from error
        return pa.concat_tables(found).slice(0, left)

    def _read(
        self, opened: pq.ParquetFile, file: File, groups: Sequence[int], names: Iterable[str]
    ) -> pa.Table:
        """Return columns of row groups, with the numbers of their rows."""
        ends = np.cumsum(_counts(opened))
        starts = ends - _counts(opened)
        numbers = np.concatenate([np.arange(starts[group], ends[group]) for group in groups])
        stored = [name for name in names if name not in file.constants]
        rows = columns_of(opened, groups, stored, self.search.stored)
        return self._with_constants(pa.table({ROW: numbers}), rows, file, names)

    def _numbered(self, opened: pq.ParquetFile, file: File, numbers: pa.ChunkedArray) -> pa.Table:
        """Return the wanted columns of some rows of a file, with their numbers."""
        columns = self.columns
        stored = [self.search.stored.field(name) for name in columns if name not in file.constants]
        rows = numbered_rows(opened, numbers.to_numpy(), pa.schema(stored))
        found = self._with_constants(pa.table({ROW: numbers}), rows, file, columns)
        return found.select([*columns, ROW])

    def _with_constants(
        self, numbered: pa.Table, rows: pa.Table, file: File, names: Iterable[str]
    ) -> pa.Table:
        """Append columns, from `rows` or, those of the file's partition, of one value."""
        for name in names:
            if name in file.constants:
                value = pa.scalar(file.constants[name], self.search.stored.field(name).type)
                numbered = numbered.append_column(name, pa.repeat(value, numbered.num_rows))
            else:
                numbered = numbered.append_column(name, rows[name])
        return numbered


def _near_groups(opened: pq.ParquetFile, spans: Sequence[KeySpans]) -> Iterator[list[int]]:
    """Yield row groups that may hold wanted values, some at a time."""
    some, held = list[int](), 0
    meta, names = opened.metadata, {name for one in spans for name in one}
    places = {opened.schema.column(at).path: at for at in range(meta.num_columns)}
    known = {name: places[name] for name in names if name in places}
    for number in range(meta.num_row_groups):
        group, bounds = meta.row_group(number), dict[str, int]()
        for name, at in known.items():
            statistics = group.column(at).statistics
            if statistics is not None and statistics.has_min_max:
                bounds |= {f"min.{name}": statistics.min, f"max.{name}": statistics.max}
        if not may_hold(bounds, spans):
            continue
        if some and held + group.total_byte_size > TOGETHER_BYTES:
            yield some
            some, held = [], 0
        some.append(number)
        held += group.total_byte_size
    if some:
        yield some


def _counts(file: pq.ParquetFile) -> Numbers:
    meta = file.metadata
    return np.array([meta.row_group(i).num_rows for i in range(meta.num_row_groups)], np.int64)


def numbered_rows(file: pq.ParquetFile, numbers: Numbers, schema: pa.Schema) -> pa.Table:
    """Return the numbered rows of a file, by whole row groups."""
    sizes = _counts(file)
    ends = np.cumsum(sizes)
    group = np.searchsorted(ends, numbers, side="right")
    groups, nth = np.unique(group, return_inverse=True)
    starts = np.cumsum(sizes[groups]) - sizes[groups]
    found = columns_of(file, groups.tolist(), schema.names, schema)
    return found.take(numbers - (ends - sizes)[group] + starts[nth])


def columns_of(
    file: pq.ParquetFile, groups: Sequence[int], names: Iterable[str], schema: pa.Schema
) -> pa.Table:
    """Return columns of row groups in the table's types; those that the file lacks are null."""
    present = [name for name in names if name in file.schema_arrow.names]
    found = to_spark_types(file.read_row_groups(list(groups), columns=present))
    rows = sum(file.metadata.row_group(i).num_rows for i in groups)
    fields = [schema.field(name) for name in names]
    columns = [
        found[f.name].cast(f.type) if f.name in present else pa.nulls(rows, f.type) for f in fields
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))
