"""Rows for an expression, as columns, from which parts can be selected."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from operator import not_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.values import OutOfRange, Values, arrow_type, from_arrow, to_arrow

Rows = Sequence[int] | np.ndarray  # by number


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


def hold(column: pa.ChunkedArray, type_: T.DataType) -> ArrowColumn:
    """Return a column of a table in Arrow."""
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    wanted = arrow_type(type_)
    return ArrowColumn(array if array.type == wanted else array.cast(wanted), type_)


def settle(values: Values) -> Same | None:
    """Return a column as one value, if it certainly has only one."""
    if isinstance(values, ArrowColumn):
        return values.settled()
    return values if isinstance(values, Same) else None


def take_rows(values: Values, rows: Rows) -> Values:
    """Return the values of these rows; null for a negative number."""
    if isinstance(values, Same) and values.value is None:
        return Same(None, len(rows))
    numbers = np.fromiter(rows, np.int64, len(rows)) if isinstance(rows, Sequence) else rows
    missing = numbers < 0
    if isinstance(values, ArrowColumn):
        places = pa.array(numbers, mask=missing) if missing.any() else pa.array(numbers)
        return ArrowColumn(values.array.take(places), values.type)
    if isinstance(values, Same) and not missing.any():
        return Same(values.value, len(rows))
    return [None if row < 0 else values[row] for row in numbers.tolist()]


def has_arrow(type_: T.DataType) -> bool:
    """Return whether Arrow holds the values, unlike those of intervals, which no table has."""
    try:
        arrow_type(type_)
    except UnsupportedLocally:
        return False
    return True


def concatenate(columns: Sequence[Values], type_: T.DataType) -> Values:
    """Return the values of columns of one type, one after the other."""
    if has_arrow(type_):
        return ArrowColumn(pa.concat_arrays([column_of(c, type_) for c in columns]), type_)
    return list(chain.from_iterable(columns))


def map_values(function: Callable[[Any], Any], values: Values) -> Values:
    """Return a function of each value that is not null."""
    if values and (one := settle(values)):
        return Same(None if one.value is None else function(one.value), one.length)
    return [None if v is None else function(v) for v in values]


def is_null(values: Values) -> Values:
    """Return true or false for each value."""
    if isinstance(values, Same):
        return Same(values.value is None, values.length)
    if isinstance(values, ArrowColumn):
        return ArrowColumn(values.array.is_null(), T.BooleanType())
    return [v is None for v in values]


def true_mask(values: Values) -> np.ndarray:
    """Return which values are true."""
    if isinstance(values, Same):
        return np.full(len(values), values.value is True)
    if isinstance(values, ArrowColumn):
        return np.asarray(values.array.fill_null(False))
    return np.fromiter((v is True for v in values), bool, len(values))


def null_mask(values: Values) -> np.ndarray:
    """Return which values are null."""
    return true_mask(is_null(values))


def negate(values: Values) -> Values:
    """Return NOT of true, false or null."""
    if isinstance(values, ArrowColumn):
        return ArrowColumn(pc.invert(values.array), values.type)
    return map_values(not_, values)


def column_of(values: Values, type_: T.DataType) -> pa.Array:
    """Return the values in Arrow."""
    if isinstance(values, ArrowColumn) and values.array.type == arrow_type(type_):
        return values.array
    if isinstance(values, Same) and values.length:
        return to_arrow([values.value], type_).take(pa.array(np.zeros(values.length, np.int64)))
    return to_arrow(values, type_)


class ColumnBatch:
    """Columns of equal length, by number; a lambda's variables by their own keys.

    `later`: columns that are computed when first read, because Spark computes no unused ones.
    """

    def __init__(
        self,
        count: int,
        columns: Mapping[Hashable, Values],
        later: Mapping[Hashable, Callable[[], Values]] | None = None,
    ) -> None:
        self.count = count
        self._columns = dict(columns)
        self._later = dict(later or {})
        self._whole: ColumnBatch | None = None
        self._rows: Rows | None = None

    def column(self, key: Hashable) -> Values:
        if key not in self._columns:
            self._columns[key] = self._found(key)
            self._later.pop(key, None)
        return self._columns[key]

    def _found(self, key: Hashable) -> Values:
        if key in self._later:
            return self._later[key]()
        assert self._whole is not None
        values = self._whole.column(key)
        return values if self._rows is None else take_rows(values, self._rows)

    def take(self, rows: Rows, columns: Mapping[Hashable, Values] | None = None) -> "ColumnBatch":
        """Return these rows, in this order, perhaps repeated, with more columns."""
        if isinstance(rows, range) and rows == range(self.count) and not columns:
            return self
        part = ColumnBatch(len(rows), columns or {})
        part._whole, part._rows = self, rows
        return part

    def beside(self, later: Mapping[Hashable, Callable[[], Values]]) -> "ColumnBatch":
        """Return the same rows with more columns."""
        part = ColumnBatch(self.count, {}, later)
        part._whole = self
        return part


Evaluation = Callable[[ColumnBatch], Values]
Kernel = Callable[..., pa.Array | None]  # of Arrow's; None where it is not certain


@dataclass(frozen=True, slots=True)
class Value:
    """An expression with its type, ready to be computed; `literal`: its constant, if it is one."""

    type: T.DataType
    run: Evaluation
    literal: Any = ...

    @property
    def is_literal(self) -> bool:
        return self.literal is not ...


Function = Callable[[list[Value]], Value]


def constant(value: Any, type_: T.DataType) -> Value:
    """Return the same value for every row."""
    return Value(type_, lambda batch: Same(value, batch.count), value)


def column(key: Hashable, type_: T.DataType) -> Value:
    """Return the values of a column or a variable."""
    return Value(type_, lambda batch: batch.column(key))


def each(
    type_: T.DataType, function: Callable[..., Any], *arguments: Value, kernel: Kernel | None = None
) -> Value:
    """Return a function of each row's values; null if one of them is null.

    The kernel is tried first. It takes columns in Arrow, and constants as values.
    """
    runs = [argument.run for argument in arguments]

    def run(batch: ColumnBatch) -> Values:
        columns = [run(batch) for run in runs]
        if one := _only_row(columns):
            return Same(None if None in one else function(*one), batch.count)
        if kernel and batch.count and (found := _try(kernel, columns, arguments)) is not None:
            return ArrowColumn(found, type_)
        if len(columns) == 1:
            return [None if v is None else function(v) for v in columns[0]]
        if len(columns) == 2:
            pairs = zip(*columns, strict=True)
            return [None if v is None or w is None else function(v, w) for v, w in pairs]
        return [None if None in row else function(*row) for row in zip(*columns, strict=True)]

    return Value(type_, run)


def _try(kernel: Kernel, columns: Sequence[Values], arguments: Sequence[Value]) -> pa.Array | None:
    pairs = zip(columns, arguments, strict=True)
    given = [c.value if isinstance(c, Same) else column_of(c, a.type) for c, a in pairs]
    try:
        return kernel(*given)
    except pa.ArrowInvalid:  # the function finds the value, and says what is wrong with it
        return None


def kernel(
    type_: T.DataType,
    compute: Callable[..., pa.Array],
    *arguments: Value,
    convert: Callable[[Sequence[Values]], Sequence[pa.Array]] | None = None,
) -> Value:
    """Return a function of whole columns in Arrow. Raises OutOfRange where Arrow raises.

    `convert`: from the arguments' columns to those in Arrow, other than the same.
    """

    def run(batch: ColumnBatch) -> Values:
        columns = [argument.run(batch) for argument in arguments]
        one = _only_row(columns)
        columns = [Same(value, 1) for value in one] or columns
        pairs = zip(columns, arguments, strict=True)
        given = convert(columns) if convert else [column_of(c, a.type) for c, a in pairs]
        try:
            found = ArrowColumn(compute(*given), type_)
        except pa.ArrowInvalid as fault:
            raise OutOfRange(str(fault)) from None
        return Same(found[0], batch.count) if one else found

    return Value(type_, run)


def whole(type_: T.DataType, function: Callable[..., Any], *arguments: Value) -> Value:
    """Return a function of each row's values, which may be null."""
    runs = [argument.run for argument in arguments]

    def run(batch: ColumnBatch) -> Values:
        columns = [run(batch) for run in runs]
        if one := _only_row(columns):
            return Same(function(*one), batch.count)
        return [function(*row) for row in zip(*columns, strict=True)]

    return Value(type_, run)


def _only_row(columns: Sequence[Values]) -> tuple[Any, ...]:
    """Return the row if all rows are the same; nothing if they may differ, or if there is none."""
    same = [one.value for one in map(settle, columns) if one]
    return tuple(same) if len(same) == len(columns) else ()


def rows_of(type_: T.StructType, values: Sequence[Value]) -> Value:
    """Return structs of each row's values."""
    if not values:
        return constant((), type_)
    if not has_arrow(type_):
        return whole(type_, lambda *row: row, *values)
    fields = list(arrow_type(type_))
    return kernel(type_, lambda *c: pa.StructArray.from_arrays(c, fields=fields), *values)


def element_type(value: Value) -> T.DataType:
    """Return the type of an array's elements. Raises UnsupportedLocally unless it is an array."""
    if not isinstance(value.type, T.ArrayType):
        raise UnsupportedLocally(
            f"an array function of a value of type {value.type.simpleString()}"
        )
    return value.type.elementType
