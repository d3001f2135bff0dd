"""Total orders over rows, and ranges of them: the common part of sorting, key ranges and pruning.

As in Spark, null precedes every value in every column, and NaN follows. Descending is the exact
mirror of ascending. A bound may have fewer columns than the order: then it matches every row that
begins with it.

Bounds of a column's values in a file or row group come from statistics. They may be wider than the
values, never narrower. Some statistics can't be trusted to hold every value: floats with NaN,
decimals that went through JSON, types without an order. For such a column the bounds are unknown,
and its file is read.
"""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from math import isnan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sluice.errors import UsageError
from sluice.language.names import unknown
from sluice.read.values import check, from_text

EXACT_IN_JSON = 15  # decimal digits that a double preserves
CUT = timedelta(microseconds=999)  # statistics in the Delta log are cut to milliseconds


@dataclass(frozen=True, slots=True)
class Bounds:
    """Range that holds all non-null values: [low, high], both None if there is no such value."""

    low: Any = None
    high: Any = None
    has_nulls: bool = True
    is_known: bool = True


UNKNOWN = Bounds(is_known=False)
ONLY_NULLS = Bounds()


def bounds_of(low: Any, high: Any, nulls: int | None, rows: int | None) -> Bounds:
    """Return bounds from a minimum, a maximum and a null count; any of them may be missing."""
    if low is None or high is None:
        return ONLY_NULLS if nulls is not None and nulls == rows else UNKNOWN
    return Bounds(low, high, has_nulls=nulls != 0)


def from_log(kind: pa.DataType, stats: Mapping[str, Any], column: str) -> Bounds:
    """Return the bounds of a data file from one flattened add action."""
    if f"partition.{column}" in stats:
        value = stats[f"partition.{column}"]
        return bounds_of(value, value, int(value is None), 1)
    low, high = stats.get(f"min.{column}"), stats.get(f"max.{column}")
    found = bounds_of(low, high, stats.get(f"null_count.{column}"), stats.get("num_records"))
    if low is None or high is None:
        return found
    if not _is_trusted(kind, low) or (isinstance(low, Decimal) and kind.precision > EXACT_IN_JSON):
        return UNKNOWN
    if isinstance(low, datetime):
        return Bounds(_shift(low, -CUT), _shift(high, CUT), found.has_nulls)
    return found


def from_parquet(kind: pa.DataType, statistics: Any, rows: int) -> Bounds:
    """Return a row group's bounds from a Parquet column chunk's statistics (None if missing)."""
    if statistics is None:
        return UNKNOWN
    nulls = statistics.null_count if statistics.has_null_count else None
    if not statistics.has_min_max:
        return bounds_of(None, None, nulls, rows)
    low, high = statistics.min, statistics.max
    return bounds_of(low, high, nulls, rows) if _is_trusted(kind, low) else UNKNOWN


def _shift(moment: datetime, by: timedelta) -> datetime:
    """Return the time shifted by that much, or itself at the end of the calendar."""
    try:
        return moment + by
    except OverflowError:
        return moment


def _is_trusted(kind: pa.DataType, value: Any) -> bool:
    """True if a statistic has the column's own type and is ordered as the column's values are."""
    if pa.types.is_timestamp(kind):
        aware = isinstance(value, datetime) and value.tzinfo is not None
        return kind.unit == "us" and isinstance(value, datetime) and aware == (kind.tz is not None)
    if pa.types.is_date(kind):
        return isinstance(value, date) and not isinstance(value, datetime)
    if pa.types.is_decimal(kind):
        return isinstance(value, Decimal)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return isinstance(value, int)
    return pa.types.is_string(kind) and isinstance(value, str)


# Position of a value in its column's order; places compare as plain tuples.
Place = tuple[int] | tuple[int, Any]
Places = tuple[Place, ...]
FIRST: Place = (-1,)
NULL: Place = (0,)
NAN: Place = (2,)
LAST: Place = (3,)


