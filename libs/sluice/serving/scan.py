"""What one read wants of a snapshot, and what it touched: files and row groups are pruned here.

A unit is a file or a row group. A unit whose bounds can't hold a wanted row is never read; a
file is opened only when one of its row groups may be needed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from sluice.serving.order import Span
from sluice.serving.snapshot import DataFile, RowGroup, Snapshot
from sluice.serving.where import Where


@dataclass
class Touched:
    """How much a read has read so far."""

    files: int = 0
    row_groups: int = 0
    rows: int = 0


@dataclass(frozen=True)
class Scan:
    """The rows of `snapshot` that lie in every span and for which `where` is true."""

    snapshot: Snapshot
    spans: tuple[Span, ...] = ()
    where: Where | None = None
    touched: Touched = field(default_factory=Touched)

    @property
    def bounded(self) -> frozenset[str]:
        """The columns whose bounds can exclude a unit."""
        filters = self.where.spans if self.where else ()
        return frozenset(c for span in (*self.spans, *filters) for c in span.columns)

    def files(self, *, also: tuple[str, ...] = ()) -> list[DataFile]:
        """The files that may hold wanted rows, with the bounds of the columns in `also` too."""
        files = self.snapshot.files({*self.bounded, *also})
        return [file for file in files if self._may_hold(file)]

    def row_groups(self, file: DataFile, *, also: tuple[str, ...] = ()) -> list[RowGroup]:
        """The file's row groups that may hold wanted rows; opens the file."""
        self.touched.files += 1
        groups = self.snapshot.row_groups(file, {*self.bounded, *also})
        return [group for group in groups if self._may_hold(group)]

    def read(self, group: RowGroup, columns: tuple[str, ...]) -> pa.Table:
        """The wanted rows of a row group, with these columns and those that the filters need."""
        needed = {c for span in self.spans for c in span.columns}
        needed |= self.where.columns if self.where else set()
        table = self.snapshot.read(group, dict.fromkeys((*columns, *sorted(needed))))
        self.touched.row_groups += 1
        self.touched.rows += table.num_rows
        for span in self.spans:
            table = span.rows(table)
        return self.where.rows(table) if self.where else table

    def unordered(self, columns: tuple[str, ...], limit: int | None = None) -> Iterator[pa.Table]:
        """The wanted rows as they are stored, at most `limit`."""
        left = limit
        for file in self.files():
            for group in self.row_groups(file):
                if left is not None and left <= 0:
                    return
                table = self.read(group, columns).select(columns).slice(0, left)
                left = left if left is None else left - table.num_rows
                yield table

    def _may_hold(self, unit: DataFile | RowGroup) -> bool:
        filters = self.where.spans if self.where else ()
        return unit.rows != 0 and all(s.may_hold(unit.bounds) for s in (*self.spans, *filters))
