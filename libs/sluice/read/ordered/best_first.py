"""Ordered reads without a full sort: units are visited best first, by their bounds.

Rows wait in a pool until no unread unit can hold an earlier row. So the first n rows cost the units
that can hold them, however large the table is. Memory follows the units whose bounds overlap: one
sorted file per day needs one day, disjoint row groups need one group.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from sluice.read.conditions.key_order import KeyOrder, Places
from sluice.read.ordered.units import Units
from sluice.read.stored.scan import Scan
from sluice.read.stored.snapshot import DataFile

SMALL = 10_000  # rows that are cheap to search again after each unit
PAGE = 65_536  # rows sorted at a time


def ordered(
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
            self._keep(self.order.sort(pa.concat_tables(self.tables)).slice(0, self.left))

    def release(self, bound: Places | None) -> Iterator[pa.Table]:
        """Yield, in order, rows that no unread unit can precede; `bound` is its best place."""
        if not self.rows or (bound is not None and self.rows < self.patience):
            return
        if bound is None:
            yield from self._hand_out(self._emptied())
            return
        masks = [self.order.before(table, bound) for table in self.tables]
        count = sum(pc.sum(mask).as_py() or 0 for mask in masks)
        if not self._is_worth(count):
            self.patience = 2 * self.rows if self.rows > SMALL else 0
            return
        ready, waiting = [], []
        for table, mask in zip(self._emptied(), masks, strict=True):
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
        places = self.order.ranked(table).slice(0, self.left)
        for start in range(0, len(places), PAGE):
            page = table.take(places.slice(start, PAGE))
            if self.left is not None:
                self.left -= page.num_rows
            yield page

    def _emptied(self) -> list[pa.Table]:
        """Return all tables of the pool, which is then empty."""
        tables, self.tables = self.tables, []
        self.rows = self.patience = 0
        return tables

    def _keep(self, table: pa.Table) -> None:
        self.tables, self.rows, self.patience = [table], table.num_rows, 0


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
