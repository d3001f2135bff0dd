"""Functions over arrays that take a lambda.

A lambda is computed once over the elements of all rows together, with each element's row.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cmp_to_key, partial
from typing import Any

from pyspark.sql import types as T

from sluice.interpreter.functions.arrays import natural_sort
from sluice.interpreter.refusals import UnsupportedLocally
from sluice.interpreter.values.column_batch import ColumnBatch, Value, column, element_type
from sluice.interpreter.values.value_types import BOOLEAN, INT


@dataclass(frozen=True)
class Deferred:
    """An argument that is compiled once its parameters' types are known.

    `count`: the number of a lambda's parameters; 0 for a plain expression.
    """

    count: int
    compiled: Callable[..., Value]


CollectionFunction = Callable[[Value, list[Deferred]], Value]


def variable(type_: T.DataType) -> tuple[object, Value]:
    """Return a new variable's key in a batch, and its value."""
    key = object()
    return key, column(key, type_)


def _over_elements(items: Value, body: Deferred) -> tuple[T.DataType, Callable[[ColumnBatch], Any]]:
    """Return the lambda's type, and a function to each row's elements and their results."""
    key, element = variable(element_type(items))
    place, index = variable(INT)
    of = body.compiled(*(element, index)[: body.count])

    def run(batch: ColumnBatch) -> list[tuple[Any, list[Any]]]:
        arrays = items.run(batch)
        rows = [row for row, v in enumerate(arrays) if v is not None for _ in v]
        elements = [x for v in arrays if v is not None for x in v]
        numbers = [i for v in arrays if v is not None for i in range(len(v))]
        results = iter(of.run(batch.take(rows, {key: elements, place: numbers})))
        return [(v, [next(results) for _ in v] if v is not None else []) for v in arrays]

    return of.type, run


def _make_test(items: Value, body: Deferred) -> Callable[[ColumnBatch], Any]:
    """Return the function to each row's elements, and whether they meet a condition."""
    type_, run = _over_elements(items, body)
    if type_ != BOOLEAN:
        raise UnsupportedLocally(f"a lambda that returns {type_.simpleString()}, as a condition")
    return run


def _transform(items: Value, others: list[Deferred]) -> Value:
    type_, run = _over_elements(items, others[0])

    def transformed(batch: ColumnBatch) -> list[Any]:
        return [None if v is None else tuple(found) for v, found in run(batch)]

    return Value(T.ArrayType(type_), transformed)


def _filter(items: Value, others: list[Deferred]) -> Value:
    run = _make_test(items, others[0])

    def kept(batch: ColumnBatch) -> list[Any]:
        return [
            None if v is None else tuple(x for x, is_in in zip(v, found, strict=True) if is_in)
            for v, found in run(batch)
        ]

    return Value(items.type, kept)


def _decide(items: Value, others: list[Deferred], *, by: bool) -> Value:
    """Return exists (by=True) or forall (by=False), in three-valued logic."""
    if others[0].count > 1:
        raise UnsupportedLocally("exists or forall with the positions of elements")
    run = _make_test(items, others[0])

    def decided(found: list[Any]) -> bool | None:
        if by in found:
            return by
        return None if None in found else not by

    return Value(BOOLEAN, lambda b: [None if v is None else decided(found) for v, found in run(b)])


def _aggregate(items: Value, others: list[Deferred]) -> Value:
    """Fold each array, all rows step by step together."""
    start = others[0].compiled()
    key, total = variable(start.type)
    place, element = variable(element_type(items))
    merged = others[1].compiled(total, element)
    if merged.type.simpleString() != start.type.simpleString():
        raise UnsupportedLocally("aggregate with a start whose type differs from its steps")
    finished = others[2].compiled(total) if len(others) > 2 else total

    def run(batch: ColumnBatch) -> list[Any]:
        arrays, totals = items.run(batch), list(start.run(batch))
        rows = [i for i, v in enumerate(arrays) if v]
        for step in range(max((len(arrays[i]) for i in rows), default=0)):
            rows = [i for i in rows if len(arrays[i]) > step]
            given = {key: [totals[i] for i in rows], place: [arrays[i][step] for i in rows]}
            for i, found in zip(rows, merged.run(batch.take(rows, given)), strict=True):
                totals[i] = found
        done = finished.run(batch.take(range(batch.count), {key: totals}))
        return [None if v is None else d for v, d in zip(arrays, done, strict=True)]

    return Value(finished.type, run)


def _array_sort(items: Value, others: list[Deferred]) -> Value:
    if not others:
        return natural_sort(items)
    inner = element_type(items)
    (left, a), (right, b) = variable(inner), variable(inner)
    compared = others[0].compiled(a, b)
    if compared.type != INT:
        raise UnsupportedLocally("array_sort with a comparison that is not an INT")

    def run(batch: ColumnBatch) -> list[Any]:
        return [
            None if v is None else _sorted(v, batch, row) for row, v in enumerate(items.run(batch))
        ]

    def _sorted(v: tuple[Any, ...], batch: ColumnBatch, row: int) -> tuple[Any, ...]:
        if len(v) < 2:
            return v
        pairs = [(i, j) for i in range(len(v)) for j in range(len(v)) if i != j]
        if len(pairs) > 40_000:
            raise UnsupportedLocally("array_sort with a comparison of more than 200 elements")
        given = {left: [v[i] for i, _ in pairs], right: [v[j] for _, j in pairs]}
        order = dict(zip(pairs, compared.run(batch.take([row] * len(pairs), given)), strict=True))
        if None in order.values():
            raise UnsupportedLocally("array_sort with a comparison that returns NULL")
        by = cmp_to_key(lambda i, j: order[i, j])  # type: ignore[index]
        return tuple(v[i] for i in sorted(range(len(v)), key=by))

    return Value(items.type, run)


HIGHER_ORDER: Mapping[str, CollectionFunction] = {
    "transform": _transform,
    "filter": _filter,
    "exists": partial(_decide, by=True),
    "forall": partial(_decide, by=False),
    "aggregate": _aggregate,
    "reduce": _aggregate,
    "array_sort": _array_sort,
}
# Number of arguments after the array; Spark refuses other numbers.
OTHERS = {"aggregate": (2, 3), "reduce": (2, 3), "array_sort": (0, 1)}
