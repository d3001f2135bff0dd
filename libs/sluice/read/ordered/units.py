"""Units to read, best first: files, and the row groups of files that were opened."""

from dataclasses import dataclass
from heapq import heappop, heappush

from sluice.read.conditions.key_order import KeyOrder, Places
from sluice.read.stored.scan import Scan
from sluice.read.stored.snapshot import DataFile, RowGroup


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
        self._heap: list[Waiting] = []
        self._pushed = 0
        for file in scan.files(also=order.columns):
            self._push(file)

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
            self._push(group)
        return None

    def _push(self, unit: DataFile | RowGroup) -> None:
        place = self.order.best(unit.bounds)
        heappush(self._heap, Waiting(self.order, place, self._pushed, unit))
        self._pushed += 1
