"""The first rows of an order: few columns decide which they are, and only those are read whole.

Units are visited best first, by their bounds, until no unread unit can hold an earlier row. At
first, they are read one by one, so that the last rows of a busy key touch one row group. Then more
and more are read at a time, so that a long search pays little for each.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby, takewhile
from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc

from sluice.language.names import RESERVED_PREFIX
from sluice.read.conditions.key_order import KeyOrder, Places, place
from sluice.read.ordered.units import Units
from sluice.read.stored.scan import GROUP, ROW, Scan
from sluice.read.stored.snapshot import RowGroup

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
        self.lead = KeyOrder(_leading(order), order.descending)
        self.units: list[RowGroup] = []
        self.found: list[pa.Table] = []
        self.edge: Places | None = None  # no row after this place is among the first
        self.unread = Units(scan, self.lead)

    def tables(self, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        """Yield the rows in order as one table.

        It has these columns, those of the order, and hidden ones as needed.
        """
        self._run()
        if not self.found:
            return
        candidates = pa.concat_tables(self.found)
        distinct = candidates.group_by(self.lead.columns).aggregate([]).num_rows
        order = self.lead if distinct == candidates.num_rows else self.order
        needed = tuple(dict.fromkeys((*columns, *order.columns)))
        parts = [self._rows(chosen, needed) for chosen in self._by_file(candidates)]
        yield order.sort(pa.concat_tables(parts)).slice(0, self.limit)

    def complete(self, row: pa.RecordBatch) -> pa.Table:
        """Return one of these rows with all columns of the order."""
        if set(self.order.columns) <= set(row.schema.names):
            return pa.Table.from_batches([row])
        group, number = row.column(GROUP)[0].as_py(), row.column(ROW)
        return self.scan.fetch([self.units[group]], number, self.order.columns)

    def _run(self) -> None:
        """Search until it is settled which rows come first."""
        read = 0
        while groups := self._next(max(1, min(read - ONE_BY_ONE, AT_ONCE))):
            read += len(groups)
            by_file: dict[str, list[RowGroup]] = {}
            for group in groups:
                by_file.setdefault(group.file.path, []).append(group)
            for together in by_file.values():
                self._look(together)

    def _by_file(self, candidates: pa.Table) -> Iterator[pa.Table]:
        """Yield the candidates in parts to fetch together: each of a few row groups of a file."""
        numbers = sorted(pc.unique(candidates[GROUP]).to_pylist())
        path = [self.units[number].file.path for number in numbers]
        for _, together in groupby(zip(path, numbers, strict=True), key=itemgetter(0)):
            chosen = [number for _, number in together]
            for i in range(0, len(chosen), TOGETHER):
                some = pa.array(chosen[i : i + TOGETHER])
                yield candidates.filter(pc.is_in(candidates[GROUP], some))

    def _rows(self, chosen: pa.Table, columns: tuple[str, ...]) -> pa.Table:
        """Return those rows with their places."""
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
            if self._is_settled(best.place):
                break
            if group := self.unread.take():
                groups.append(group)
        return groups

    def _is_settled(self, best: Places) -> bool:
        return self.edge is not None and self.lead.precedes(self.edge, best)

    def _look(self, groups: Sequence[RowGroup]) -> None:
        """Find candidates in row groups of one file."""
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


def _leading(order: KeyOrder) -> tuple[str, ...]:
    """Return the columns that distinguish nearly all rows: those before the hidden ones."""
    shown = tuple(takewhile(lambda c: not c.startswith(RESERVED_PREFIX), order.columns))
    return shown or order.columns
