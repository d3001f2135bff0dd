"""Reading in order without sorting everything: units are visited best first, by their bounds.

Rows wait in a pool until no unread unit can hold a row that comes before them. So the first n
rows cost the units that can hold them, however large the table is, and memory follows the units
whose bounds overlap: one sorted file per day needs one day, disjoint row groups need one group.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

import pyarrow as pa
import pyarrow.compute as pc

from sluice.serving.order import Order, Places
from sluice.serving.scan import Scan
from sluice.serving.snapshot import DataFile, RowGroup

SMALL = 10_000  # rows that are cheap to look through again after each unit


@dataclass(frozen=True)
class _Waiting:
    """A unit on the heap; `number` keeps equal places in the order of the files."""

    order: Order
    place: Places
    number: int
    unit: DataFile | RowGroup

    def __lt__(self, other: "_Waiting") -> bool:
        if self.place == other.place:
            return self.number < other.number
        return self.order.precedes(self.place, other.place)


def ordered(
    scan: Scan, order: Order, columns: tuple[str, ...], limit: int | None = None
) -> Iterator[pa.Table]:
    """The scan's rows in a total order, at most `limit`, table after table.

    With these columns, and those of the order.
    """
    if limit == 0:
        return
    frontier = _Frontier(scan, order)
    needed = tuple(dict.fromkeys((*columns, *order.columns)))
    pool = _Pool(order, limit)
    while frontier.heap:
        yield from pool.release(frontier.heap[0].place)
        if pool.is_done:
            return
        unit = heappop(frontier.heap).unit
        if isinstance(unit, DataFile):
            frontier.open(unit)
        else:
            pool.add(scan.read(unit, needed))
    yield from pool.release(None)


class _Frontier:
    """The units not read yet, best first: files, and the row groups of files that were opened."""

    def __init__(self, scan: Scan, order: Order) -> None:
        self.scan, self.order = scan, order
        self.heap: list[_Waiting] = []
        self._pushed = 0
        for file in scan.files(also=order.columns):
            self._push(file)

    def open(self, file: DataFile) -> None:
        for group in self.scan.row_groups(file, also=self.order.columns):
            self._push(group)

    def _push(self, unit: DataFile | RowGroup) -> None:
        place = self.order.best(unit.bounds)
        heappush(self.heap, _Waiting(self.order, place, self._pushed, unit))
        self._pushed += 1


@dataclass
class _Pool:
    """Rows that were read and can't be handed out yet."""

    order: Order
    left: int | None
    tables: list[pa.Table] = field(default_factory=list)
    rows: int = 0
    patience: int = 0  # rows that must have gathered before it is worth looking again

    @property
    def is_done(self) -> bool:
        return self.left == 0

    def add(self, table: pa.Table) -> None:
        if table.num_rows:
            self.tables.append(table)
            self.rows += table.num_rows
        if self.left is not None and self.rows > 2 * self.left + SMALL:
            self._keep(self.order.sort(pa.concat_tables(self.tables)).slice(0, self.left))

    def release(self, bound: Places | None) -> Iterator[pa.Table]:
        """The rows that no unread unit can precede, in order; `bound` is the best unread place."""
        if not self.rows or (bound is not None and self.rows < self.patience):
            return
        pooled = pa.concat_tables(self.tables)
        if bound is None:
            self._keep(pooled.slice(0, 0))
            yield from self._hand_out(pooled)
            return
        is_ready = self.order.before(pooled, bound)
        count = pc.sum(is_ready).as_py() or 0
        if not self._is_worth(count):
            self.patience = 2 * self.rows if self.rows > SMALL else 0
            return
        self._keep(pooled.filter(pc.invert(is_ready)))
        yield from self._hand_out(pooled.filter(is_ready))

    def _is_worth(self, ready: int) -> bool:
        """Handing out looks through the whole pool: a few rows of a big one can wait."""
        enough = self.left is not None and ready >= self.left
        return enough or (ready > 0 and (self.rows <= SMALL or ready * 8 >= self.rows))

    def _hand_out(self, ready: pa.Table) -> Iterator[pa.Table]:
        ready = self.order.sort(ready).slice(0, self.left)
        if self.left is not None:
            self.left -= ready.num_rows
        yield ready

    def _keep(self, table: pa.Table) -> None:
        self.tables, self.rows, self.patience = [table], table.num_rows, 0