def place(value: Any) -> Place:
    """Return the place of that value."""
    if value is None:
        return NULL
    return NAN if isinstance(value, float) and isnan(value) else (1, value)


def places(values: tuple[Any, ...]) -> Places:
    """Return the place of a key, column by column."""
    return tuple(place(value) for value in values)


def lowest(bounds: Bounds) -> Place:
    """Return a bound before which there is no row within the bounds."""
    if not bounds.is_known:
        return FIRST
    return NULL if bounds.has_nulls else place(bounds.low)


def highest(bounds: Bounds) -> Place:
    """Return a bound after which there is no row within the bounds."""
    return place(bounds.high) if bounds.is_known else LAST


@dataclass(frozen=True)
class KeyOrder:
    """Rows ordered by `columns`, all ascending or all descending."""

    columns: tuple[str, ...]
    descending: bool = False

    def best(self, bounds: Mapping[str, Bounds]) -> Places:
        """Return a place before which no row of a unit with these bounds comes.

        Column-wise minima are also a lower bound of the tuples. A row whose first column is at its
        minimum has its second column at or above its own.
        """
        edge = highest if self.descending else lowest
        return tuple(edge(bounds.get(column, UNKNOWN)) for column in self.columns)

    def precedes(self, one: Places, other: Places) -> bool:
        """True if place `one` comes strictly before place `other`."""
        return one > other if self.descending else one < other

    def before(self, table: pa.Table, bound: Places) -> pa.ChunkedArray:
        """Return a mask of the rows that come strictly before `bound`."""
        mask = None
        for column, limit in reversed(list(zip(self.columns, bound, strict=False))):
            strictly, equal = self._compare(table[column], limit)
            mask = strictly if mask is None else pc.or_(strictly, pc.and_(equal, mask))
        return mask

    def at(self, table: pa.Table, bound: Places) -> pa.ChunkedArray:
        """Return a mask of the rows equal to `bound` in its columns."""
        named = zip(self.columns, bound, strict=False)
        return reduce(pc.and_, (self._equal(table[column], limit) for column, limit in named))

    def sort(self, table: pa.Table) -> pa.Table:
        """Return the rows in this order."""
        table = table.combine_chunks()
        return table.take(self.rank(table))

    def rank(self, table: pa.Table) -> pa.Array:
        """Return the numbers of the rows in this order."""
        way = "descending" if self.descending else "ascending"
        at = "at_end" if self.descending else "at_start"
        keys: list[tuple[str, str, str]] = []
        for column in self.columns:
            if pa.types.is_floating(table[column].type):  # Arrow sorts NaN next to null
                table = table.append_column(f"{column} is nan", pc.is_nan(table[column]))
                keys.append((f"{column} is nan", way, at))
            keys.append((column, way, at))
        return pc.sort_indices(table, sort_keys=keys)

    def count(self, table: pa.Table) -> int:
        """Return the number of different places of rows; -0.0 and 0.0 have one, NaNs too."""
        places = {name: table[name] for name in self.columns}
        for name, column in places.items():
            if pa.types.is_floating(column.type):
                nan = pa.scalar(float("nan"), column.type)
                places[name] = pc.if_else(pc.is_nan(column), nan, pc.add(column, 0.0))
        rows = pa.table(places).group_by(list(places), use_threads=False).aggregate([])
        return int(rows.num_rows)

    def _compare(self, values: pa.ChunkedArray, limit: Place) -> tuple[Any, Any]:
        """Return masks of the values before the limit, and of those equal to it."""
        if limit in (FIRST, LAST):
            outside = (limit == FIRST) == self.descending
            return _constant(values, outside), _constant(values, value=False)
        equal = self._equal(values, limit)
        if limit in (NULL, NAN):
            is_first = (limit == NAN) == self.descending
            return _constant(values, value=False) if is_first else pc.invert(equal), equal
        compare = pc.greater if self.descending else pc.less
        before = compare(values, pa.scalar(limit[-1], values.type))
        if self.descending and pa.types.is_floating(values.type):
            before = pc.or_(before, pc.is_nan(values))
        return pc.fill_null(before, not self.descending), equal

    @staticmethod
    def _equal(values: pa.ChunkedArray, limit: Place) -> pa.ChunkedArray:
        """Return a mask of the values equal to the limit: a value, null or NaN."""
        if limit == NULL:
            return pc.is_null(values)
        is_nan = limit == NAN
        equal = pc.is_nan(values) if is_nan else pc.equal(values, pa.scalar(limit[-1], values.type))
        return pc.fill_null(equal, fill_value=False) if values.null_count else equal


