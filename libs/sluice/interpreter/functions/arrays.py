"""Functions over arrays and maps, also those that take a lambda.

A lambda is computed once over the elements of all rows together, with each element's row.
"""

import operator
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cmp_to_key, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.functions import Signature, inner, name_each, same
from sluice.interpreter.functions.comparing import alike, equality
from sluice.interpreter.values import BINARY, BOOLEAN, INT, LONG, STRING, common, is_integer, wider
from sluice.interpreter.values.casts import cast, length
from sluice.interpreter.values.column_batch import (
    ColumnBatch,
    Function,
    Value,
    column,
    constant,
    each,
    element_type,
    kernel,
    whole,
)
from sluice.interpreter.values.numbering import (
    check_distinct,
    has_floats,
    key_function,
    key_of,
    normal,
    nulls_first,
    order_of,
)

Elements = tuple[Any, ...]
SMALLEST = -(2**31)


def element(child: Value, key: Value) -> Value:
    """Return `child[key]`: an array's element from 0, or a map's value; else an error."""
    if isinstance(child.type, T.MapType):
        return _of_map(child, key)

    def at(items: Elements, index: int) -> Any:
        if not 0 <= index < len(items):
            raise UnsupportedLocally("an array index out of bounds")
        return items[index]

    return Signature("array int", inner, at)([child, key])


def _element_at(arguments: list[Value], *, is_try: bool) -> Value:
    if isinstance(arguments[0].type, T.MapType):
        return _of_map(*arguments)

    def at(v: Elements, i: int) -> Any:
        if i in (0, SMALLEST) or (not is_try and abs(i) > len(v)):  # Spark crashes at the smallest
            raise UnsupportedLocally("an array index out of bounds")
        if abs(i) > len(v):
            return None
        return v[i - 1] if i > 0 else v[i]

    return Signature("array int", inner, at)(arguments)


def _of_map(child: Value, key: Value) -> Value:
    """Return the map's value of that key, or null."""
    assert isinstance(child.type, T.MapType)
    wanted = _comparable(child.type.keyType, key.type)
    if wanted != child.type.keyType:
        raise UnsupportedLocally("a key whose type differs from the map's")
    equal = equality(wanted)

    def find(items: Elements, name: Any) -> Any:
        return next((value for k, value in items if equal(k, name)), None)

    return each(child.type.valueType, find, child, cast(key, wanted))


def _array(arguments: list[Value]) -> Value:
    type_ = common(a.type for a in arguments)
    if not arguments:
        return constant((), T.ArrayType(type_))
    return whole(T.ArrayType(type_), lambda *row: row, *(cast(a, type_) for a in arguments))


def _slice(v: Elements, at: int, count: int) -> Elements:
    if at == 0 or count < 0:
        raise UnsupportedLocally("slice from position 0, or with a negative length")
    first = at - 1 if at > 0 else len(v) + at
    if first + count >= 2**31:  # where Java's sum turns negative
        return ()
    return v[first : first + count] if 0 <= first < len(v) else ()


def _flatten(arguments: list[Value]) -> Value:
    element_type(Value(element_type(arguments[0]), arguments[0].run))
    return Signature(
        "array", inner, lambda v: None if None in v else tuple(x for part in v for x in part)
    )(arguments)


def _sort_array(arguments: list[Value]) -> Value:
    items, *more = arguments
    ascending = more[0].literal if more else True
    if not isinstance(ascending, bool):
        raise UnsupportedLocally("sort_array with an order that is not a constant")
    order = nulls_first(order_of(element_type(items)))
    return each(items.type, lambda v: tuple(sorted(v, key=order, reverse=not ascending)), items)


def natural_sort(items: Value) -> Value:
    """Return the array in ascending order, nulls last."""
    of = element_type(items)
    order, is_plain = order_of(of), not has_floats(of)

    def in_order(v: Elements) -> Elements:
        if is_plain:
            with suppress(TypeError):  # Python compares no null with a value
                return tuple(sorted(v))
        return tuple(sorted(v, key=lambda x: (1,) if x is None else (0, order(x))))

    return each(items.type, in_order, items)


def _extreme(choose: Callable[..., Any], arguments: list[Value]) -> Value:
    order = order_of(element_type(arguments[0]))

    def find(v: Elements) -> Any:
        return choose((x for x in v if x is not None), key=order, default=None)

    return Signature("array", inner, find)(arguments)


def _repeat(arguments: list[Value]) -> Value:
    value, count = arguments
    if not isinstance(count.type, T.IntegerType) or isinstance(value.type, T.NullType):
        raise UnsupportedLocally("array_repeat of an untyped NULL, or with a count that is no INT")
    type_ = T.ArrayType(value.type)
    return whole(type_, lambda v, n: None if n is None else (v,) * n, value, length(count))


