"""Rows of a table's files that have some of the wanted values.

Files with an index are looked up, and others are searched by Arrow.
"""

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from sluice.delta.log.files import active_files, file_name, kept_rows
from sluice.delta.places.table_files import table_files
from sluice.delta.reading.by_arrow import ArrowSearch
from sluice.delta.reading.found import ROW, File, gather
from sluice.delta.reading.row_index import Codes, TableIndex, Unusable, codes_of
from sluice.delta.reading.wanted import Sought, Span, WantedValues, are_among

WORTH_BYTES = 8_000_000  # of files, of which more are indexed
AT_ONCE_BYTES = 256_000_000  # of files that one search indexes
FEW = 8  # one of so many rows of a file is looked up; of more, the file is searched


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
        near = [f for f in files if not f.is_far and any(map(f.may_have, self.wanted))]
        left = yield from self._look_up(near, columns)
        if sum(file.bytes for file in left) > WORTH_BYTES and self._index(left, files, columns):
            left = yield from self._look_up(left, columns)
        if left:
            sought = Sought(self.stored, self.wanted, columns, self.most, self.span)
            for file, rows in ArrowSearch(table_files(self.uri), sought).scan(left):
                yield file.path, drop_lost(rows, file.kept)

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
        is_wanted = are_among(pa.concat_tables(page for _, page in found), self._distinct)
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
        compared = {column for column, _ in self._codes}
        due = [column for column in compared if self._table_index.is_due(column)]
        ends = accumulate(file.bytes for file in files)
        some = [file for file, end in zip(files, ends, strict=True) if end <= AT_ONCE_BYTES]
        for column in due:
            read = self._read_columns(columns)
            self._table_index.build(some or files[:1], column, read, self.stored, every)
        return bool(due)

    def _read_columns(self, columns: Sequence[str]) -> set[str]:
        """Return these columns and those that are compared."""
        return {*columns, *(name for one in self._distinct for name in one)}

    @cached_property
    def _table_index(self) -> TableIndex:
        return TableIndex(self.uri)

    @cached_property
    def _distinct(self) -> Sequence[Mapping[str, pa.Array]]:
        """The wanted values in the table's types."""
        return [
            {n: pc.unique(some).cast(self.stored.field(n).type) for n, some in one.items()}
            for one in self.wanted
        ]

    @cached_property
    def _codes(self) -> Sequence[tuple[str, Codes]]:
        """For each of `wanted`, the column with most values, and their codes in order.

        Empty if one has no column in the files, or values of other types.
        """
        try:
            known = [
                {n: v for n, v in one.items() if n not in self.parts} for one in self._distinct
            ]
            chosen = [max(one, key=lambda name: len(one[name])) for one in known]
            return [(n, np.unique(codes_of(one[n]))) for n, one in zip(chosen, known, strict=True)]
        except (pa.ArrowInvalid, ValueError):
            return ()


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
        )
        for file in active_files(table).to_pylist()
    ]


def drop_lost(rows: pa.Table, kept: pa.BooleanArray | None) -> pa.Table:
    """Drop rows that the file has lost; the mask may end before the file does."""
    if kept is None or not rows.num_rows:
        return rows
    number = rows[ROW].cast(pa.int64())
    is_known = pc.less(number, len(kept))
    live = pc.take(kept, pc.min_element_wise(number, len(kept) - 1))
    return rows.filter(pc.or_(pc.invert(is_known), live))
