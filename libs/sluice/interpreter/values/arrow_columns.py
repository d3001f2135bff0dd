"""Columns without a list of values: one value in all rows, or Arrow's until they are read. Most
columns of a batch are passed through, and most conditions are the same for all of its rows.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from operator import not_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from sluice.interpreter.values.arrow_conversion import Values, arrow_type, from_arrow, to_arrow


class Same(Sequence[Any]):
    """One value in every row."""

    __slots__ = ("length", "value")

    def __init__(self, value: Any, length: int) -> None:
        self.value, self.length = value, length

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Any]:
        return repeat(self.value, self.length)

    def __getitem__(self, row: Any) -> Any:
        rows = range(self.length)[row]  # which checks it
        return Same(self.value, len(rows)) if isinstance(rows, range) else self.value

    def __contains__(self, value: object) -> bool:
        return self.length > 0 and (self.value is value or self.value == value)


class ArrowColumn(Sequence[Any]):
    """A column of Arrow's, whose values are converted when first read."""

    __slots__ = ("_values", "array", "type")

    def __init__(self, array: pa.Array, type_: T.DataType) -> None:
        self.array, self.type = array, type_
        self._values: Values | None = None

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._list())

    def __getitem__(self, row: Any) -> Any:
        return self._list()[row]

    def take(self, rows: Sequence[int]) -> Values:
        """Return the values of these rows."""
        if self._values is not None:
            return [self._values[row] for row in rows]
        return ArrowColumn(
            self.array.take(pa.array(np.fromiter(rows, np.int64, len(rows)))), self.type
        )

    def settled(self) -> Same | None:
        """Return its only value, if that is null, true or false."""
        count, nulls = len(self), self.array.null_count
        if nulls == count:
            return Same(None, count)
        if nulls or not isinstance(self.type, T.BooleanType):
            return None
        true = self.array.true_count
        return Same(bool(true), count) if true in (0, count) else None

    def _list(self) -> Values:
        if self._values is None:
            self._values = from_arrow(self.array, self.type)
        return self._values


def held(column: pa.ChunkedArray, type_: T.DataType) -> ArrowColumn:
    """Return a column of a table in Arrow."""
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    wanted = arrow_type(type_)
    return ArrowColumn(array if array.type == wanted else array.cast(wanted), type_)


def settled(values: Values) -> Same | None:
    """Return a column as one value, if it certainly has only one."""
    if isinstance(values, ArrowColumn):
        return values.settled()
    return values if isinstance(values, Same) else None


def taken(values: Values, rows: Sequence[int]) -> Values:
    """Return the values of these rows."""
    if isinstance(values, Same):
        return Same(values.value, len(rows))
    return values.take(rows) if isinstance(values, ArrowColumn) else [values[row] for row in rows]


def mapped(function: Callable[[Any], Any], values: Values) -> Values:
    """Return a function of each value that is not null."""
    if values and (one := settled(values)):
        return Same(None if one.value is None else function(one.value), one.length)
    return [None if v is None else function(v) for v in values]


def is_null(values: Values) -> Values:
    """Return true or false for each value."""
    if isinstance(values, Same):
        return Same(values.value is None, values.length)
    if isinstance(values, ArrowColumn):
        return ArrowColumn(values.array.is_null(), T.BooleanType())
    return [v is None for v in values]


def negated(values: Values) -> Values:
    """Return NOT of true, false or null."""
    if isinstance(values, ArrowColumn):
        return ArrowColumn(pc.invert(values.array), values.type)
    return mapped(not_, values)


def compared(name: str, values: ArrowColumn, other: Any) -> Values:
    """Return Arrow's comparison of each value with one that is not null."""
    scalar = to_arrow([other], values.type)[0]
    return ArrowColumn(getattr(pc, name)(values.array, scalar), T.BooleanType())


def column_of(values: Values, type_: T.DataType) -> pa.Array:
    """Return the values in Arrow."""
    if isinstance(values, ArrowColumn) and values.array.type == arrow_type(type_):
        return values.array
    if isinstance(values, Same) and values.length:
        return to_arrow([values.value], type_).take(pa.array(np.zeros(values.length, np.int64)))
    return to_arrow(values, type_)
