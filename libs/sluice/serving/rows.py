"""The rows of one read: an iterator over dicts that reads on only as it is asked.

What is left of it can also be had as Arrow batches or as one Arrow table. It stays on the table
version at which it was opened.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from sluice.errors import UsageError
from sluice.serving.scan import Touched

Row = dict[str, Any]
BATCH = 65_536  # rows of an Arrow batch at most
PAGE = 1_024  # rows that are turned into dicts at a time


class Rows(Iterator[Row]):
    """Lazy, single pass, pinned to `version`; `touched` tells what it has read so far."""

    def __init__(
        self, tables: Iterator[pa.Table], schema: pa.Schema, version: int, touched: Touched
    ) -> None:
        self.schema = schema
        self.version = version
        self.touched = touched
        self._source = _batches(tables, schema)
        nothing = [pa.nulls(0, field.type) for field in schema]
        self._batch = pa.RecordBatch.from_arrays(nothing, schema=schema)
        self._seen = 0  # rows of the batch that are in the page or were taken
        self._page: deque[Row] = deque()

    def __next__(self) -> Row:
        while not self._page:
            if self._seen == self._batch.num_rows:
                self._batch, self._seen = next(self._source), 0
            page = self._batch.slice(self._seen, PAGE)
            self._page.extend(page.to_pylist(maps_as_pydicts="lossy"))
            self._seen += page.num_rows
        return self._page.popleft()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows not yet taken, as Arrow record batches."""
        begun = self._batch.slice(self._seen - len(self._page))
        self._page.clear()
        self._seen = self._batch.num_rows
        if begun.num_rows:
            yield begun
        yield from self._source

    def to_arrow(self) -> pa.Table:
        """The rows not yet taken, as one Arrow table."""
        return pa.Table.from_batches(self.batches(), self.schema)


def _batches(tables: Iterator[pa.Table], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for table in tables:
        yield from table.cast(schema).combine_chunks().to_batches(max_chunksize=BATCH)


def check_limit(limit: int | None) -> int | None:
    """The limit itself, if it can be one."""
    if limit is not None and (isinstance(limit, bool) or limit < 0):
        raise UsageError(f"limit must be 0 or more, not {limit}")
    return limit
