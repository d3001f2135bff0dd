"""Pieces in which upkeep files a table again: its worn files, and its possible cuts.

Row groups are ordered by their first keys. Only the columns of the order are read for every row,
one file at a time. Keys are compared by rank, so any columns can form the order.

The table's ground consists of the files that have the most rows for their key range and don't
overlap. All others are covers, which batches have added over many keys. The ground is cut into
segments at its files. A segment is due if enough of its rows were marked or are in covers, or if
its file is small. Segments that are due are combined up to a number of bytes, each with the part of
the covers in its key range. Files of other segments stay.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sluice.delta.log.files import file_name
from sluice.delta.places.table_files import TableFiles
from sluice.delta.reading.row_index import Numbers
from sluice.delta.reading.searching import columns_of
from sluice.delta.writing.filing import WORN
from sluice.limits import Limits

CHANGED = WORN / 2  # of a segment that is filed again when the table is due
IN_MEMORY = 4  # bytes of a piece in memory, for each that it may have on the disk
SortColumns = list[tuple[str, str]]  # columns, each ascending or descending


@dataclass(frozen=True)
class FileLayout:
    """One file. `rows` are still there, `marked` ones are not.

    `starts`: the rank of the first key in each row group, then that of the file's last key. It is
    empty if the rows are unsorted. `sizes`: rows that are still there, and bytes, of each row
    group. Its bytes are those of the file, or a quarter of those in memory, if that is more.
    """

    path: str
    rows: int
    marked: int
    starts: tuple[int, ...]
    sizes: tuple[tuple[int, int], ...]

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.sizes)

    @property
    def is_sorted(self) -> bool:
        """True if its rows are in order."""
        return bool(self.starts)


@dataclass(frozen=True)
class Layout:
    """The files of a table, and its keys by rank."""

    files: Sequence[FileLayout]
    keys: pa.Table

    def key(self, rank: int) -> pa.Table:
        """Return the key of a rank, as a row."""
        return self.keys.slice(rank, 1)


def layout_of(
    place: TableFiles,
    paths: Sequence[str],
    kept: Mapping[str, pa.BooleanArray],
    order: SortColumns,
    schema: pa.Schema,
) -> Layout:
    """Return the layout of these files' rows. `kept`: the rows that files still have, by name."""
    read = [_Read.of(place, path, order, schema) for path in paths]
    if not read:
        return Layout([], schema.empty_table())
    ranks, keys = _rank(pa.concat_tables([one.firsts for one in read]), order)
    files, done = [], 0
    for path, one in zip(paths, read, strict=True):
        own = ranks[done : done + one.firsts.num_rows].tolist()
        done += len(own)
        files.append(_lay_out(path, one, own, kept.get(file_name(path))))
    return Layout(files, keys)


def lay_out_unordered(
    place: TableFiles, paths: Sequence[str], schema: pa.Schema
) -> list[FileLayout]:
    """Return the sizes of these files, with marked rows, as if their rows were unsorted."""
    return [_lay_out(path, _Read.of(place, path, [], schema), [], None) for path in paths]


def _lay_out(
    path: str, read: "_Read", ranks: list[int], kept: pa.BooleanArray | None
) -> FileLayout:
    sizes, begun, marked = list[tuple[int, int]](), 0, 0
    for rows, size in read.sizes:
        lost = 0 if kept is None else kept.slice(begun, rows).false_count
        sizes.append((rows - lost, size))
        begun, marked = begun + rows, marked + lost
    return FileLayout(path, begun - marked, marked, tuple(ranks), tuple(sizes))


def are_in_order(keys: pa.Table, order: SortColumns) -> bool:
    """True if these rows are in order."""
    name, way = order[0]
    column = keys[name].combine_chunks()
    before, after = column.slice(0, max(0, len(column) - 1)), column.slice(1)
    rises = pc.less(before, after) if way == "ascending" else pc.greater(before, after)
    if not column.null_count and pc.all(rises, min_count=0).as_py():
        return True
    places = pc.sort_indices(keys, order).to_numpy()
    return bool((places == np.arange(len(places))).all())


def count_before(keys: pa.Table, bound: pa.Table, order: SortColumns) -> int:
    """Return how many of some sorted keys come before another one."""
    return int(pc.index(pc.sort_indices(pa.concat_tables([bound, keys]), order), 0).as_py())


