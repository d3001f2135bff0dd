"""File a table on a disk again in pieces, each in a commit of its own, without Spark.

A piece reads a bounded number of bytes: files, or the part of files that lies between two keys. It
writes their rows in order. A file is removed once all its rows lie elsewhere; until then those that
do are marked in it. No row changes, so the change feed does not show it. A piece goes onto exactly
the version that it was read from: if a batch was first, only this piece is dropped. Killed between
two pieces, upkeep leaves a whole table, and the next goes on with what is still worn.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from sluice.changes.order import Direction
from sluice.delta.log.actions import Action
from sluice.delta.log.added import Added, added
from sluice.delta.log.opened import opened
from sluice.delta.log.position import Head, head_as_found
from sluice.delta.log.vectors import file_name, kept_rows, lost_rows, mask_of
from sluice.delta.places.failpoint import passing
from sluice.delta.places.walk import local_path
from sluice.delta.reading.local import arrow_schema
from sluice.delta.upkeep.laid import (
    IN_MEMORY,
    Layout,
    Order,
    before,
    columns_of,
    is_in_order,
    layout_of,
    sort_order,
    width_in,
)
from sluice.delta.upkeep.maintenance import Filing, upkeep
from sluice.delta.upkeep.pieces import Piece, Take, gathering, is_within, merging, merging_covers
from sluice.delta.writing import file_actions
from sluice.delta.writing.file_actions import Part
from sluice.delta.writing.filing import Slice
from sluice.delta.writing.linked import checkpoint, commit_actions, info, is_plain, vectors_allowed
from sluice.errors import LostRace
from sluice.limits import Limits

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
WEIGHED = 3  # files of a slice of which a row group is read to see how wide rows are


def may_merge(filing: Filing) -> bool:
    """True if the table has an order, lies on a disk, and asks no more of a writer than this."""
    table, now = opened(filing.before.uri, filing.before.version), _Now.of(filing)
    if now is None or not is_plain(table) or not all("stats" in f for f in now.files.values()):
        return False
    has_slices = bool(table.metadata().partition_columns)
    return has_slices == (filing.partition is not None) and bool(now.order)


def merge(filing: Filing, slices: Sequence[Slice], kind: str) -> tuple[int, list[Slice]]:
    """File what is worn of these slices again.

    Return the number of files that went, and the slices that are left to Spark: their rows are too
    wide to be cut, or Arrow can't read their files in the table's types.
    """
    try:
        if filing.partition is None:
            return _merge_cut(filing, slices, kind)
        filing = replace(filing, limits=filing.limits.of_slices())
        bins, large = _bins(filing, slices)
        done = sum(_commit(filing, Piece(takes), None, kind) for takes in bins)
        cut, left = _merge_cut(filing, large, kind)
        return done + cut, left
    except pa.ArrowException:
        return 0, list(slices)


def _merge_cut(filing: Filing, slices: Sequence[Slice], kind: str) -> tuple[int, list[Slice]]:
    """Return the number of files that went, and the slices that can't be cut."""
    done, left = 0, list[Slice]()
    for slice_ in slices:
        count, is_cut = _merge_slice(filing, slice_.folder, kind)
        done, left = done + count, left if is_cut else [*left, slice_]
    if opened(filing.before.uri).version() > filing.before.version + 1:
        checkpoint(filing.before.uri)
    return done, left


def _merge_slice(filing: Filing, folder: str, kind: str) -> tuple[int, bool]:
    """Return the number of files that went, and false if the slice can't be cut."""
    layout, limits = _layout(filing, folder), filing.limits
    done = 0
    if first := gathering(layout.files, limits):
        done += sum(_commit(filing, piece, layout, kind) for piece in first)
        layout = _layout(filing, folder)
    found = merging(layout.files, limits)
    if not is_within(found, limits):
        return done, False
    worn = sum(_commit(filing, piece, layout, kind) for piece in found)
    if not worn:
        covers = merging_covers(layout.files, limits)
        worn = sum(_commit(filing, piece, layout, kind) for piece in covers)
    return done + worn, True


def _layout(filing: Filing, folder: str) -> Layout:
    """Return where the rows of a slice lie."""
    now = _Now.of(filing)
    if now is None:
        return Layout([], pa.table({}))
    paths = [path for path, file in now.files.items() if Part.of(file).folder == folder]
    return layout_of(now.folder, paths, now.kept, now.order, now.schema)


def _bins(filing: Filing, slices: Sequence[Slice]) -> tuple[list[tuple[Take, ...]], list[Slice]]:
    """Return the slices that fit in a piece, put together, and those that don't."""
    now, most = _Now.of(filing), filing.limits.piece_bytes
    if now is None:
        return [], []
    bins, large, held = [tuple[Take, ...]()], list[Slice](), 0
    for slice_ in slices:
        size = _bytes(now, slice_)
        if size > most:
            large.append(slice_)
            continue
        if held + size > most:
            bins.append(())
            held = 0
        bins[-1] += tuple(map(Take, slice_.paths))
        held += size
    return [takes for takes in bins if takes], large


