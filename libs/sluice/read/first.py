"""Ordered reads without a full sort: units are visited best first, by their bounds.

A stream of rows waits in a pool until no unread unit can hold an earlier row. So the first n rows
cost the units that can hold them, however large the table is. Memory follows the units whose bounds
overlap: one sorted file per day needs one day, disjoint row groups need one group.

For a few first rows, few columns decide which they are, and only those rows are read whole. At
first, units are searched one by one, so that the last rows of a busy key touch one row group. Then
more and more are searched at a time, so that a long search pays little for each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import accumulate, groupby, takewhile
from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc

from sluice.language.names import RESERVED_PREFIX
from sluice.read.key_order import KeyOrder, Places, place
from sluice.read.scan import GROUP, ROW, Scan
from sluice.read.snapshot import DataFile, RowGroup


@dataclass(frozen=True)
class Waiting:
    """A unit on the heap; `number` keeps equal places in the order of the files."""

    order: KeyOrder
    place: Places
    number: int
    unit: DataFile | RowGroup

    def __lt__(self, other: "Waiting") -> bool:
        if self.place == other.place:
            return self.number < other.number
        return self.order.precedes(self.place, other.place)


class Units:
    """A heap of the scan's files by the first place that each can hold."""

    def __init__(self, scan: Scan, order: KeyOrder) -> None:
        self.scan, self.order = scan, order
        files = scan.files(also=order.columns)
        self._heap = [self._wait(number, file) for number, file in enumerate(files)]
        self._pushed = len(files)
        heapify(self._heap)

    @property
    def best(self) -> Waiting | None:
        """The next unit; None when all were taken."""
        return self._heap[0] if self._heap else None

    def take(self) -> RowGroup | None:
        """Take the best unit: a row group to read, or None for a file, which is opened."""
        unit = heappop(self._heap).unit
        if isinstance(unit, RowGroup):
            return unit
        for group in self.scan.row_groups(unit, also=self.order.columns):
            heappush(self._heap, self._wait(self._pushed, group))
            self._pushed += 1
        return None

    def _wait(self, number: int, unit: DataFile | RowGroup) -> Waiting:
        return Waiting(self.order, self.order.best(unit.bounds), number, unit)


SMALL = 10_000  # rows that are cheap to search again after each unit
PAGE = 65_536  # rows sorted at a time


def read_in_order(
    scan: Scan, order: KeyOrder, columns: tuple[str, ...], limit: int | None = None
) -> Iterator[pa.Table]:
    """Yield the scan's rows in a total order, at most `limit`, table by table.

    Tables have these columns and those of the order.
    """
    if limit == 0:
        return
    units = Units(scan, order)
    needed = tuple(dict.fromkeys((*columns, *order.columns)))
    pool = _Pool(order, limit)
    while best := units.best:
        if isinstance(best.unit, DataFile):
            pool.patience = 0  # often all rows of earlier files are ready
        yield from pool.release(best.place)
        if pool.is_done:
            return
        if group := units.take():
            pool.add(scan.read(group, needed))
    yield from pool.release(None)


@dataclass
class _Pool:
    """Rows that were read but can't be handed out yet."""

    order: KeyOrder
    left: int | None
    tables: list[pa.Table] = field(default_factory=list)
    rows: int = 0
    patience: int = 0  # rows to gather before it is worth looking again

    @property
    def is_done(self) -> bool:
        return self.left == 0

    def add(self, table: pa.Table) -> None:
        if table.num_rows:
            self.tables.append(table)
            self.rows += table.num_rows
        if self.left is not None and self.rows > 2 * self.left + SMALL:
            first = self.order.sort(pa.concat_tables(self.tables)).slice(0, self.left)
            self.tables, self.rows, self.patience = [first], first.num_rows, 0

    def release(self, bound: Places | None) -> Iterator[pa.Table]:
        """Yield, in order, rows that no unread unit can precede; `bound` is its best place."""
        if not self.rows or (bound is not None and self.rows < self.patience):
            return
        if bound is None:
            yield from self._hand_out(self._take_all())
            return
        masks = [self.order.before(table, bound) for table in self.tables]
        count = sum(pc.sum(mask).as_py() or 0 for mask in masks)
        if not self._is_worth(count):
            self.patience = 2 * self.rows if self.rows > SMALL else 0
            return
        ready, waiting = [], []
        for table, mask in zip(self._take_all(), masks, strict=True):
            here = pc.sum(mask).as_py() or 0
            if here:  # tables that are ready as a whole are not copied
                ready.append(table if here == table.num_rows else table.filter(mask))
            if here < table.num_rows:
                waiting.append(table.filter(pc.invert(mask)) if here else table)
        self.tables, self.rows = waiting, sum(table.num_rows for table in waiting)
        yield from self._hand_out(ready)

    def _is_worth(self, ready: int) -> bool:
        """True if handing out pays: it searches the whole pool, so a few rows of a big one wait."""
        enough = self.left is not None and ready >= self.left
        return enough or (ready > 0 and (self.rows <= SMALL or ready * 8 >= self.rows))

    def _hand_out(self, ready: list[pa.Table]) -> Iterator[pa.Table]:
        """Yield the rows in order, page by page; `ready` is emptied."""
        table = put_together(ready)
        places = self.order.rank(table).slice(0, self.left)
        for start in range(0, len(places), PAGE):
            page = table.take(places.slice(start, PAGE))
            if self.left is not None:
                self.left -= page.num_rows
            yield page

    def _take_all(self) -> list[pa.Table]:
        """Return all tables of the pool, which is then empty."""
        tables, self.tables = self.tables, []
        self.rows = self.patience = 0
        return tables


