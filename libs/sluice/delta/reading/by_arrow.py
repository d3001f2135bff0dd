"""Rows of Parquet files that have some of the wanted values, found by Arrow.

The columns that are compared are read first, and the others only of row groups with matching rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sluice.delta.places.table_files import TableFiles
from sluice.delta.reading.found import ROW, File, TypeMismatch
from sluice.delta.reading.local import plain
from sluice.delta.reading.wanted import KeySpans, Sought, are_among, may_hold, spans_of

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
FILES = 8  # searched at a time
TOGETHER_BYTES = 64_000_000  # of a file's row groups, not compressed; all of their rows may match


@dataclass(frozen=True)
class ArrowSearch:
    """A search in files of a table."""

    place: TableFiles
    sought: Sought

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
        near = [one for one in self.sought.wanted if file.may_have(one)]
        distinct = [
            {n: pc.unique(some).cast(self.sought.stored.field(n).type) for n, some in one.items()}
            for one in near
        ]
        span, most = self.sought.span, self.sought.most
        left = None if most is None else most + file.lost
        compared = {n for one in distinct for n in one} | ({span.column} if span else set())
        schema = pa.schema([*map(self.sought.stored.field, self.sought.columns), (ROW, pa.int64())])
        found = [schema.empty_table()]
        try:
            with self.place.open(file.path) as opened:
                for groups in _near_groups(opened, spans_of(near)):
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
        rows = columns_of(opened, groups, stored, self.sought.stored)
        return self._with_constants(pa.table({ROW: numbers}), rows, file, names)

    def _numbered(self, opened: pq.ParquetFile, file: File, numbers: pa.ChunkedArray) -> pa.Table:
        """Return the wanted columns of some rows of a file, with their numbers."""
        columns = self.sought.columns
        stored = [self.sought.stored.field(name) for name in columns if name not in file.constants]
        rows = numbered_rows(opened, numbers.to_numpy(), pa.schema(stored))
        found = self._with_constants(pa.table({ROW: numbers}), rows, file, columns)
        return found.select([*columns, ROW])

    def _with_constants(
        self, numbered: pa.Table, rows: pa.Table, file: File, names: Iterable[str]
    ) -> pa.Table:
        """Append columns, from `rows` or, those of the file's partition, of one value."""
        for name in names:
            if name in file.constants:
                value = pa.scalar(file.constants[name], self.sought.stored.field(name).type)
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
    found = plain(file.read_row_groups(list(groups), columns=present))
    rows = sum(file.metadata.row_group(i).num_rows for i in groups)
    fields = [schema.field(name) for name in names]
    columns = [
        found[f.name].cast(f.type) if f.name in present else pa.nulls(rows, f.type) for f in fields
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))
