"""Rows of a table's files by the keys of a changelog: their file, their number in it, their values.

Only the key's columns are read of all rows. Two keys are equal if their columns have the same
values, null included.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sluice.delta.log.added import Added, partition_of
from sluice.delta.log.vectors import file_name
from sluice.delta.reading.found import Pages
from sluice.delta.reading.local import plain
from sluice.limits import Limits

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


class Keys:
    """The distinct keys of a changelog."""

    def __init__(self, rows: pa.Table, key: Sequence[str]):
        self.key = tuple(key)
        self._values = [pc.unique(rows[name]) for name in self.key]
        self._pairs: list[pa.Array] = []
        for place in range(len(self.key)):
            known = self._codes(rows, place)
            self._pairs.append(pc.unique(known))
        self._places = self._codes(rows, len(self.key))

    @property
    def values(self) -> Mapping[str, pa.ChunkedArray]:
        """The values of each column of the key."""
        return dict(zip(self.key, map(pa.chunked_array, ([v] for v in self._values)), strict=True))

    def places(self, page: pa.Table) -> pa.Array:
        """Return the number of each row's key in the changelog; null if it has none."""
        return pc.index_in(self._codes(page, len(self.key)), self._places)

    def _codes(self, page: pa.Table, upto: int) -> pa.Array:
        """Return a number for each row's values of the first columns, and of one more."""
        found = pa.repeat(pa.scalar(0, pa.int64()), page.num_rows)
        for place, name in enumerate(self.key[: upto + 1]):
            values = self._values[place]
            column = page[name].combine_chunks().cast(values.type)
            code = pc.index_in(column, values).cast(pa.int64())
            found = pc.add(pc.multiply(found, len(values) + 1), code)
            if place < len(self._pairs):
                found = pc.index_in(found, self._pairs[place]).cast(pa.int64())
        return found


@dataclass(frozen=True)
class Matched:
    """Rows of one file, by number, and the changelog's row for each; `rows`: their values."""

    path: str
    numbers: Numbers
    places: Numbers
    rows: pa.Table


def matched(
    folder: str,
    near: Added,
    kept: Mapping[str, pa.BooleanArray],
    keys: Keys,
    schema: pa.Schema,
    limits: Limits,
    pages: Pages | None = None,
) -> Iterator[Matched]:
    """Yield the rows with these keys in files of the table in a folder.

    `near`: files that may have some, `kept`: the remaining rows of each, `schema`: that of the
    rows. `pages`: rows that include these, by file, with their numbers, if they have been found
    already.
    """
    from sluice.delta.reading.searching import ROW, File, FileSearch  # with polars

    files = {Path(folder, unquote(path)): path for path in near}
    if pages is None:
        lives = [
            File(
                file,
                near[path]["size"],
                kept.get(file_name(path)),
                partition_of(near[path], schema),
            )
            for file, path in files.items()
        ]
        pages = FileSearch(schema, [keys.values], limits).rows(lives, schema.names)
    for file, page in pages:
        places = keys.places(plain(page))
        if page.num_rows > places.null_count:
            found = page.filter(places.is_valid())
            rows = plain(found.select(schema.names)).cast(schema)
            yield Matched(files[file], found[ROW].to_numpy(), places.drop_null().to_numpy(), rows)


def rows_at(folder: str, path: str, numbers: Numbers, schema: pa.Schema) -> pa.Table:
    """Return the numbered rows of a file of the table in a folder."""
    with pq.ParquetFile(Path(folder, unquote(path)), memory_map=True) as file:
        return _rows(file, numbers, schema)


def _rows(file: pq.ParquetFile, numbers: Numbers, schema: pa.Schema) -> pa.Table:
    """Return the numbered rows; columns that the file lacks are null."""
    meta = file.metadata
    sizes = np.array([meta.row_group(i).num_rows for i in range(meta.num_row_groups)])
    ends = np.cumsum(sizes)
    group = np.searchsorted(ends, numbers, side="right")
    groups, nth = np.unique(group, return_inverse=True)
    starts = np.cumsum(sizes[groups]) - sizes[groups]
    present = [name for name in schema.names if name in file.schema_arrow.names]
    found = plain(file.read_row_groups(groups.tolist(), columns=present))
    found = found.take(numbers - (ends - sizes)[group] + starts[nth])
    columns = [
        found[f.name].cast(f.type) if f.name in present else pa.nulls(len(numbers), f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
