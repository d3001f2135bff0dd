"""Write one piece of a table on a disk again, in a separate commit, without Spark.

A piece's rows are written in order. A file is removed once all its rows have been moved; until
then, moved rows are marked in it. No row changes, so the change feed does not show it.

File a table on a disk again in pieces, each in a separate commit, without Spark.

A piece reads a bounded number of bytes: files, or the part of files between two keys. It is
committed only onto the version that it was read from. If a batch was first, only this piece is
dropped. After a kill between two pieces, the table is whole, and the next upkeep continues.

Rewrite files with marked rows in pieces, before a commit removes them.

For a marked file that a commit removes, delta-rs' feed shows the marked rows, not the live ones.
Files whose marked rows must be forgotten are written again as well. No step starts Spark.
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
from sluice.delta.log.continuity import lost, lost_race_of
from sluice.delta.log.files import Added, added_files, file_name, kept_rows, lost_rows, mask_of
from sluice.delta.log.opened import open_version
from sluice.delta.log.position import Head, head_as_found, head_of
from sluice.delta.places.delta_rs import open_table
from sluice.delta.places.failpoint import passing
from sluice.delta.places.folders import local_path
from sluice.delta.reading.local import arrow_schema
from sluice.delta.upkeep.maintenance import Filing, unfenced_properties, upkeep
from sluice.delta.upkeep.pieces import (
    IN_MEMORY,
    Layout,
    Piece,
    SortColumns,
    Take,
    before,
    columns_of,
    gathering,
    is_in_order,
    is_within,
    lay_out_unordered,
    layout_of,
    merging,
    merging_covers,
    pack,
    sort_order,
    width_in,
)
from sluice.delta.writing import own_commits
from sluice.delta.writing.filing import Slice
from sluice.delta.writing.marking import Numbers
from sluice.delta.writing.own_commits import (
    Partition,
    checkpoint,
    commit_actions,
    info,
    is_plain,
    vectors_allowed,
)
from sluice.delta.writing.statistics import writer_properties
from sluice.errors import LostRace
from sluice.limits import Limits


def may_rewrite(filing: Filing) -> bool:
    """True if the table is on a disk, and needs no other writer features."""
    table, now = open_version(filing.before.uri, filing.before.version), Now.of(filing)
    return now is not None and is_plain(table) and all("stats" in f for f in now.files.values())


@dataclass(frozen=True)
class Now:
    """A table at its head. `filed`: the wanted order of its rows."""

    head: Head
    folder: str
    files: Added
    filed: Sequence[Direction]

    @classmethod
    def of(cls, filing: Filing) -> "Now | None":
        """Return the table at its head; None in a store, or if foreign commits changed it."""
        uri = filing.before.uri
        head, folder = head_as_found(uri), local_path(uri)
        if head is None or head.position is None or folder is None:
            return None
        files = added_files(uri, head.version)
        return None if files is None else cls(head, folder, files, filing.order)

    @cached_property
    def kept(self) -> "dict[str, pa.BooleanArray]":
        """The rows that files still have, by name."""
        return dict(kept_rows(open_version(self.head.uri, self.head.version)))

    @cached_property
    def order(self) -> SortColumns:
        """The order as Arrow sorts."""
        return sort_order(self.filed, self.schema)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns that the files have."""
        parts = open_version(self.head.uri, self.head.version).metadata().partition_columns
        every = arrow_schema(self.head.uri, self.head.version)
        return pa.schema([field for field in every if field.name not in parts])


@dataclass(frozen=True)
class _Taken:
    """Rows of one file, and their numbers in it; `still`: true for remaining rows.

    `has_marks`: some of its rows were marked before.
    """

    path: str
    rows: pa.Table
    numbers: Numbers
    still: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    has_marks: bool


