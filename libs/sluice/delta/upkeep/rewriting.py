"""Write one piece of a table on a disk again, in a separate commit, without Spark.

A piece's rows are written in order. A file is removed once all its rows have been moved; until
then, moved rows are marked in it. No row changes, so the change feed does not show it.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from sluice.delta.places.landed_files import local_path
from sluice.delta.reading.local import arrow_schema
from sluice.delta.upkeep.laid import (
    Layout,
    SortColumns,
    before,
    columns_of,
    is_in_order,
    sort_order,
)
from sluice.delta.upkeep.maintenance import Filing, upkeep
from sluice.delta.upkeep.pieces import Piece, Take
from sluice.delta.writing import file_actions
from sluice.delta.writing.file_actions import Partition
from sluice.delta.writing.keyed_rows import Numbers
from sluice.delta.writing.linked import commit_actions, info, is_plain, vectors_allowed
from sluice.limits import Limits


def may_rewrite(filing: Filing) -> bool:
    """True if the table is on a disk, and needs no other writer features."""
    table, now = opened(filing.before.uri, filing.before.version), Now.of(filing)
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
        files = added(uri, head.version)
        return None if files is None else cls(head, folder, files, filing.order)

    @cached_property
    def kept(self) -> "dict[str, pa.BooleanArray]":
        """The rows that files still have, by name."""
        return dict(kept_rows(opened(self.head.uri, self.head.version)))

    @cached_property
    def order(self) -> SortColumns:
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
        actions = [*vectors_allowed(opened(now.head.uri, now.head.version)), *actions]
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
        yield file_actions.gone(file, changes=False)
        if one.still.any():
            lost = BitMap64(np.flatnonzero(~one.still).astype(np.uint64))
            yield file_actions.marked(file, lost, changes=False)
    for some in slices.values():
        rows = pa.concat_tables([one.rows for one in some])
        rows = rows.sort_by(now.order) if now.order else rows
        partition = Partition.of(now.files[some[0].path])
        for filed in _parts(rows, limits.file_rows):
            yield file_actions.come(now.folder, filed, partition, changes=False)


def _parts(rows: pa.Table, most: int) -> Iterator[pa.Table]:
    """Yield rows in equal parts of about that size."""
    count = max(1, round(rows.num_rows / most))
    each = -(-rows.num_rows // count)
    for start in range(0, rows.num_rows, max(1, each)):
        yield rows.slice(start, each)
