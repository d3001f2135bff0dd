"""File a table again in pieces, each in a separate commit, without Spark.

A piece reads a bounded number of bytes: files, or the part of files between two keys. Its rows are
written in order. A file is removed once all its rows have been moved; until then, moved rows are
marked in it. No row changes, so the change feed does not show it. A piece is committed only onto
the version that it was read from. If a batch was first, only this piece is dropped. After a kill
between two pieces, the table is whole, and the next upkeep continues.

Files with marked rows are also written again before a commit removes them, because delta-rs' feed
would show their marked rows, not the live ones. The same is done with rows that must be forgotten.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from sluice.changes import Direction
from sluice.delta.log import Action
from sluice.delta.log.continuity import lost_race, lost_race_of
from sluice.delta.log.files import Added, RowMask, added_files, kept_rows, rows_left
from sluice.delta.log.opened import open_version
from sluice.delta.log.position import Head, head_as_found, head_of
from sluice.delta.places.delta_rs import open_table
from sluice.delta.places.failpoint import passing
from sluice.delta.places.table_files import TableFiles, may_create, table_files
from sluice.delta.reading.local import arrow_schema
from sluice.delta.reading.row_index import Numbers
from sluice.delta.reading.searching import columns_of
from sluice.delta.upkeep.maintenance import Filing, upkeep
from sluice.delta.upkeep.pieces import (
    IN_MEMORY,
    Layout,
    Piece,
    SortColumns,
    Take,
    are_in_order,
    count_before,
    lay_out_unordered,
    layout_of,
    pack,
    plan_gathering,
    plan_merging,
    plan_merging_covers,
    width_in,
)
from sluice.delta.writing.filing import Slice
from sluice.delta.writing.own_commits import (
    Partition,
    add_action,
    checkpoint,
    commit_actions,
    commit_info,
    is_plain,
    re_add_with_vector,
    remove_action,
    unfenced_properties,
    vectors_allowed,
    writer_properties,
)
from sluice.errors import LostRace
from sluice.limits import Limits

KIND = "compact"
WEIGHED = 3  # files of a slice of which a row group is read to see how wide rows are


def may_merge(filing: Filing) -> bool:
    """True if the table has an order, and pieces of it may be written again."""
    if not _may_rewrite(filing):
        return False
    table, now = open_version(filing.before.uri, filing.before.version), _Now.of(filing)
    has_slices = bool(table.metadata().partition_columns)
    return has_slices == (filing.partition is not None) and bool(now and now.order)


def merge(filing: Filing, slices: Sequence[Slice], kind: str) -> tuple[int, list[Slice]]:
    """File the worn segments of these slices again.

    Return the number of replaced files, and the slices that are left to Spark. Their rows are too
    wide to be cut, or Arrow can't read their files in the table's types.
    """
    filing = _with_usual_files(filing, slices)
    try:
        if filing.partition is None:
            return _merge_cut(filing, slices, kind)
        bins, large = _bins(filing, slices)
        done = sum(_commit(filing, Piece(takes), None, kind) for takes in bins)
        cut, left = _merge_cut(filing, large, kind)
        return done + cut, left
    except pa.ArrowException:
        return 0, list(slices)


def unmark(filing: Filing, slices: Sequence[Slice]) -> Head:
    """Rewrite slices' files that have marked rows; return the head.

    Raises LostRace if another writer was first.
    """
    marked = [s for s in slices if s.gone]
    if not marked:
        return filing.before
    return _by_pieces(filing, marked) if _may_rewrite(filing) else _whole(filing, marked)


def rewrite_marked(before: Head, limits: Limits) -> Head:
    """Rewrite all files with marked rows before an overwrite; return the table's head.

    Raises LostRace.
    """
    filing = Filing(before, limits)
    return before if before.position is None else unmark(filing, filing.slices)


def _with_usual_files(filing: Filing, slices: Sequence[Slice]) -> Filing:
    """Return the table with the limits of the files that its slices should have."""
    usual = max((s.file_rows(filing.limits) for s in slices), default=filing.limits.file_rows)
    return replace(filing, limits=replace(filing.limits, file_rows=usual))


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
    if first := plan_gathering(layout.files, limits):
        done += sum(_commit(filing, piece, layout, kind) for piece in first)
        layout = _layout(filing, folder)
    found = plan_merging(layout.files, limits)
    if any(piece.bytes > 2 * limits.piece_bytes for piece in found):  # rows are too wide to be cut
        return done, False
    worn = sum(_commit(filing, piece, layout, kind) for piece in found)
    if not worn:
        covers = plan_merging_covers(layout.files, limits)
        worn = sum(_commit(filing, piece, layout, kind) for piece in covers)
    return done + worn, True


def _layout(filing: Filing, folder: str) -> Layout:
    now = _Now.of(filing)
    if now is None:
        return Layout([], pa.table({}))
    paths = [path for path, file in now.files.items() if Partition.of(file).folder == folder]
    return layout_of(now.place, paths, now.kept, now.order, now.schema)


def _bins(filing: Filing, slices: Sequence[Slice]) -> tuple[list[tuple[Take, ...]], list[Slice]]:
    """Return the slices that fit in a piece, combined, and the others.

    A slice's bytes are those of its files, or a quarter of those in memory, if that is more; its
    largest files show how wide its rows are.
    """
    now, most = _Now.of(filing), filing.limits.piece_bytes
    if now is None:
        return [], []
    bins, large, held = [tuple[Take, ...]()], list[Slice](), 0
    for slice_ in slices:
        fullest = sorted(zip(slice_.rows, slice_.paths, strict=True))[-WEIGHED:]
        width = width_in(now.place, [path for _, path in fullest], now.schema)
        size = max(slice_.bytes, int(slice_.row_count * width) // IN_MEMORY)
        if size > most:
            large.append(slice_)
            continue
        if held + size > most:
            bins.append(())
            held = 0
        bins[-1] += tuple(map(Take, slice_.paths))
        held += size
    return [takes for takes in bins if takes], large


def _commit(filing: Filing, piece: Piece, layout: Layout | None, kind: str) -> int:
    now = _Now.of(filing)
    if now is None or any(take.path not in now.files for take in piece.takes):
        return 0
    try:
        return _rewrite(now, piece, filing.limits, kind, layout) or 0
    except LostRace:
        return 0


def _by_pieces(filing: Filing, slices: Sequence[Slice]) -> Head:
    """Write the marked files again, a piece in each commit."""
    head, now = filing.before, _Now.of(filing)
    worn = [path for s in slices for path, gone in zip(s.paths, s.lost, strict=True) if gone]
    assert now is not None
    filing = _with_usual_files(filing, slices)
    for piece in pack(lay_out_unordered(now.place, worn, now.schema), filing.limits.piece_bytes):
        now = _Now.of(filing)
        if now is None or now.head.version != head.version:
            raise lost_race(head.uri, head.version)
        left = tuple(take for take in piece.takes if take.path in now.files)
        if _rewrite(now, replace(piece, takes=left), filing.limits, KIND) is not None:
            head = head_of(open_table(head.uri, head.version + 1), head.uri)
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
    return head_of(open_table(before.uri, before.version + 1), before.uri)


def _may_rewrite(filing: Filing) -> bool:
    """True if commits can be created there, and the table needs no other writer features."""
    table, now = open_version(filing.before.uri, filing.before.version), _Now.of(filing)
    return now is not None and is_plain(table) and all("stats" in f for f in now.files.values())


@dataclass(frozen=True)
class _Now:
    """A table at its head. `filed`: the wanted order of its rows."""

    head: Head
    place: TableFiles
    files: Added
    filed: Sequence[Direction]

    @classmethod
    def of(cls, filing: Filing) -> "_Now | None":
        """Return the table at its head; None if no commit can be created there, or if foreign
        commits changed it.
        """
        uri = filing.before.uri
        head = head_as_found(uri)
        if head is None or head.position is None or not may_create(uri):
            return None
        files = added_files(uri, head.version)
        return None if files is None else cls(head, table_files(uri), files, filing.order)

    @cached_property
    def kept(self) -> "dict[str, pa.BooleanArray]":
        """The rows that files still have, by name."""
        return dict(kept_rows(open_version(self.head.uri, self.head.version)))

    @cached_property
    def order(self) -> SortColumns:
        """The order as Arrow sorts; nested columns have none."""
        types = {field.name: field.type for field in self.schema}
        known = [
            d for d in self.filed if d.column in types and not pa.types.is_nested(types[d.column])
        ]
        return [(d.column, "descending" if d.descending else "ascending") for d in known]

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns that the files have."""
        parts = open_version(self.head.uri, self.head.version).metadata().partition_columns
        every = arrow_schema(self.head.uri, self.head.version)
        return pa.schema([field for field in every if field.name not in parts])