def rewrite(
    now: Now, piece: Piece, limits: Limits, kind: str, layout: Layout | None = None
) -> int | None:
    """Write a piece again; return the number of replaced files, or None if nothing is due.

    Rows that are in order in one file without marks stay. `layout`: the one by which the piece was
    cut, if any. Raises LostRace if another writer was first.
    """
    cut = _Cut(now, piece, layout)
    taken = [one for take in piece.takes if (one := cut.taken(take))]
    if not taken or _is_in_place(taken, now.order, limits):
        return None
    passing("merging", now.head.uri)
    actions = list(_actions(now, taken, limits))
    if not actions:
        return None
    position = upkeep(now.head, kind)
    if any("deletionVector" in action.get("add", ()) for action in actions):
        actions = [*vectors_allowed(open_version(now.head.uri, now.head.version)), *actions]
    passing("committing", now.head.uri)
    commit_actions(now.head, [*actions, info(now.head, position, "OPTIMIZE")])
    passing("committed", now.head.uri)
    return sum(not one.still.any() for one in taken)


def _is_in_place(taken: Sequence[_Taken], order: SortColumns, limits: Limits) -> bool:
    """True if all rows are already in order in one file without marked rows."""
    if len(taken) > 1 or taken[0].has_marks or not order:
        return False
    rows = taken[0].rows
    return rows.num_rows <= 2 * limits.file_rows and is_in_order(rows, order)


@dataclass(frozen=True)
class _Cut:
    """Reads a piece's rows of each file."""

    now: Now
    piece: Piece
    layout: Layout | None

    def taken(self, take: Take) -> _Taken | None:
        """Return a file's rows between the piece's keys; None if none are there and others stay."""
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
        """Return a mask of a file's rows that are not marked."""
        still = np.ones(count, dtype=bool)
        if (lost := lost_rows(self.now.files[path])) is not None:
            still[np.fromiter(lost, np.int64, len(lost))] = False
        elif (mask := self.now.kept.get(file_name(path))) is not None:
            still = mask_of(mask, 0, count).to_numpy(zero_copy_only=False).copy()
        return still

    def _between(self, rows: pa.Table) -> tuple[int, int]:
        """Return the range of the piece's rows among sorted ones."""
        if self.layout is None or (self.piece.start is None and self.piece.end is None):
            return 0, rows.num_rows
        keys = rows.select([name for name, _ in self.now.order])
        start, end = self.piece.start, self.piece.end
        first = 0 if start is None else before(keys, self.layout.key(start), self.now.order)
        last = rows.num_rows if end is None else before(keys, self.layout.key(end), self.now.order)
        return first, last


def _actions(now: Now, taken: Sequence[_Taken], limits: Limits) -> Iterator[Action]:
    """Write the rows in order; yield the actions of their commit."""
    slices = defaultdict[str, list[_Taken]](list)
    for one in taken:
        file = now.files[one.path]
        slices[Partition.of(file).folder].append(one)
        yield own_commits.remove_action(file, changes=False)
        if one.still.any():
            lost = BitMap64(np.flatnonzero(~one.still).astype(np.uint64))
            yield own_commits.re_add_with_vector(file, lost, changes=False)
    for some in slices.values():
        rows = pa.concat_tables([one.rows for one in some])
        rows = rows.sort_by(now.order) if now.order else rows
        partition = Partition.of(now.files[some[0].path])
        for filed in _parts(rows, limits.file_rows):
            yield own_commits.come(now.folder, filed, partition, changes=False)