def _bytes(now: "_Now", slice_: Slice) -> int:
    """Return a slice's bytes, or a quarter of those in memory, judged by its fullest files."""
    fullest = sorted(zip(slice_.rows, slice_.paths, strict=True))[-WEIGHED:]
    width = width_in(now.folder, [path for _, path in fullest], now.schema)
    return max(slice_.bytes, int(slice_.row_count * width) // IN_MEMORY)


@dataclass(frozen=True)
class _Now:
    """A table at its head. `filed`: the order in which its rows should lie."""

    head: Head
    folder: str
    files: Added
    filed: Sequence[Direction]

    @classmethod
    def of(cls, filing: Filing) -> "_Now | None":
        """Return the table as it is now; None in a store, or if foreign commits changed it."""
        uri = filing.before.uri
        head, folder = head_as_found(uri), local_path(uri)
        if head is None or head.position is None or folder is None:
            return None
        files = added(uri, head.version)
        return None if files is None else cls(head, folder, files, filing.order)

    @cached_property
    def kept(self) -> "dict[str, pa.BooleanArray]":
        """The rows that files still have, by name."""
        return dict(kept_rows(opened(self.head.uri, self.head.version)))

    @cached_property
    def order(self) -> Order:
        """The order as Arrow sorts."""
        return sort_order(self.filed, self.schema)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns that the files have."""
        parts = opened(self.head.uri, self.head.version).metadata().partition_columns
        every = arrow_schema(self.head.uri, self.head.version)
        return pa.schema([field for field in every if field.name not in parts])


@dataclass(frozen=True)
class _Taken:
    """Rows of one file, and their numbers in it; `still`: true for rows that stay in it.

    `has_marks`: some of its rows were marked before.
    """

    path: str
    rows: pa.Table
    numbers: Numbers
    still: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    has_marks: bool


def _commit(filing: Filing, piece: Piece, layout: Layout | None, kind: str) -> int:
    """File a piece again; return how many files went. None do if a batch has taken one away."""
    now = _Now.of(filing)
    if now is None or any(take.path not in now.files for take in piece.takes):
        return 0
    cut = _Cut(now, piece, layout)
    taken = [one for take in piece.takes if (one := cut.taken(take))]
    if not taken or _is_in_place(taken, now.order, filing.limits):
        return 0
    passing("merging", now.head.uri)
    actions = list(_actions(now, taken, filing.limits))
    if not actions:
        return 0
    position = upkeep(now.head, kind)
    if any("deletionVector" in action.get("add", ()) for action in actions):
        actions = [*vectors_allowed(opened(now.head.uri, now.head.version)), *actions]
    passing("committing", now.head.uri)
    try:
        commit_actions(now.head, [*actions, info(now.head, position, "OPTIMIZE")])
    except LostRace:
        return 0
    passing("committed", now.head.uri)
    return sum(not one.still.any() for one in taken)


def _is_in_place(taken: Sequence[_Taken], order: Order, limits: Limits) -> bool:
    """True if all rows are already together: in order in one file, which has no marked ones."""
    if len(taken) > 1 or taken[0].has_marks:
        return False
    rows = taken[0].rows
    return rows.num_rows <= 2 * limits.file_rows and is_in_order(rows, order)


@dataclass(frozen=True)
class _Cut:
    """Reads what a piece takes of each file."""

    now: _Now
    piece: Piece
    layout: Layout | None

    def taken(self, take: Take) -> _Taken | None:
        """Return a file's rows between the piece's keys; None if rows stay and none are there."""
        with pq.ParquetFile(Path(self.now.folder, unquote(take.path)), memory_map=True) as file:
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            groups = range(len(sizes)) if take.groups is None else take.groups
            rows = columns_of(file, groups, self.now.schema.names, self.now.schema)
        first = sum(sizes[: groups.start])
        start, end = self._between(rows)
        rows, numbers = rows.slice(start, end - start), np.arange(first + start, first + end)
        still = self._still(take.path, sum(sizes))
        has_marks = not still.all()
        rows, numbers = rows.filter(pa.array(still[numbers])), numbers[still[numbers]]
        still[numbers] = False
        is_taken = len(numbers) or not still.any()
        return _Taken(take.path, rows, numbers, still, has_marks) if is_taken else None

    def _still(self, path: str, count: int) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Return which rows of a file are not marked."""
        still = np.ones(count, dtype=bool)
        if (lost := lost_rows(self.now.files[path])) is not None:
            still[np.fromiter(lost, np.int64, len(lost))] = False
        elif (mask := self.now.kept.get(file_name(path))) is not None:
            still = mask_of(mask, 0, count).to_numpy(zero_copy_only=False).copy()
        return still

    def _between(self, rows: pa.Table) -> tuple[int, int]:
        """Return where the piece's rows begin and end among sorted ones."""
        if self.layout is None or (self.piece.start is None and self.piece.end is None):
            return 0, rows.num_rows
        keys = rows.select([name for name, _ in self.now.order])
        start, end = self.piece.start, self.piece.end
        first = 0 if start is None else before(keys, self.layout.key(start), self.now.order)
        last = rows.num_rows if end is None else before(keys, self.layout.key(end), self.now.order)
        return first, last


def _actions(now: _Now, taken: Sequence[_Taken], limits: Limits) -> Iterator[Action]:
    """Write the rows in order; yield the actions of their commit."""
    slices = defaultdict[str, list[_Taken]](list)
    for one in taken:
        file = now.files[one.path]
        slices[Part.of(file).folder].append(one)
        yield file_actions.gone(file, changes=False)
        if one.still.any():
            lost = BitMap64(np.flatnonzero(~one.still).astype(np.uint64))
            yield file_actions.marked(file, lost, changes=False)
    for some in slices.values():
        rows = pa.concat_tables([one.rows for one in some]).sort_by(now.order)
        part = Part.of(now.files[some[0].path])
        for filed in _parts(rows, limits.file_rows):
            yield file_actions.come(now.folder, filed, part, changes=False)


def _parts(rows: pa.Table, most: int) -> Iterator[pa.Table]:
    """Yield rows in parts of about the same size, each of about so many."""
    count = max(1, round(rows.num_rows / most))
    each = -(-rows.num_rows // count)
    for start in range(0, rows.num_rows, max(1, each)):
        yield rows.slice(start, each)