def put_together(tables: list[pa.Table]) -> pa.Table:
    """Return one table in one piece.

    The list is emptied and the rows are moved column by column, to avoid a second copy of all rows.
    """
    whole = pa.concat_tables(tables)
    tables.clear()
    schema, columns = whole.schema, []
    for name in schema.names:
        columns.append(whole[name].combine_chunks())
        whole = whole.drop_columns([name])
    return pa.Table.from_arrays(columns, schema=schema)


MOST = 10_000  # rows that are searched for this way; more are streamed
ONE_BY_ONE = 4  # row groups; then as many at a time as were searched before
AT_ONCE = 64  # row groups that are searched at a time
TOGETHER = 16  # row groups of a file whose rows are fetched at a time


class Candidates:
    """Candidates found so far: their leading columns, and the places of their rows.

    `limit`: the number of rows wanted, at least one.
    """

    def __init__(self, scan: Scan, order: KeyOrder, limit: int) -> None:
        self.scan, self.order, self.limit = scan, order, limit
        # Columns before the hidden ones distinguish nearly all rows.
        shown = tuple(takewhile(lambda c: not c.startswith(RESERVED_PREFIX), order.columns))
        self.lead = KeyOrder(shown or order.columns, order.descending)
        self.units: list[RowGroup] = []
        self.found: list[pa.Table] = []
        self.edge: Places | None = None  # no row after this place is among the first
        self.unread = Units(scan, self.lead)

    def tables(self, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        """Yield the rows in order as one table.

        It has these columns, those of the order, and hidden ones as needed.
        """
        self._search()
        if not self.found:
            return
        candidates = pa.concat_tables(self.found)
        is_decided = self.lead.count(candidates) == candidates.num_rows
        order = self.lead if is_decided else self.order
        needed = tuple(dict.fromkeys((*columns, *order.columns)))
        parts = [self._rows(chosen, needed) for chosen in self._by_file(candidates)]
        yield order.sort(pa.concat_tables(parts)).slice(0, self.limit)

    def complete(self, row: pa.RecordBatch) -> pa.Table:
        """Return one of these rows with all columns of the order."""
        if set(self.order.columns) <= set(row.schema.names):
            return pa.Table.from_batches([row])
        group, number = row.column(GROUP)[0].as_py(), row.column(ROW)
        return self.scan.fetch([self.units[group]], number, self.order.columns)

    def _search(self) -> None:
        read = 0
        while groups := self._next(max(1, min(read - ONE_BY_ONE, AT_ONCE))):
            read += len(groups)
            by_file: dict[str, list[RowGroup]] = {}
            for group in groups:
                by_file.setdefault(group.file.path, []).append(group)
            for together in by_file.values():
                self._look(together)

    def _by_file(self, candidates: pa.Table) -> Iterator[pa.Table]:
        numbers = sorted(pc.unique(candidates[GROUP]).to_pylist())
        path = [self.units[number].file.path for number in numbers]
        for _, together in groupby(zip(path, numbers, strict=True), key=itemgetter(0)):
            chosen = [number for _, number in together]
            for i in range(0, len(chosen), TOGETHER):
                some = pa.array(chosen[i : i + TOGETHER])
                yield candidates.filter(pc.is_in(candidates[GROUP], some))

    def _rows(self, chosen: pa.Table, columns: tuple[str, ...]) -> pa.Table:
        chosen = chosen.select([GROUP, ROW]).sort_by([(GROUP, "ascending"), (ROW, "ascending")])
        numbers = pc.unique(chosen[GROUP]).to_pylist()
        groups = [self.units[number] for number in numbers]
        begins = accumulate((group.rows for group in groups), initial=0)
        begin = dict(zip(numbers, begins, strict=False))
        at = [begin[group] for group in chosen[GROUP].to_pylist()]
        rows = self.scan.fetch(groups, pc.add(chosen[ROW], pa.array(at)), columns)
        return rows.append_column(GROUP, chosen[GROUP]).append_column(ROW, chosen[ROW])

    def _next(self, count: int) -> list[RowGroup]:
        """Return the best unread row groups that may still change the result; opens files."""
        groups: list[RowGroup] = []
        while (best := self.unread.best) and len(groups) < count:
            if self.edge is not None and self.lead.precedes(self.edge, best.place):
                break
            if group := self.unread.take():
                groups.append(group)
        return groups

    def _look(self, groups: Sequence[RowGroup]) -> None:
        for group in groups:
            self.scan.note(group, self.lead.columns)
        table = self.scan.find(groups, self.lead.columns)
        if self.edge is not None:
            table = self._before_edge(table)
        if not table.num_rows:
            return
        numbers = pc.add(table[GROUP], len(self.units))
        self.units += groups
        self.found.append(table.set_column(table.column_names.index(GROUP), GROUP, numbers))
        if sum(part.num_rows for part in self.found) >= self.limit:
            self._move_edge()

    def _move_edge(self) -> None:
        every = self.lead.sort(pa.concat_tables(self.found))
        last = every.slice(self.limit - 1, 1).select(self.lead.columns).to_pylist()[0]
        self.edge = tuple(place(value) for value in last.values())
        self.found = [self._before_edge(every)]

    def _before_edge(self, table: pa.Table) -> pa.Table:
        """Return the rows up to the edge; those equal to it may still be chosen."""
        assert self.edge is not None
        beyond = KeyOrder(self.lead.columns, not self.lead.descending).before(table, self.edge)
        return table.filter(pc.invert(beyond))