def _constant(values: pa.ChunkedArray, value: bool) -> pa.ChunkedArray:
    chunks = [pa.repeat(pa.scalar(value), len(chunk)) for chunk in values.chunks]
    return pa.chunked_array(chunks, pa.bool_())


@dataclass(frozen=True)
class KeyRange:
    """Rows whose `columns` lie in [low, high] of the key order; None leaves an end open.

    `is_open`: the bounds themselves are outside.
    """

    columns: tuple[str, ...]
    low: Places | None = None
    high: Places | None = None
    is_open: bool = False

    @property
    def is_box(self) -> bool:
        """True if the bounds of each column by itself show which units may hold a row."""
        return len(self.columns) == 1 or (self.low is not None and self.low == self.high)

    def may_hold(self, bounds: Mapping[str, Bounds]) -> bool:
        """Return False only if no row within the bounds can be in the range.

        After columns that have one value in the range, the next one's bounds count by themselves.
        """
        low, high = KeyOrder(self.columns).best(bounds), KeyOrder(self.columns, True).best(bounds)
        below = self.high is not None and low[: len(self.high)] > self.high
        above = self.low is not None and high[: len(self.low)] < self.low
        if below or above:
            return False
        for first, last, lows, highs in zip(
            self.low or (), self.high or (), low, high, strict=False
        ):
            if lows > last or highs < first:
                return False
            if first != last:
                break
        return True

    def rows(self, table: pa.Table) -> pa.Table:
        """Return the table's rows within the range."""
        if self.low is not None and self.low == self.high and not self.is_open:
            return table.filter(KeyOrder(self.columns).at(table, self.low))
        if self.low is not None:
            table = table.filter(self._beyond(table, self.low, descending=False))
        if self.high is not None:
            table = table.filter(self._beyond(table, self.high, descending=True))
        return table

    def _beyond(self, table: pa.Table, bound: Places, descending: bool) -> pa.ChunkedArray:
        if self.is_open:
            return KeyOrder(self.columns, not descending).before(table, bound)
        return pc.invert(KeyOrder(self.columns, descending).before(table, bound))


def only(columns: tuple[str, ...], values: tuple[Any, ...]) -> KeyRange:
    """Return the range of exactly that key; null equals null."""
    return KeyRange(columns, places(values), places(values))


Key = Any