def _sequence(arguments: list[Value]) -> Value:
    first, last, *step = arguments
    a, b = alike(first, last)
    if not is_integer(a.type) or any(s.type != a.type for s in step):
        raise UnsupportedLocally("a sequence of values or steps that are not integers of one type")

    def values(x: int, y: int, by: int | None = None) -> tuple[int, ...]:
        by = by if by is not None else (1 if y >= x else -1)
        if by == 0 or ((by > 0) != (y >= x) and x != y):
            raise UnsupportedLocally("a sequence whose step is 0 or leads away from its end")
        if abs(y - x) // abs(by) > 1_000_000:
            raise UnsupportedLocally("a sequence of more than a million steps")
        return tuple(range(x, y + (1 if by > 0 else -1), by))

    return each(T.ArrayType(a.type), values, a, b, *step)


def _concat(arguments: list[Value]) -> Value:
    if arguments and all(isinstance(a.type, T.ArrayType) for a in arguments):
        type_ = common(a.type for a in arguments)
        return each(type_, lambda *v: sum(v, ()), *(cast(a, type_) for a in arguments))
    types = [a.type for a in arguments]
    if not types or not all(
        isinstance(t, T.AtomicType | T.NullType) and t != BINARY for t in types
    ):
        raise UnsupportedLocally("concat of values that are not strings or arrays")
    parts = [cast(a, STRING) for a in arguments]
    return kernel(STRING, lambda *c: pc.binary_join_element_wise(*c, ""), *parts)


def _join(arguments: list[Value]) -> Value:
    items, *others = arguments
    if any(
        not isinstance(t, T.StringType) for t in (element_type(items), *(o.type for o in others))
    ):
        raise UnsupportedLocally("array_join of values that are not strings")

    def join(v: Elements, by: str, instead: str | None = None) -> str:
        parts = [instead if x is None else x for x in v]
        return by.join(x for x in parts if x is not None)

    return each(STRING, join, items, *others)


def _append_or_prepend(arguments: list[Value], *, is_first: bool) -> Value:
    items, value = arguments
    if value.type != element_type(items):
        raise UnsupportedLocally("a value whose type differs from the array's elements")

    def grow(v: Elements | None, x: Any) -> Elements | None:
        if v is None:
            return None
        return (x, *v) if is_first else (*v, x)

    return whole(items.type, grow, items, value)


def _comparable(a: T.DataType, b: T.DataType) -> T.DataType:
    """Return the type in which an element is compared with a value."""
    if isinstance(a, T.NullType) or (a != b and not (is_integer(a) and is_integer(b))):
        raise UnsupportedLocally("an array's element compared with a value of a different type")
    return wider(a, b)


def _with_value(
    type_: T.DataType | None, function: Callable[..., Any], arguments: list[Value]
) -> Value:
    """Return a function of an equality, an array and a value in one type; by default, an array."""
    items, value = arguments
    of = _comparable(element_type(items), value.type)
    array = T.ArrayType(of)
    call = partial(function, equality(of))
    return each(type_ or array, call, cast(items, array), cast(value, of))


def _contains(equal: Callable[[Any, Any], bool], v: Elements, x: Any) -> bool | None:
    if x in v if equal is operator.eq else any(y is not None and equal(x, y) for y in v):
        return True
    return None if None in v else False


Firsts = dict[Any, Any]  # the first one of equal elements, by what makes them equal


def _as_sets(type_: T.DataType | None, choose: Callable[..., Any], arguments: list[Value]) -> Value:
    """Return a function of the distinct elements of arrays; by default, an array of some."""
    of = element_type(arguments[0])
    for other in arguments[1:]:
        of = _comparable(of, element_type(other))
    check_distinct(of)
    key, show, array = key_function(of), normal(of), T.ArrayType(of)

    def firsts(items: Elements) -> Firsts:
        found: Firsts = {}
        for x in items:
            found.setdefault(None if x is None else key(x), x)
        return found

    def run(*arrays: Elements) -> Any:
        found = choose(*map(firsts, arrays))
        return found if type_ else tuple(map(show, found))

    return each(type_ or array, run, *(cast(a, array) for a in arguments))


def _overlap(a: Firsts, b: Firsts) -> bool | None:
    if (a.keys() & b.keys()) - {None}:
        return True
    return None if a and b and None in a.keys() | b.keys() else False


def _is_of_keys(keys: list[Any]) -> bool:
    return None not in keys and len(set(keys)) == len(keys)


