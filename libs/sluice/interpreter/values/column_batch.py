"""Rows for an expression, as columns, from which parts can be selected."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import types as T

from sluice.interpreter.refusals import NotHere
from sluice.interpreter.values.arrow_columns import Same, mapped, settled, taken
from sluice.interpreter.values.arrow_conversion import Values


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
        self._rows: Sequence[int] | None = None

    def column(self, key: Hashable) -> Values:
        """Return a column's values."""
        if key not in self._columns:
            self._columns[key] = self._found(key)
            self._later.pop(key, None)
        return self._columns[key]

    def _found(self, key: Hashable) -> Values:
        if key in self._later:
            return self._later[key]()
        assert self._whole is not None
        values = self._whole.column(key)
        return values if self._rows is None else taken(values, self._rows)

    def take(
        self, rows: Sequence[int], columns: Mapping[Hashable, Values] | None = None
    ) -> "ColumnBatch":
        """Return these rows, in this order, perhaps repeated, with more columns."""
        if rows == range(self.count) and not columns:
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


def each(type_: T.DataType, function: Callable[..., Any], *arguments: Value) -> Value:
    """Return a function of each row's values; null if one of them is null."""
    runs = [argument.run for argument in arguments]

    def run(batch: ColumnBatch) -> Values:
        columns = [run(batch) for run in runs]
        if len(columns) == 1:
            return mapped(function, columns[0])
        if one := _only_row(columns):
            return Same(None if None in one else function(*one), batch.count)
        if len(columns) == 2:
            pairs = zip(*columns, strict=True)
            return [None if v is None or w is None else function(v, w) for v, w in pairs]
        return [None if None in row else function(*row) for row in zip(*columns, strict=True)]

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
    same = [one.value for one in map(settled, columns) if one]
    return tuple(same) if len(same) == len(columns) else ()


def rows_of(type_: T.StructType, values: Sequence[Value]) -> Value:
    """Return structs of each row's values."""
    runs = [value.run for value in values]
    if not runs:
        return constant((), type_)

    def run(batch: ColumnBatch) -> Values:
        columns = [run(batch) for run in runs]
        one = _only_row(columns)
        return Same(one, batch.count) if one else list(zip(*columns, strict=True))

    return Value(type_, run)


def element_type(value: Value) -> T.DataType:
    """Return the type of an array's elements. Raises NotHere unless it is an array."""
    if not isinstance(value.type, T.ArrayType):
        raise NotHere(f"an array function of a value of type {value.type.simpleString()}")
    return value.type.elementType