@dataclass(frozen=True)
class _TakenRows:
    """Rows of one file; `still`: true for its remaining rows.

    `has_marks`: some of its rows were marked before.
    """

    path: str
    rows: pa.Table
    still: RowMask
    has_marks: bool


def _rewrite(
    now: _Now, piece: Piece, limits: Limits, kind: str, layout: Layout | None = None
) -> int | None:
    """Write a piece again; return the number of replaced files, or None if nothing is due.

    Rows that are in order in one file without marks stay. `layout`: the one by which the piece was
    cut, if any. Raises LostRace if another writer was first.
    """
    taken = [one for take in piece.takes if (one := _take_rows(now, piece, take, layout))]
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
    commit_actions(now.head, [*actions, commit_info(now.head, position, "OPTIMIZE")])
    passing("committed", now.head.uri)
    return sum(not one.still.any() for one in taken)


def _is_in_place(taken: Sequence[_TakenRows], order: SortColumns, limits: Limits) -> bool:
    """True if all rows are already in order in one file without marked rows."""
    if len(taken) > 1 or taken[0].has_marks or not order:
        return False
    rows = taken[0].rows
    return rows.num_rows <= 2 * limits.file_rows and are_in_order(rows, order)


def _take_rows(now: _Now, piece: Piece, take: Take, layout: Layout | None) -> _TakenRows | None:
    """Return a file's rows between the piece's keys; None if none are there and others stay."""
    with now.place.open(take.path) as file:
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        groups = range(len(sizes)) if take.groups is None else take.groups
        rows = columns_of(file, groups, now.schema.names, now.schema)
    start, end = 0, rows.num_rows
    if layout is not None:
        keys = rows.select([name for name, _ in now.order])
        if piece.start is not None:
            start = count_before(keys, layout.key(piece.start), now.order)
        if piece.end is not None:
            end = count_before(keys, layout.key(piece.end), now.order)
    first = sum(sizes[: groups.start])
    still = rows_left(now.files[take.path], sum(sizes), lambda: now.kept)
    has_marks = not still.all()
    numbers: Numbers = np.arange(first + start, first + end)
    rows = rows.slice(start, end - start).filter(pa.array(still[numbers]))
    still[numbers] = False
    is_taken = rows.num_rows or not still.any()
    return _TakenRows(take.path, rows, still, has_marks) if is_taken else None


def _actions(now: _Now, taken: Sequence[_TakenRows], limits: Limits) -> Iterator[Action]:
    """Write the rows in order; yield the actions of their commit."""
    slices = defaultdict[str, list[_TakenRows]](list)
    for one in taken:
        file = now.files[one.path]
        slices[Partition.of(file).folder].append(one)
        yield remove_action(file, changes=False)
        if one.still.any():
            yield re_add_with_vector(file, one.still, changes=False)
    for some in slices.values():
        rows = pa.concat_tables([one.rows for one in some])
        rows = rows.sort_by(now.order) if now.order else rows
        partition = Partition.of(now.files[some[0].path])
        for filed in _parts(rows, limits.file_rows):
            yield add_action(now.place, filed, partition, changes=False)


def _parts(rows: pa.Table, most: int) -> Iterator[pa.Table]:
    """Yield rows in equal parts of about that size."""
    count = max(1, round(rows.num_rows / most))
    each = -(-rows.num_rows // count)
    for start in range(0, rows.num_rows, max(1, each)):
        yield rows.slice(start, each)
