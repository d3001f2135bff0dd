"""Sorting and grouping of a batch's rows."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import types as T

from sluice.interpreter.expressions.compiling import Bindings, compile_node
from sluice.interpreter.expressions.expression_tree import SortItem
from sluice.interpreter.refusals import NotHere
from sluice.interpreter.values.arrow_conversion import Values
from sluice.interpreter.values.column_batch import ColumnBatch, Value
from sluice.interpreter.values.value_order import key_of, order_of, same_value

RowsByKey = dict[tuple[Any, ...], Sequence[int]]
KeyOf = Callable[[T.DataType], Callable[[Any], Any] | None]  # of a type's values


@dataclass(frozen=True)
class CompiledSortItem:
    """One item of an order, compiled."""

    value: Value
    descending: bool
    nulls_first: bool

    @classmethod
    def of(cls, order: SortItem, bindings: Bindings) -> "CompiledSortItem":
        return cls(compile_node(order.child, bindings), order.descending, order.nulls_first)

    def places(self, batch: ColumnBatch) -> list[Any]:
        """Return the sort key for Python, reversed if descending."""
        order = order_of(self.value.type)
        null = (2,) if self.nulls_first == self.descending else (0,)
        values = self.value.run(batch)
        if order is same_value:
            return [null if v is None else (1, v) for v in values]
        return [null if v is None else (1, order(v)) for v in values]


def unplaced(values: Sequence[Value]) -> None:
    """Raise NotHere for an integer constant, which Spark reads as the number of a column."""
    if any(v.is_literal and isinstance(v.type, T.IntegerType) for v in values):
        raise NotHere("GROUP BY or ORDER BY with the number of a column")


def in_order(
    rows: Iterable[int], places: Sequence[list[Any]], keys: Sequence[CompiledSortItem]
) -> list[int]:
    """Return the rows, sorted; those that tie keep their order."""
    found = list(rows)
    for place, key in reversed(list(zip(places, keys, strict=True))):
        found.sort(key=place.__getitem__, reverse=key.descending)
    return found


def grouped(batch: ColumnBatch, values: Sequence[Value], how: KeyOf = key_of) -> RowsByKey:
    """Return the rows of each group, in the order of its first."""
    if not values:
        return {(): range(batch.count)} if batch.count else {}
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row, key in enumerate(keys_of(batch, values, how)):
        groups.setdefault(key, []).append(row)
    return dict(groups)


def keys_of(
    batch: ColumnBatch, values: Sequence[Value], how: KeyOf = key_of
) -> list[tuple[Any, ...]]:
    """Return each row's key; null is a key like any other."""
    columns = [_normal(v.run(batch), how(v.type)) for v in values]
    return list(zip(*columns, strict=True)) if columns else [()] * batch.count


def _normal(values: Values, key: Callable[[Any], Any] | None) -> Values:
    if key is None:
        return values
    return [None if v is None else key(v) for v in values]
