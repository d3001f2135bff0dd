"""Rows of one read: an iterator over dicts that reads only as many rows as it returns.

The remaining rows are also available as Arrow batches or one Arrow table. The read stays at the
table version at which it was opened. Its cursor marks the last row, for another read to continue
there.
"""

from collections import deque
from collections.abc import Iterator
from functools import cached_property

import pyarrow as pa

from sluice.errors import UsageError
from sluice.language.names import Row
from sluice.read.conditions.key_order import Cursors
from sluice.read.stored.scan import Touched

BATCH = 65_536  # rows of an Arrow batch at most
PAGE = 1_024  # rows turned into dicts at a time
NO_CURSORS = Cursors()


class Rows(Iterator[Row]):
    """Lazy, single pass, pinned to `version`; `touched` shows what it has read so far.

    `tables` may have more columns than `schema`: those with the rows' places.
    """

    def __init__(
        self,
        tables: Iterator[pa.Table],
        schema: pa.Schema,
        version: int,
        touched: Touched,
        cursors: Cursors = NO_CURSORS,
    ) -> None:
        self.schema = schema
        self.version = version
        self.touched = touched
        self._cursors = cursors
        self._left: pa.RecordBatch | None = None  # the last row of the previous batch
        self._source = (
            batch
            for table in tables
            for batch in table.combine_chunks().to_batches(max_chunksize=BATCH)
        )
        self._batch: pa.RecordBatch | None = None
        self._seen = 0  # rows of the batch that are in the page or were taken
        self._page: deque[Row] = deque()

    def __next__(self) -> Row:
        while not self._page:
            if self._batch is None or self._seen == self._batch.num_rows:
                self._turn(next(self._source))
            self._fill()
        return self._page.popleft()

    @cached_property
    def _has_floats(self) -> bool:
        return any("float" in str(kind) for kind in self.schema.types)

    @property
    def cursor(self) -> str | None:
        """Cursor after the last row taken; pass it as `after=` to continue in another read.

        None if nothing was taken, or the read has no order.
        """
        taken = self._seen - len(self._page)
        last = self._batch.slice(taken - 1, 1) if self._batch is not None and taken else self._left
        return self._cursors.after if last is None else self._cursors.behind(last)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows not yet taken, as Arrow record batches."""
        if self._batch is not None:
            begun = self._batch.slice(self._seen - len(self._page))
            self._page.clear()
            self._seen = self._batch.num_rows
            if begun.num_rows:
                yield self._visible(begun)
        for batch in self._source:
            self._turn(batch)
            self._seen = batch.num_rows
            yield self._visible(batch)

    def to_arrow(self) -> pa.Table:
        """Return the rows not yet taken, as one Arrow table."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def _turn(self, batch: pa.RecordBatch) -> None:
        if self._batch is not None and self._batch.num_rows:
            self._left = self._batch.slice(self._batch.num_rows - 1)
        self._batch, self._seen = batch, 0

    def _fill(self) -> None:
        assert self._batch is not None
        page = self._batch.slice(self._seen, PAGE)
        visible = self._visible(page)
        if self._has_floats:
            # FLOATs become the DOUBLEs of the fewest digits that are the same FLOATs, such as 38.4.
            for scalar in (pa.string(), pa.float64()):
                whole = pa.schema(_with(scalar, field) for field in self.schema)
                visible = visible.cast(whole)
        self._page.extend(visible.to_pylist(maps_as_pydicts="lossy"))
        self._seen += page.num_rows

    def _visible(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        visible = batch.select(self.schema.names)
        return visible if visible.schema.equals(self.schema) else visible.cast(self.schema)


def rows_of(table: pa.Table) -> list[Row]:
    """Return the rows of a table, with the values that every read gives."""
    return list(Rows(iter([table]), table.schema, 0, Touched()))


def _with(scalar: pa.DataType, field: pa.Field) -> pa.Field:
    """Return a field with that type for each FLOAT in it."""
    kind = field.type
    if pa.types.is_float32(kind):
        return field.with_type(scalar)
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_with(scalar, kind.value_field)))
    if pa.types.is_map(kind):
        parts = (_with(scalar, part) for part in (kind.key_field, kind.item_field))
        return field.with_type(pa.map_(*parts))
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_with(scalar, part) for part in kind]))
    return field


def check_limit(limit: int | None) -> int | None:
    """Return the limit itself. Raises UsageError if it can't be one."""
    is_number = isinstance(limit, int) and not isinstance(limit, bool)
    if limit is not None and not (is_number and limit >= 0):
        raise UsageError(f"limit must be 0 or more, not {limit!r}")
    return limit
