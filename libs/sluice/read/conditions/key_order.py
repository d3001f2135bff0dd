"""Total orders over rows, and ranges of them: the common part of sorting, key ranges and pruning.

As in Spark, null precedes every value in every column, and NaN follows. Descending is the exact
mirror of ascending. A bound may have fewer columns than the order: then it matches every row that
begins with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from math import isnan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sluice.read.conditions.bounds import UNKNOWN, Bounds

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
        return table.take(self.ranked(table))

    def ranked(self, table: pa.Table) -> pa.Array:
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

    def may_hold(self, bounds: Mapping[str, Bounds]) -> bool:
        """Return False only if no row within the bounds can be in the range."""
        low, high = KeyOrder(self.columns).best(bounds), KeyOrder(self.columns, True).best(bounds)
        below = self.high is not None and low[: len(self.high)] > self.high
        above = self.low is not None and high[: len(self.low)] < self.low
        return not (below or above)

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
