"""A keyed table as a key-value store: get, range and all, in key order, without Spark.

Keys of several columns order column by column. A range's bounds are inclusive and may name only the
first columns of the key. Null is a key like any other and precedes all others. So an open lower
bound includes it, and two adjoining ranges split a table without a gap.

A read is an iterator over dicts that reads only as many rows as it returns. The remaining rows are
also available as Arrow batches or one Arrow table. The read stays at the table version at which it
was opened. Its cursor marks the last row, for another read to continue there.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from sluice.errors import UsageError
from sluice.language.names import RESERVED_PREFIX, Row
from sluice.read import where as predicates
from sluice.read.first import MOST, Candidates, read_in_order
from sluice.read.key_order import Cursors, Key, KeyColumns, KeyOrder, KeyRange, behind
from sluice.read.scan import ROW, Scan, Touched
from sluice.read.snapshot import Snapshot
from sluice.read.values import check_columns, type_name

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


NUMBERED = KeyOrder((ROW,)), pa.schema([(ROW, pa.int64())])  # the order of rows as they are stored


class KeyValues(ABC):
    """Reads in key order: a range or everything, forward or reversed."""

    backward_iteration: bool

    @property
    @abstractmethod
    def name(self) -> str:
        """Name that the table was opened by."""

    @property
    @abstractmethod
    def version(self) -> int:
        """Version of these rows."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Schema of the visible columns."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of visible rows."""

    @property
    @abstractmethod
    def stored(self) -> list[str]:
        """Stored tables that hold these rows."""

    @abstractmethod
    def get(self, *key: Any, **named: Any) -> Row | None:
        """Return the row of that key, given in order or by columns; None if there is none."""

    @abstractmethod
    def read(
        self,
        *,
        where: str | None = None,
        limit: int | None = None,
        columns: Iterable[str] | None = None,
        after: str | None = None,
    ) -> Rows:
        """Return rows in no particular order."""

    @property
    @abstractmethod
    def key(self) -> KeyColumns:
        """Key columns that a reader can name."""

    @property
    def row_key(self) -> KeyColumns:
        """Key columns of one row. Raises UsageError if rows differ only in hidden columns."""
        return self.key

    @property
    def leading(self) -> tuple[str, ...]:
        """Columns that identify a row, which people see first."""
        return self.key.names

    @abstractmethod
    def between(
        self,
        ranges: tuple[KeyRange, ...],
        *,
        reverse: bool,
        limit: int | None,
        where: str | None,
        columns: Iterable[str] | None,
        after: str | None,
    ) -> Rows:
        """Return the rows in these ranges of keys, in key order, after the cursor `after`."""

    def range(
        self,
        *,
        key_from: Key = None,
        key_to: Key = None,
        reverse: bool = False,
        limit: int | None = None,
        where: str | None = None,
        columns: Iterable[str] | None = None,
        after: str | None = None,
    ) -> Rows:
        """Return the rows from `key_from` to `key_to`, both included, in key order.

        `after`: the `cursor` of another read, to start after the last row of its page.
        """
        if self.backward_iteration and self.key.are_backward(key_from, key_to):
            key_from, key_to, reverse = key_to, key_from, True
        ranges = self.key.between(key_from, key_to)
        return self.between(
            ranges, reverse=reverse, limit=limit, where=where, columns=columns, after=after
        )

    def all(
        self,
        *,
        reverse: bool = False,
        limit: int | None = None,
        where: str | None = None,
        columns: Iterable[str] | None = None,
        after: str | None = None,
    ) -> Rows:
        """Return every row in key order."""
        return self.range(reverse=reverse, limit=limit, where=where, columns=columns, after=after)

    def to_arrow(self) -> pa.Table:
        """Return every row, in key order, as an Arrow table."""
        return self.all().to_arrow()


@dataclass(frozen=True)
class KeyedTable(KeyValues):
    """One version of a table. `identity` orders it totally; its visible columns are the key.

    `current` names the flag of a key's standing version, in a table that keeps all versions.
    `backward_iteration` allows ranges from a later to an earlier key. `first` names columns that
    people see even before the key.
    """

    snapshot: Snapshot
    identity: tuple[str, ...]
    current: str | None = None
    backward_iteration: bool = False
    newest: Callable[[], "KeyedTable"] | None = field(default=None, compare=False)
    first: tuple[str, ...] = ()

    def refresh(self) -> "KeyedTable":
        """Return the table at its newest version; this one, and its reads, keep theirs."""
        return self.newest() if self.newest else self

    @property
    def name(self) -> str:
        return self.snapshot.name

    @property
    def stored(self) -> list[str]:
        return [self.name]

    @property
    def version(self) -> int:
        return self.snapshot.version

    @cached_property
    def key(self) -> KeyColumns:
        names = [c for c in self.identity if not c.startswith(RESERVED_PREFIX)]
        return KeyColumns.of(self.name, names, self.snapshot.schema)

    @property
    def row_key(self) -> KeyColumns:
        if len(self.key.names) < len(self.identity) or not self.identity:
            raise UsageError(
                f"the rows of {self.name!r} have no key to identify one by",
                hint=f"use a range, or `sluice read {self.name} --where ...`",
            )
        return self.key

    @property
    def leading(self) -> tuple[str, ...]:
        columns = dict.fromkeys((*self.first, *self.identity))
        return tuple(c for c in columns if c in self.snapshot.visible)

    @property
    def schema(self) -> pa.Schema:
        return self.snapshot.visible_schema

    @property
    def count(self) -> int:
        return self.snapshot.count()

    def get(self, *key: Any, **named: Any) -> Row | None:
        """Return the row of that key, or None; of a history, the current version."""
        key = self.row_key.read_values(key, named)
        columns = self.row_key.first(len(key)) if self.current else self.row_key
        key_range = columns.exactly(key[0] if len(key) == 1 else key)
        if self.current is None:
            return next(self.only(key_range), None)
        rows = self.select((key_range,), KeyOrder(self.identity))
        return next((row for row in rows if row[self.current]), None)

    def only(self, key_range: KeyRange) -> Rows:
        """Return the visible row in a range that holds one at most."""
        scan = Scan(self.snapshot, (key_range,))
        return Rows(scan.only(self.snapshot.visible), self.schema, self.version, scan.touched)

    def between(
        self,
        ranges: tuple[KeyRange, ...],
        *,
        reverse: bool,
        limit: int | None,
        where: str | None,
        columns: Iterable[str] | None,
        after: str | None,
    ) -> Rows:
        return self.select(ranges, KeyOrder(self.identity, reverse), where, columns, limit, after)

    def read(
        self,
        *,
        where: str | None = None,
        limit: int | None = None,
        columns: Iterable[str] | None = None,
        after: str | None = None,
    ) -> Rows:
        """Return rows in no particular order, which costs no sort."""
        return self.select((), None, where, columns, limit, after)

    def select(
        self,
        ranges: tuple[KeyRange, ...],
        order: KeyOrder | None,
        where: str | None = None,
        columns: Iterable[str] | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Rows:
        """Return the visible rows in these ranges, after the cursor `after`.

        Without an order, rows come as they are stored.
        """
        limit = check_limit(limit)
        shown = check_columns(self.name, columns, self.snapshot.visible)
        condition = predicates.parse(where, self.snapshot.schema) if where is not None else None
        schema = pa.schema([self.snapshot.schema.field(c) for c in shown])
        if not order or not order.columns:
            scan, cursors = Scan(self.snapshot, ranges, condition), Cursors((ROW,), after=after)
            place = () if after is None else behind(after, *NUMBERED).low
            number = int(place[0][-1]) if place else -1
            tables = scan.read_numbered(shown, limit, number)
            return Rows(tables, schema, self.version, scan.touched, cursors)
        self._check_order(order)
        if after is not None:
            ranges = (*ranges, behind(after, order, self.snapshot.schema))
        scan = Scan(self.snapshot, ranges, condition)
        if limit and limit <= MOST:
            search = Candidates(scan, order, limit)
            cursors = Cursors(order.columns, search.complete, after)
            return Rows(search.tables(shown), schema, self.version, scan.touched, cursors)
        cursors = Cursors(order.columns, after=after)
        tables = read_in_order(scan, order, shown, limit)
        return Rows(tables, schema, self.version, scan.touched, cursors)

    def _check_order(self, order: KeyOrder) -> None:
        for column in order.columns:
            kind = self.snapshot.schema.field(column).type
            if pa.types.is_nested(kind):
                raise UsageError(
                    f"the rows of {self.name!r} have no order: column {column!r} of their key is "
                    f"of type {type_name(kind)}",
                    hint=f"read them as they are stored: `sluice read {self.name} --where ...`",
                )