def _parts(rows: pa.Table, most: int) -> Iterator[pa.Table]:
    """Yield rows in equal parts of about that size."""
    count = max(1, round(rows.num_rows / most))
    each = -(-rows.num_rows // count)
    for start in range(0, rows.num_rows, max(1, each)):
        yield rows.slice(start, each)


WEIGHED = 3  # files of a slice of which a row group is read to see how wide rows are


def may_merge(filing: Filing) -> bool:
    """True if the table has an order, and pieces of it may be written again."""
    if not may_rewrite(filing):
        return False
    table, now = open_version(filing.before.uri, filing.before.version), Now.of(filing)
    has_slices = bool(table.metadata().partition_columns)
    return has_slices == (filing.partition is not None) and bool(now and now.order)


def merge(filing: Filing, slices: Sequence[Slice], kind: str) -> tuple[int, list[Slice]]:
    """File the worn segments of these slices again.

    Return the number of replaced files, and the slices that are left to Spark. Their rows are too
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
    """Return the number of replaced files, and the slices that can't be cut."""
    done, left = 0, list[Slice]()
    for slice_ in slices:
        count, is_cut = _merge_slice(filing, slice_.folder, kind)
        done, left = done + count, left if is_cut else [*left, slice_]
    if open_version(filing.before.uri).version() > filing.before.version + 1:
        checkpoint(filing.before.uri)
    return done, left


def _merge_slice(filing: Filing, folder: str, kind: str) -> tuple[int, bool]:
    """Return the number of replaced files, and false if the slice can't be cut."""
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
    """Return the layout of a slice's rows."""
    now = Now.of(filing)
    if now is None:
        return Layout([], pa.table({}))
    paths = [path for path, file in now.files.items() if Partition.of(file).folder == folder]
    return layout_of(now.folder, paths, now.kept, now.order, now.schema)


def _bins(filing: Filing, slices: Sequence[Slice]) -> tuple[list[tuple[Take, ...]], list[Slice]]:
    """Return the slices that fit in a piece, combined, and the others."""
    now, most = Now.of(filing), filing.limits.piece_bytes
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


def _bytes(now: "Now", slice_: Slice) -> int:
    """Return a slice's bytes, or a quarter of those in memory, estimated from its largest files."""
    fullest = sorted(zip(slice_.rows, slice_.paths, strict=True))[-WEIGHED:]
    width = width_in(now.folder, [path for _, path in fullest], now.schema)
    return max(slice_.bytes, int(slice_.row_count * width) // IN_MEMORY)


def _commit(filing: Filing, piece: Piece, layout: Layout | None, kind: str) -> int:
    """File a piece again; return the number of replaced files: 0 if a batch has removed one."""
    now = Now.of(filing)
    if now is None or any(take.path not in now.files for take in piece.takes):
        return 0
    try:
        return rewrite(now, piece, filing.limits, kind, layout) or 0
    except LostRace:
        return 0


KIND = "compact"


def unmark(filing: Filing, slices: Sequence[Slice]) -> Head:
    """Rewrite slices' files that have marked rows; return the head.

    Raises LostRace if another writer was first.
    """
    marked = [s for s in slices if s.gone]
    if not marked:
        return filing.before
    return _by_pieces(filing, marked) if may_rewrite(filing) else _whole(filing, marked)


def rewrite_marked(before: Head, limits: Limits) -> Head:
    """Rewrite all files with marked rows before an overwrite; return the table's head.

    Raises LostRace.
    """
    filing = Filing(before, limits)
    return before if before.position is None else unmark(filing, filing.slices)


def _by_pieces(filing: Filing, slices: Sequence[Slice]) -> Head:
    """Write the marked files again, a piece in each commit."""
    head, now = filing.before, Now.of(filing)
    worn = [path for s in slices for path, gone in zip(s.paths, s.lost, strict=True) if gone]
    assert now is not None
    for piece in pack(lay_out_unordered(now.folder, worn, now.schema), filing.limits.piece_bytes):
        now = Now.of(filing)
        if now is None or now.head.version != head.version:
            raise lost(head.uri, head.version)
        left = tuple(take for take in piece.takes if take.path in now.files)
        if rewrite(now, replace(piece, takes=left), filing.limits, KIND) is not None:
            head = _at(head.uri, head.version + 1)
    checkpoint(head.uri)
    return head


def _whole(filing: Filing, slices: Sequence[Slice]) -> Head:
    """Write all files of the slices again, by delta-rs."""
    before = filing.before
    table = open_table(before.uri, version=before.version)
    schema, parts = pa.schema(table.schema().to_arrow()), table.metadata().partition_columns
    numbers = [str(s.number) for s in slices if s.number is not None]
    here = [(name, "in", numbers) for name in parts if len(numbers) == len(slices)]
    shown = [*(d.column for d in filing.order), *schema.names]
    with lost_race_of(before.uri, before.version):
        table.optimize.z_order(
            [next(name for name in shown if name not in parts)],
            partition_filters=here or None,
            writer_properties=writer_properties(schema),
            commit_properties=unfenced_properties(upkeep(before, KIND)),
        )
    return _at(before.uri, before.version + 1)


def _at(uri: str, version: int) -> Head:
    return head_of(open_table(uri, version), uri)