def _from_entries(arguments: list[Value]) -> Value:
    (items,) = arguments
    of = element_type(items)
    if not isinstance(of, T.StructType) or len(of) != 2:
        raise UnsupportedLocally("map_from_entries of an array that has no entries")
    of_keys, of_values = (f.dataType for f in of.fields)
    key, show = key_function(of_keys), normal(of_keys)

    def make(v: Elements) -> Elements | None:
        if None in v:
            return None
        if not _is_of_keys([key(k) for k, _ in v]):
            raise UnsupportedLocally("a map with a duplicate or null key")
        return tuple((show(k), x) for k, x in v)

    return each(T.MapType(of_keys, of_values), make, items)


def _map(arguments: list[Value]) -> Value:
    of_keys, of_values = (common(a.type for a in arguments[nth::2]) for nth in (0, 1))
    if len(arguments) % 2 or not arguments or key_of(of_keys):
        raise UnsupportedLocally("a map with keys of this type, or without a value for each key")
    parts = [cast(a, of_values if nth % 2 else of_keys) for nth, a in enumerate(arguments)]

    def make(*row: Any) -> Elements:
        if not _is_of_keys([*row[::2]]):
            raise UnsupportedLocally("a map with a duplicate or null key")
        return tuple(zip(row[::2], row[1::2], strict=True))

    type_ = T.MapType(of_keys, of_values)
    if all(a.is_literal for a in parts):
        return constant(make(*(a.literal for a in parts)), type_)
    return whole(type_, make, *parts)


def _from_arrays(arguments: list[Value]) -> Value:
    keys, values = arguments
    type_ = T.MapType(element_type(keys), element_type(values))
    key = key_function(type_.keyType)

    def make(k: Elements, v: Elements) -> Elements:
        if len(k) != len(v) or not _is_of_keys([*map(key, k)]):
            raise UnsupportedLocally(
                "a map with a duplicate or null key, or without a value for each key"
            )
        return tuple(zip(k, v, strict=True))

    return each(type_, make, keys, values)


def _contains_key(arguments: list[Value]) -> Value:
    items, key = arguments
    if not isinstance(items.type, T.MapType) or items.type.keyType != key.type:
        raise UnsupportedLocally("a key whose type differs from the map's")
    equal = equality(key.type)
    return each(BOOLEAN, lambda v, x: any(equal(k, x) for k, _ in v), items, key)


def _length(column: pa.Array) -> pa.Array | None:
    return None if pa.types.is_map(column.type) else pc.list_value_length(column)


ARRAYS: Mapping[str, Function] = name_each(
    {
        "array": _array,
        "get": ("array int", inner, lambda v, i: v[i] if 0 <= i < len(v) else None),
        "element_at": partial(_element_at, is_try=False),
        "try_element_at": partial(_element_at, is_try=True),
        "size cardinality": ("array_or_map", INT, len, _length),
        "array_size": ("array", INT, len, _length),
        "slice": ("array int int", same, _slice),
        "flatten": _flatten,
        "reverse": ("array_or_text", same, lambda v: v[::-1]),
        "sequence": _sequence,
        "concat": _concat,
        "sort_array": _sort_array,
        "array_compact": ("array", same, lambda v: tuple(x for x in v if x is not None)),
        "array_max": partial(_extreme, max),
        "array_min": partial(_extreme, min),
        "array_repeat": _repeat,
        "array_join": _join,
        "array_append": partial(_append_or_prepend, is_first=False),
        "array_prepend": partial(_append_or_prepend, is_first=True),
        "array_contains": partial(_with_value, BOOLEAN, _contains),
        "array_position": partial(
            _with_value,
            LONG,
            lambda equal, v, x: next(
                (i for i, y in enumerate(v, 1) if y is not None and equal(x, y)), 0
            ),
        ),
        "array_remove": partial(
            _with_value,
            None,
            lambda equal, v, x: tuple(y for y in v if y is None or not equal(y, x)),
        ),
        "array_distinct": partial(_as_sets, None, dict.values),
        "array_except": partial(
            _as_sets, None, lambda a, b: [x for key, x in a.items() if key not in b]
        ),
        "array_intersect": partial(
            _as_sets, None, lambda a, b: [x for key, x in a.items() if key in b]
        ),
        "array_union": partial(
            _as_sets,
            None,
            lambda a, b: ({**a, **{k: x for k, x in b.items() if k not in a}}).values(),
        ),
        "arrays_overlap": partial(_as_sets, BOOLEAN, _overlap),
        "map": _map,
        "map_contains_key": _contains_key,
        "map_entries": (
            "map",
            lambda m: T.ArrayType(T.StructType().add("key", m.keyType).add("value", m.valueType)),
            lambda v: v,
        ),
        "map_from_arrays": _from_arrays,
        "map_from_entries": _from_entries,
        "map_keys": ("map", lambda m: T.ArrayType(m.keyType), lambda v: tuple(k for k, _ in v)),
        "map_values": ("map", lambda m: T.ArrayType(m.valueType), lambda v: tuple(x for _, x in v)),
    }
)


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