@dataclass(frozen=True)
class KeyColumns:
    """Key columns of `table`, with their types."""

    table: str
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]

    @classmethod
    def of(cls, table: str, names: Sequence[str], schema: pa.Schema) -> "KeyColumns":
        return cls(table, tuple(names), tuple(schema.field(name).type for name in names))

    def first(self, count: int) -> "KeyColumns":
        """Return only the first columns."""
        return KeyColumns(self.table, self.names[:count], self.types[:count])

    def exactly(self, key: Key) -> KeyRange:
        """Return the range of that key; every column must be given."""
        values = self.check_key(key)
        if len(values) != len(self.names):
            raise self.misfit(len(values))
        return only(self.names, values)

    def between(self, key_from: Key, key_to: Key) -> tuple[KeyRange, ...]:
        """Return the range of two inclusive bounds on all or the first columns; None is open."""
        if key_from is None and key_to is None:
            return ()
        return (KeyRange(self.names, self._bound(key_from), self._bound(key_to)),)

    def are_backward(self, key_from: Key, key_to: Key) -> bool:
        """True if the first of two bounds is after the second."""
        low, high = self._bound(key_from) or (), self._bound(key_to) or ()
        named = min(len(low), len(high))
        return low[:named] > high[:named]

    def check_key(self, key: Key) -> tuple[Any, ...]:
        """Return the key's values in the columns' own types."""
        values = tuple(key) if isinstance(key, tuple | list) else (key,)
        if not 0 < len(values) <= len(self.names):
            raise self.misfit(len(values))
        columns = zip(values, self.types, self.names, strict=False)
        return tuple(check(value, kind, name) for value, kind, name in columns)

    def read_values(self, key: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return a key's values in order, from either values in order or values by column."""
        is_start = {*self.names[: len(named)]} == {*named}
        if bool(key) == bool(named) or not is_start:
            wrong = next(
                (unknown("key column", n, self.names) for n in named if n not in self.names), ""
            )
            raise UsageError(
                wrong or "a key's values are given all in its order, or each by its column's name",
                hint=f"the key of {self.table!r} is ({', '.join(self.names)})",
            )
        return tuple(key) or tuple(named[name] for name in self.names[: len(named)])

    def parse(self, texts: Sequence[str | None]) -> tuple[Any, ...] | None:
        """Return a key from texts, of which None is null; None if nothing is given."""
        if len(texts) > len(self.names):
            raise self.misfit(len(texts))
        columns = zip(texts, self.types, self.names, strict=False)
        values = (None if t is None else from_text(t, kind, name) for t, kind, name in columns)
        return tuple(values) or None

    def _bound(self, key: Key) -> Places | None:
        return None if key is None else places(self.check_key(key))

    def misfit(self, given: int) -> UsageError:
        if not self.names:
            return UsageError(
                f"the rows of {self.table!r} have no key to identify one by",
                hint=f"`sluice read {self.table} --where ...` finds them",
            )
        values = "1 value doesn't" if given == 1 else f"{given} values don't"
        names = ", ".join(self.names)
        return UsageError(f"the key of {self.table!r} is ({names}): {values} fit it")


@dataclass(frozen=True)
class Cursors:
    """Cursors of a read: ends of pages, as texts that a service can pass to its caller and back.

    A cursor holds the values of the order's columns in the last row taken. So the next page begins
    right after that row, whatever was added or removed since. `order`: columns of a row, to which
    `complete` adds hidden ones. `after`: the cursor after which the read began.
    """

    order: Sequence[str] = ()
    complete: Callable[[pa.RecordBatch], Any] = lambda row: row
    after: str | None = None

    def behind(self, row: pa.RecordBatch) -> str | None:
        """Return the cursor after this row."""
        if not self.order:
            return None
        found = self.complete(row)
        values = {name: _text(found.column(name)[0].as_py()) for name in self.order}
        return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def behind(cursor: str, order: KeyOrder, schema: pa.Schema) -> KeyRange:
    """Return the rows after a cursor in an order. Raises UsageError for another read's."""
    try:
        named = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        texts = [named[name] for name in order.columns]
    except (ValueError, KeyError, TypeError):
        raise _refuse_cursor(cursor) from None
    if len(named) != len(texts) or not all(text is None or isinstance(text, str) for text in texts):
        raise _refuse_cursor(cursor)
    kinds = [schema.field(name).type for name in order.columns]
    values = (
        None if text is None else from_text(text, kind, name)
        for text, kind, name in zip(texts, kinds, order.columns, strict=True)
    )
    place = places(tuple(values))
    if order.descending:
        return KeyRange(order.columns, high=place, is_open=True)
    return KeyRange(order.columns, low=place, is_open=True)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, date):  # and datetimes
        return value.isoformat()
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _refuse_cursor(cursor: str) -> UsageError:
    return UsageError(
        f"{cursor!r} is not a cursor of this read",
        hint="give `after` the previous page's cursor: `rows.cursor`, or the command's last line",
    )
