"""Scan of a snapshot: the rows that one read wants, and what it touched; here units are pruned."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from sluice.delta.log.files import feed_size
from sluice.delta.reading.live import stream_feed
from sluice.language.names import CHANGE_TYPE, GOES
from sluice.limits import Limits
from sluice.read.key_order import NAN, NULL, KeyOrder, KeyRange
from sluice.read.snapshot import DataFile, RowGroup, Snapshot, open_delta, stored_bytes
from sluice.read.where import Predicate

GROUP, ROW = "_group", "_row"
TOGETHER = 65_536  # rows that are read at a time where the order does not matter


class Overdue(Exception):
    """A read that has reached the time at which it is to end."""


@dataclass
class Touched:
    """Amount that a read has read so far; `until`: the time, by a clock, at which it is to end."""

    files: int = 0
    row_groups: int = 0
    rows: int = 0
    bytes: int = 0
    until: float = math.inf


@dataclass(frozen=True)
class Scan:
    """Rows of `snapshot` that are in every range and for which `where` is true."""

    snapshot: Snapshot
    ranges: tuple[KeyRange, ...] = ()
    where: Predicate | None = None
    touched: Touched = field(default_factory=Touched)

    @property
    def bounded(self) -> frozenset[str]:
        """Columns whose bounds can exclude a unit."""
        return frozenset(c for key_range in self._ranges for c in key_range.columns)

    def files(self, *, also: tuple[str, ...] = ()) -> list[DataFile]:
        """Return the files that may hold wanted rows, with bounds of the columns in `also`, too."""
        files = self.snapshot.files({*self.bounded, *also}, self._ranges)
        return [file for file in files if self._may_hold(file)]

    def row_groups(self, file: DataFile, *, also: tuple[str, ...] = ()) -> list[RowGroup]:
        """Return the file's row groups that may hold wanted rows; opens the file."""
        self.touched.files += 1
        groups = self.snapshot.row_groups(file, {*self.bounded, *also}, self._ranges)
        return [group for group in groups if self._may_hold(group)]

    def read(self, group: RowGroup, columns: tuple[str, ...]) -> pa.Table:
        """Return the wanted rows of a row group, with these columns."""
        self.note(group, columns)
        if not self._tested:
            return self.snapshot.read(group, columns)
        found = self.find([group], ())
        if not found.num_rows:
            return self.snapshot.schema.empty_table().select(columns)
        return self.fetch([group], found[ROW], columns)

    def find(self, groups: Sequence[RowGroup], columns: tuple[str, ...]) -> pa.Table:
        """Return which rows of one file's row groups are wanted: GROUP, ROW and these columns.

        GROUP is the row group's place among those given, ROW the row's number in it.
        """
        needed = dict.fromkeys((*columns, *self._tested))
        table = self.snapshot.read_stored(groups, needed, again=self._is_narrow)
        numbers = enumerate(group.rows for group in groups)
        places = [pa.repeat(pa.scalar(i), rows) for i, rows in numbers]
        rows = [pa.arange(0, group.rows) for group in groups]
        added = [pa.chunked_array(places, pa.int64()), pa.chunked_array(rows, pa.int64())]
        names = [*table.column_names, GROUP, ROW]
        table = pa.Table.from_arrays([*table.columns, *added], names=names)
        if groups[0].file.kept is not None:
            table = table.filter(pa.chunked_array([group.kept for group in groups]))
        for key_range in self.ranges:
            table = key_range.rows(table)
        table = self.where.rows(table) if self.where else table
        return table.select([*columns, GROUP, ROW])

    def fetch(
        self, groups: Sequence[RowGroup], numbers: pa.ChunkedArray, columns: tuple[str, ...]
    ) -> pa.Table:
        """Return these columns of the numbered rows, counted through row groups of one file."""
        table = self.snapshot.read_stored(groups, columns, again=self._is_narrow)
        return table if len(numbers) == table.num_rows else table.take(numbers)

    def note(self, group: RowGroup, columns: tuple[str, ...]) -> None:
        """Count a row group that is read. Raises Overdue if the read is to have ended."""
        if time.monotonic() > self.touched.until:
            raise Overdue
        self.touched.row_groups += 1
        self.touched.rows += group.rows
        needed = tuple(dict.fromkeys((*columns, *self._tested)))
        self.touched.bytes += stored_bytes(self.snapshot.uri, group.file.path, group.index, needed)

    def read_unordered(
        self, columns: tuple[str, ...], limit: int | None = None
    ) -> Iterator[pa.Table]:
        """Yield the wanted rows as they are stored, at most `limit`."""
        return (table.select(columns) for table in self.read_numbered(columns, limit))

    def read_numbered(
        self, columns: tuple[str, ...], limit: int | None = None, after: int = -1
    ) -> Iterator[pa.Table]:
        """Yield the wanted rows as they are stored, at most `limit`: these columns, and ROW.

        Here, ROW numbers the stored rows of the version, whose order never changes. `after`: the
        number of a row, to start behind it.
        """
        left, few = limit, TOGETHER if limit is None else min(limit, TOGETHER)
        for file in self.files():
            start = self.snapshot.starts[file.path]
            unread = [g for g in self.row_groups(file) if start + g.start + g.rows > after + 1]
            for groups in _gather(unread, few):
                if left is not None and left <= 0:
                    return
                first = start + groups[0].start
                for group in groups:
                    self.note(group, columns)
                numbers = self._number(groups)
                if after >= first:
                    numbers = numbers.filter(pc.greater(numbers, after - first))
                if len(numbers):
                    table = self.fetch(groups, numbers, columns)
                    table = table.append_column(ROW, pc.add(numbers, first)).slice(0, left)
                    left = left if left is None else left - table.num_rows
                    yield table

    def _number(self, groups: Sequence[RowGroup]) -> pa.ChunkedArray:
        """Return the numbers of the wanted rows, counted through row groups of one file."""
        if not self._tested and groups[0].file.kept is None:
            return pa.chunked_array([pa.arange(0, sum(group.rows for group in groups))])
        found = self.find(groups, ())
        begins = pa.array([group.start - groups[0].start for group in groups])
        return pc.add(pc.take(begins, found[GROUP]), found[ROW])

    def only(self, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        """Yield the row of one key, if there is one; the file with most rows is read first.

        If files of many batches may hold the key, that file is the likeliest place.
        """
        (key,) = self.ranges
        assert key.low is not None
        for file in sorted(self.files(), key=lambda file: -(file.rows or 0)):
            if (found := self._look_up(file, key, columns)) is not None:
                if found.num_rows:
                    yield found
                    return
                continue
            for group in self.row_groups(file):
                self.note(group, columns)
                keys = self.snapshot.read(group, key.columns, again=True)
                found = pc.indices_nonzero(KeyOrder(key.columns).at(keys, key.low))
                if len(found):
                    rows = self.snapshot.read(group, columns, again=True)
                    yield rows.slice(found[0].as_py(), 1)
                    return

    def _look_up(self, file: DataFile, key: KeyRange, columns: tuple[str, ...]) -> pa.Table | None:
        """Return the row of a key in a file by this machine's index; None if it has none."""
        assert key.low is not None
        named = zip(key.columns, key.low, strict=True)
        values = {c: None if p == NULL else p[-1] for c, p in named if p != NAN}
        rows = self.snapshot.look_up(file, values, tuple(dict.fromkeys((*columns, *key.columns))))
        if rows is None:
            return None
        self.touched.files += 1
        self.touched.rows += rows.num_rows
        return rows.filter(KeyOrder(key.columns).at(rows, key.low)).select(columns)

    @cached_property
    def _is_narrow(self) -> bool:
        """True for rows of one key, whose row groups are likely to be read again soon."""
        return any(key_range.low and key_range.low == key_range.high for key_range in self.ranges)

    @cached_property
    def _ranges(self) -> tuple[KeyRange, ...]:
        return (*self.ranges, *(self.where.ranges if self.where else ()))

    @cached_property
    def _tested(self) -> tuple[str, ...]:
        """Columns that decide whether a row is wanted."""
        tested = {c for key_range in self.ranges for c in key_range.columns}
        return tuple(sorted(tested | (self.where.columns if self.where else set())))

    def _may_hold(self, unit: DataFile | RowGroup) -> bool:
        return unit.rows != 0 and all(one.may_hold(unit.bounds) for one in self._unboxed)

    @cached_property
    def _unboxed(self) -> tuple[KeyRange, ...]:
        """Ranges that rule out more units than their columns do one by one."""
        return tuple(one for one in self._ranges if not one.is_box)


def _gather(groups: Sequence[RowGroup], rows: int) -> Iterator[list[RowGroup]]:
    """Yield row groups that follow each other in the file, about that many rows at a time."""
    some = list[RowGroup]()
    for group in groups:
        is_next = not some or group.index == some[-1].index + 1
        if not is_next or sum(one.rows for one in some) >= rows:
            yield some
            some = []
        some.append(group)
    if some:
        yield some


def small_feed(
    name: str, uri: str, after: int, upto: int, columns: Sequence[str], limits: Limits
) -> tuple[pa.Table, pa.Table] | None:
    """Return these columns of the rows removed and of the rows added in versions (after, upto].

    None if they are many, or can no longer be read.
    """
    fields = [pa.schema(open_delta(name, uri, upto).schema().to_arrow()).field(c) for c in columns]
    if after == upto:
        return pa.schema(fields).empty_table(), pa.schema(fields).empty_table()
    try:
        if feed_size(uri, after, upto).bytes > limits.delivered_bytes:
            return None
        delta = open_delta(name, uri, upto)
        changes = stream_feed(delta, after, upto, [CHANGE_TYPE, *columns]).read_all()
    except (DeltaError, pa.ArrowException, OSError, KeyError):
        return None
    kinds = changes[CHANGE_TYPE].cast(pa.string())
    went = pc.is_in(kinds, pa.array(GOES))
    rows = changes.select(columns).cast(pa.schema(fields))
    return rows.filter(went), rows.filter(pc.invert(went))
