"""Layout of a table's files: keys of their row groups, in the table's order.

The columns of the order are read for every row, one file at a time. Only the first key of each row
group is kept. Keys are compared by rank, so any columns can form the order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sluice.changes.order import Direction
from sluice.delta.log.vectors import file_name
from sluice.delta.reading.local import plain

IN_MEMORY = 4  # bytes of a piece in memory, for each that it may have on the disk
SortColumns = list[tuple[str, str]]  # columns, each ascending or descending


@dataclass(frozen=True)
class Laid:
    """One file. `rows` are still there, `gone` ones are marked.

    `starts`: the rank of the first key in each row group, then that of the file's last key. It is
    empty if the rows are unsorted. `sizes`: rows that are still there, and bytes, of each row
    group. Its bytes are those of the file, or a quarter of those in memory, if that is more.
    """

    path: str
    rows: int
    gone: int
    starts: tuple[int, ...]
    sizes: tuple[tuple[int, int], ...]

    @property
    def bytes(self) -> int:
        """Bytes of all row groups."""
        return sum(size for _, size in self.sizes)

    @property
    def is_sorted(self) -> bool:
        """True if its rows are in order."""
        return bool(self.starts)


@dataclass(frozen=True)
class Layout:
    """The files of a table, and its keys by rank."""

    files: Sequence[Laid]
    keys: pa.Table

    def key(self, rank: int) -> pa.Table:
        """Return the key of a rank, as a row."""
        return self.keys.slice(rank, 1)


def layout_of(
    folder: str,
    paths: Sequence[str],
    kept: Mapping[str, pa.BooleanArray],
    order: SortColumns,
    schema: pa.Schema,
) -> Layout:
    """Return the layout of these files' rows. `kept`: the rows that files still have, by name."""
    read = [_Read.of(folder, path, order, schema) for path in paths]
    if not read:
        return Layout([], schema.empty_table())
    ranked = _ranked(pa.concat_tables([one.firsts for one in read]), order)
    files, done = [], 0
    for path, one in zip(paths, read, strict=True):
        ranks = ranked.ranks[done : done + one.firsts.num_rows]
        done += len(ranks)
        files.append(_laid(path, one, ranks.tolist(), kept.get(file_name(path))))
    return Layout(files, ranked.keys)


def unordered(folder: str, paths: Sequence[str], schema: pa.Schema) -> list[Laid]:
    """Return the sizes of these files, with marked rows, as if their rows were unsorted."""
    return [_laid(path, _Read.of(folder, path, [], schema), [], None) for path in paths]


def _laid(path: str, read: "_Read", ranks: list[int], kept: pa.BooleanArray | None) -> Laid:
    sizes, begun, gone = list[tuple[int, int]](), 0, 0
    for rows, size in read.sizes:
        lost = 0 if kept is None else kept.slice(begun, rows).false_count
        sizes.append((rows - lost, size))
        begun, gone = begun + rows, gone + lost
    return Laid(path, begun - gone, gone, tuple(ranks), tuple(sizes))


def sort_order(order: Sequence[Direction], schema: pa.Schema) -> SortColumns:
    """Return the order of these columns as Arrow sorts; nested ones have none."""
    here = [d for d in order if d.column in schema.names]
    known = [d for d in here if not pa.types.is_nested(schema.field(d.column).type)]
    return [(d.column, "descending" if d.descending else "ascending") for d in known]


def is_in_order(keys: pa.Table, order: SortColumns) -> bool:
    """True if these rows are in order."""
    name, way = order[0]
    column = keys[name].combine_chunks()
    before, after = column.slice(0, max(0, len(column) - 1)), column.slice(1)
    rises = pc.less(before, after) if way == "ascending" else pc.greater(before, after)
    if not column.null_count and pc.all(rises, min_count=0).as_py():
        return True
    places = pc.sort_indices(keys, order).to_numpy()
    return bool((places == np.arange(len(places))).all())


def before(keys: pa.Table, bound: pa.Table, order: SortColumns) -> int:
    """Return how many of some sorted keys come before another one."""
    return int(pc.index(pc.sort_indices(pa.concat_tables([bound, keys]), order), 0).as_py())


@dataclass(frozen=True)
class _Read:
    """The first key of each row group of a file, the last key of all, and the groups' sizes."""

    firsts: pa.Table
    sizes: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, folder: str, path: str, order: SortColumns, schema: pa.Schema) -> "_Read":
        with pq.ParquetFile(Path(folder, unquote(path)), memory_map=True) as file:
            meta = file.metadata
            groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
            keys = columns_of(file, range(len(groups)), [name for name, _ in order], schema)
            width = _width(file, schema)
        rows = [group.num_rows for group in groups]
        sizes = [max(_bytes(g), int(g.num_rows * width) // IN_MEMORY) for g in groups]
        first = np.cumsum([0, *rows])
        first[-1] -= 1
        is_sorted = keys.num_rows > 0 and 0 not in rows and is_in_order(keys, order)
        taken = keys.take(first) if is_sorted else keys.slice(0, 0)
        return cls(taken, tuple(zip(rows, sizes, strict=True)))


def width_in(folder: str, paths: Sequence[str], schema: pa.Schema) -> float:
    """Return the bytes of a row in memory, in the file with the widest rows."""
    return max((_opened_width(Path(folder, unquote(path)), schema) for path in paths), default=0)


def _opened_width(path: Path, schema: pa.Schema) -> float:
    with pq.ParquetFile(path, memory_map=True) as file:
        return _width(file, schema)


def _width(file: pq.ParquetFile, schema: pa.Schema) -> float:
    """Return the bytes of a row in memory, in a file's first row group."""
    rows = columns_of(file, range(min(1, file.num_row_groups)), schema.names, schema)
    return float(rows.nbytes / rows.num_rows) if rows.num_rows else 0


def _bytes(group: pq.RowGroupMetaData) -> int:
    return sum(group.column(i).total_compressed_size for i in range(group.num_columns))


def columns_of(
    file: pq.ParquetFile, groups: Sequence[int], names: Sequence[str], schema: pa.Schema
) -> pa.Table:
    """Return columns of row groups in the table's types; those that the file lacks are null."""
    present = [name for name in names if name in file.schema_arrow.names]
    found = plain(file.read_row_groups(list(groups), columns=present))
    rows = sum(file.metadata.row_group(i).num_rows for i in groups)
    columns = [
        found[f.name].cast(f.type) if f.name in present else pa.nulls(rows, f.type)
        for f in map(schema.field, names)
    ]
    return pa.table(columns, names=list(names))


@dataclass(frozen=True)
class _Ranked:
    """Distinct keys in order, and the rank of each given one."""

    ranks: "np.ndarray[tuple[int], np.dtype[np.int64]]"
    keys: pa.Table


def _ranked(keys: pa.Table, order: SortColumns) -> _Ranked:
    places = pc.sort_indices(keys, order).to_numpy()
    found = keys.take(places).combine_chunks()
    is_new = np.zeros(len(places), dtype=bool)
    is_new[:1] = True
    for name in keys.column_names:
        column = found[name].combine_chunks()
        codes = pc.index_in(column, pc.unique(column)).to_numpy(zero_copy_only=False)
        is_new[1:] |= codes[1:] != codes[:-1]
    ranks = np.empty(len(places), np.int64)
    ranks[places] = np.cumsum(is_new) - 1
    return _Ranked(ranks, found.filter(pa.array(is_new)))