@dataclass(frozen=True)
class _Read:
    """The first key of each row group of a file, the last key of all, and the groups' sizes."""

    firsts: pa.Table
    sizes: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, place: TableFiles, path: str, order: SortColumns, schema: pa.Schema) -> "_Read":
        with place.open(path) as file:
            meta = file.metadata
            groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
            keys = columns_of(file, range(len(groups)), [name for name, _ in order], schema)
            width = _width(file, schema)
        rows = [group.num_rows for group in groups]
        stored = [
            sum(g.column(i).total_compressed_size for i in range(g.num_columns)) for g in groups
        ]
        sizes = [
            max(n, int(count * width) // IN_MEMORY) for n, count in zip(stored, rows, strict=True)
        ]
        first = np.cumsum([0, *rows])
        first[-1] -= 1
        is_sorted = keys.num_rows > 0 and 0 not in rows and are_in_order(keys, order)
        taken = keys.take(first) if is_sorted else keys.slice(0, 0)
        return cls(taken, tuple(zip(rows, sizes, strict=True)))


def width_in(place: TableFiles, paths: Sequence[str], schema: pa.Schema) -> float:
    """Return the bytes of a row in memory, in the file with the widest rows."""
    widest = 0.0
    for path in paths:
        with place.open(path) as file:
            widest = max(widest, _width(file, schema))
    return widest


def _width(file: pq.ParquetFile, schema: pa.Schema) -> float:
    rows = columns_of(file, range(min(1, file.num_row_groups)), schema.names, schema)
    return float(rows.nbytes / rows.num_rows) if rows.num_rows else 0


def _rank(keys: pa.Table, order: SortColumns) -> tuple[Numbers, pa.Table]:
    """Return the rank of each key, and the distinct keys in order."""
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
    return ranks, found.filter(pa.array(is_new))


@dataclass(frozen=True)
class Take:
    """A file, and the row groups that a piece reads; None: all."""

    path: str
    groups: range | None = None


@dataclass(frozen=True)
class Piece:
    """Rows that one commit files again: of these row groups, from a rank up to another, or all.
    `bytes`: those of the row groups.
    """

    takes: tuple[Take, ...]
    start: int | None = None
    end: int | None = None
    bytes: int = 0


@dataclass(frozen=True)
class Segment:
    """Keys from a rank up to another one; None: from the first, up to the last."""

    start: int | None
    end: int | None
    is_due: bool


def plan_gathering(files: Sequence[FileLayout], limits: Limits) -> list[Piece]:
    """Return pieces of files whose rows are in no order, and of many small covers.

    They come first, because sorted files can't be cut before, and each cut reads a row group of
    every cover. If these are most of a piece, all covers come first, unless as many would be left.
    """
    if _is_one(files, limits):
        return []
    covers = Ground([file for file in files if file.is_sorted], limits).covers
    small = [cover for cover in covers if _is_small(cover, limits)]
    chosen = [file for file in files if not file.is_sorted]
    size, rows = sum(cover.bytes for cover in covers), sum(cover.rows for cover in covers)
    left = max(-(-size // limits.piece_bytes), -(-rows // limits.file_rows))
    largest_groups = sum(max(size for _, size in cover.sizes) for cover in covers)
    if 2 * largest_groups > limits.piece_bytes and len(covers) > left:
        chosen += covers
    elif len(small) >= limits.small_files:
        chosen += small
    return list(pack(chosen, limits.piece_bytes))


def plan_merging(files: Sequence[FileLayout], limits: Limits) -> list[Piece]:
    """Return pieces of worn, small and very large files, and of the covers over them.

    A small table is one piece.
    """
    if _is_one(files, limits):
        return [Piece(tuple(Take(file.path) for file in files))]
    return list(Ground([file for file in files if file.is_sorted], limits).pieces())


def plan_merging_covers(files: Sequence[FileLayout], limits: Limits) -> list[Piece]:
    """Return pieces of covers over other covers, for a table of which few rows have changed."""
    covers = Ground([file for file in files if file.is_sorted], limits).covers
    return list(Ground(covers, limits).pieces())


def _is_one(files: Sequence[FileLayout], limits: Limits) -> bool:
    return sum(file.bytes for file in files) <= limits.piece_bytes


def pack(files: Sequence[FileLayout], most: int) -> Iterator[Piece]:
    """Yield pieces of whole files, or of row groups of large ones."""
    takes, held = list[Take](), 0
    for file in files:
        begun = 0
        for group, (_, size) in enumerate(file.sizes):
            if held and held + size > most:
                yield Piece((*takes, *_some(file, begun, group)))
                takes, held, begun = [], 0, group
            held += size
        takes += _some(file, begun, len(file.sizes))
    if takes:
        yield Piece(tuple(takes))


def _some(file: FileLayout, start: int, end: int) -> list[Take]:
    return [Take(file.path, range(start, end))] if start < end else []


@dataclass(frozen=True)
class Ground:
    """Sorted files: ground files side by side, and the covers over them."""

    files: Sequence[FileLayout]
    limits: Limits

    def pieces(self) -> Iterator[Piece]:
        """Yield due segments, combined up to the limit."""
        held: Segment | None = None
        for segment in self._segments:
            joined = Segment(held.start, segment.end, True) if held and segment.is_due else None
            if joined and self._bytes(joined) <= self.limits.piece_bytes:
                held = joined
                continue
            if held:
                yield from self._piece(held)
            held = segment if segment.is_due else None
        if held:
            yield from self._piece(held)

    @cached_property
    def covers(self) -> list[FileLayout]:
        """Files over the keys of others."""
        beside = {file.path for file in self._beside}
        return [file for file in self.files if file.path not in beside]

    @cached_property
    def _beside(self) -> list[FileLayout]:
        """Ground files in order; of files whose keys overlap, the one with more rows per key."""
        chosen = list[FileLayout]()
        density = {f.path: f.rows / (f.starts[-1] - f.starts[0] + 1) for f in self.files}
        for file in sorted(self.files, key=lambda file: density[file.path], reverse=True):
            at = bisect_left(chosen, file.starts[0], key=_first)
            is_free = at == len(chosen) or file.starts[-1] < _first(chosen[at])
            if is_free and (at == 0 or chosen[at - 1].starts[-1] < file.starts[0]):
                chosen.insert(at, file)
        return chosen

    @cached_property
    def _segments(self) -> list[Segment]:
        """All keys in segments; segments with too many bytes are cut further."""
        cuts, found = [file.starts[0] for file in self._beside[1:]], list[Segment]()
        covering, bounds = _spread_over(self.covers, cuts), pairwise([None, *cuts, None])
        for file, covers, (start, end) in zip(self._beside, covering, bounds, strict=False):
            whole = Segment(start, end, self._is_due(file, covers))
            inner = self._within(whole) if self._bytes(whole) > self.limits.piece_bytes else []
            ends = zip([start, *inner], [*inner, end], strict=True)
            found += [Segment(a, b, whole.is_due) for a, b in ends]
        return found

    def _is_due(self, file: FileLayout, covers: float) -> bool:
        """True if a file should be filed again; `covers`: rows of other files over its keys."""
        is_changed = file.marked + covers > CHANGED * (file.rows + file.marked + covers)
        return is_changed or _is_small(file, self.limits, covers) or is_lump(file, self.limits)

    def _within(self, segment: Segment) -> list[int]:
        near = {rank for file in self._near(segment) for rank in file.starts[:-1]}
        low, high = segment.start, segment.end
        inside = (r for r in near if (low is None or r > low) and (high is None or r < high))
        return sorted(inside)

    def _near(self, segment: Segment) -> list[FileLayout]:
        low, high = segment.start, segment.end
        first = 0 if low is None else max(0, bisect_right(self._beside, low, key=_first) - 1)
        last = None if high is None else bisect_left(self._beside, high, key=_first)
        return [*self._beside[first:last], *self.covers]

    def _takes(self, segment: Segment) -> list[tuple[FileLayout, range]]:
        near = ((file, _groups(file, segment)) for file in self._near(segment))
        return [(file, groups) for file, groups in near if groups]

    def _bytes(self, segment: Segment) -> int:
        return sum(file.sizes[g][1] for file, groups in self._takes(segment) for g in groups)

    def _piece(self, segment: Segment) -> Iterator[Piece]:
        """Yield a piece, unless it would only copy a file."""
        found = self._takes(segment)
        if len(found) > 1 or any(file.marked or is_lump(file, self.limits) for file, _ in found):
            takes = tuple(Take(file.path, groups) for file, groups in found)
            yield Piece(takes, segment.start, segment.end, self._bytes(segment))


def _is_small(file: FileLayout, limits: Limits, covers: float = 0) -> bool:
    """True if a file, with the rows over it, has less than half of the usual rows."""
    return 2 * (file.rows + covers) < limits.file_rows and 4 * file.bytes < limits.piece_bytes


def is_lump(file: FileLayout, limits: Limits) -> bool:
    """True if a file has the rows of more than two."""
    return file.rows + file.marked > 2 * limits.file_rows


def _first(file: FileLayout) -> int:
    return file.starts[0]


def _spread_over(covers: Sequence[FileLayout], cuts: Sequence[int]) -> list[float]:
    """Return the number of cover rows between cuts, assuming an even spread in each row group."""
    found = [0.0] * (len(cuts) + 1)
    for cover in covers:
        for (rows, _), (start, end) in zip(cover.sizes, pairwise(cover.starts), strict=True):
            reached = range(bisect_right(cuts, start), bisect_right(cuts, end) + 1)
            for nth in reached:
                found[nth] += rows / len(reached)
    return found


def _groups(file: FileLayout, segment: Segment) -> range:
    """Return the row groups that may still have rows of a segment."""
    starts, last = file.starts[:-1], file.starts[-1]
    if segment.start is not None and last < segment.start:
        return range(0)
    first = 0 if segment.start is None else max(0, bisect_left(starts, segment.start) - 1)
    end = len(starts) if segment.end is None else bisect_left(starts, segment.end)
    there = [group for group in range(first, end) if file.sizes[group][0]]
    return range(there[0], there[-1] + 1) if there else range(0)
