"""Functions over arrays, except those that take a lambda."""

import operator
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import types as T

from sluice.interpreter.functions.comparing import alike, equality
from sluice.interpreter.functions.maps import MAPS, SETS, comparable, of_map
from sluice.interpreter.refusals import UnsupportedLocally
from sluice.interpreter.values.casts import cast, length
from sluice.interpreter.values.casts import whole as whole_number
from sluice.interpreter.values.column_batch import (
    Function,
    Value,
    constant,
    each,
    element_type,
    kernel,
    whole,
)
from sluice.interpreter.values.value_order import has_floats, nulls_first, order_of
from sluice.interpreter.values.value_types import (
    BINARY,
    BOOLEAN,
    INT,
    LONG,
    STRING,
    common,
    is_integer,
)


def element(child: Value, key: Value) -> Value:
    """Return `child[key]`: an array's element from 0, or a map's value; else an error."""
    if isinstance(child.type, T.MapType):
        return of_map(child, key)
    inner = element_type(child)

    def at(items: tuple[Any, ...], index: int) -> Any:
        if not 0 <= index < len(items):
            raise UnsupportedLocally("an array index out of bounds")
        return items[index]

    return each(inner, at, child, whole_number(key))


def _get(arguments: list[Value]) -> Value:
    items, index = arguments
    inner = element_type(items)
    return each(inner, lambda v, i: v[i] if 0 <= i < len(v) else None, items, whole_number(index))


def _element_at(arguments: list[Value], *, is_try: bool) -> Value:
    items, index = arguments
    if isinstance(items.type, T.MapType):
        return of_map(items, index)
    inner = element_type(items)

    def at(v: tuple[Any, ...], i: int) -> Any:
        if i in (0, -(2**31)) or (
            not is_try and abs(i) > len(v)
        ):  # Spark crashes at the smallest INT
            raise UnsupportedLocally("an array index out of bounds")
        if abs(i) > len(v):
            return None
        return v[i - 1] if i > 0 else v[i]

    return each(inner, at, items, whole_number(index))


def _array(arguments: list[Value]) -> Value:
    type_ = common(a.type for a in arguments)
    values = [cast(a, type_) for a in arguments]
    if not values:
        return constant((), T.ArrayType(type_))
    return whole(T.ArrayType(type_), lambda *row: row, *values)


def _size(arguments: list[Value]) -> Value:
    (items,) = arguments
    if not isinstance(items.type, T.ArrayType | T.MapType):
        raise UnsupportedLocally("the size of a value that is not an array or a map")
    return each(INT, len, items)


def _size_of_array(arguments: list[Value]) -> Value:
    element_type(arguments[0])
    return _size(arguments)


def _slice(arguments: list[Value]) -> Value:
    items, start, length = arguments
    element_type(items)

    def part(v: tuple[Any, ...], at: int, count: int) -> tuple[Any, ...]:
        if at == 0 or count < 0:
            raise UnsupportedLocally("slice from position 0, or with a negative length")
        first = at - 1 if at > 0 else len(v) + at
        if first + count >= 2**31:  # where Java's sum turns negative
            return ()
        return v[first : first + count] if 0 <= first < len(v) else ()

    return each(items.type, part, items, whole_number(start), whole_number(length))


def _flatten(arguments: list[Value]) -> Value:
    (items,) = arguments
    inner = element_type(items)
    if not isinstance(inner, T.ArrayType):
        raise UnsupportedLocally("flatten of an array that has no arrays")
    return each(inner, lambda v: None if None in v else tuple(x for part in v for x in part), items)


def _compact(arguments: list[Value]) -> Value:
    (items,) = arguments
    element_type(items)
    return each(items.type, lambda v: tuple(x for x in v if x is not None), items)


def _sort_array(arguments: list[Value]) -> Value:
    items, *more = arguments
    ascending = more[0].literal if more else True
    if not isinstance(ascending, bool):
        raise UnsupportedLocally("sort_array with an order that is not a constant")
    order = nulls_first(order_of(element_type(items)))
    return each(items.type, lambda v: tuple(sorted(v, key=order, reverse=not ascending)), items)


def natural_sort(items: Value) -> Value:
    """Return the array in ascending order, nulls last."""
    inner = element_type(items)
    order, is_plain = order_of(inner), not has_floats(inner)

    def key(x: Any) -> Any:
        return (1,) if x is None else (0, order(x))

    def in_order(v: tuple[Any, ...]) -> tuple[Any, ...]:
        if is_plain:
            with suppress(TypeError):  # Python compares no null with a value
                return tuple(sorted(v))
        return tuple(sorted(v, key=key))

    return each(items.type, in_order, items)


def _extreme(choose: Callable[..., Any], arguments: list[Value]) -> Value:
    (items,) = arguments
    inner = element_type(items)
    order = order_of(inner)

    def chosen(v: tuple[Any, ...]) -> Any:
        given = [x for x in v if x is not None]
        return choose(given, key=order) if given else None

    return each(inner, chosen, items)


def _contains(arguments: list[Value]) -> Value:
    items, value = arguments
    inner = comparable(element_type(items), value.type)
    same = equality(inner)

    def among(v: tuple[Any, ...], x: Any) -> bool | None:
        if x in v if same is operator.eq else any(y is not None and same(x, y) for y in v):
            return True
        return None if None in v else False

    return each(BOOLEAN, among, cast(items, T.ArrayType(inner)), cast(value, inner))


def _repeat(arguments: list[Value]) -> Value:
    value, count = arguments
    if not isinstance(count.type, T.IntegerType):
        raise UnsupportedLocally("array_repeat with a count that is not an INT")
    if isinstance(value.type, T.NullType):
        raise UnsupportedLocally("an array of untyped NULLs")
    type_ = T.ArrayType(value.type)
    return whole(type_, lambda v, n: None if n is None else (v,) * n, value, length(count))


def _sequence(arguments: list[Value]) -> Value:
    first, last, *step = arguments
    a, b = alike(first, last)
    if any(s.type != a.type for s in step):
        raise UnsupportedLocally("a sequence with a step of a different type")
    if not is_integer(a.type):
        raise UnsupportedLocally(f"a sequence of values of type {a.type.simpleString()}")

    def values(x: int, y: int, by: int | None = None) -> tuple[int, ...]:
        by = by if by is not None else (1 if y >= x else -1)
        if by == 0 or ((by > 0) != (y >= x) and x != y):
            raise UnsupportedLocally("a sequence whose step is 0 or leads away from its end")
        if abs(y - x) // abs(by) > 1_000_000:
            raise UnsupportedLocally("a sequence of more than a million steps")
        return tuple(range(x, y + (1 if by > 0 else -1), by))

    return each(T.ArrayType(a.type), values, a, b, *(cast(s, a.type) for s in step))


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
    if not all(isinstance(t, T.StringType) for t in (element_type(items), *map(_type, others))):
        raise UnsupportedLocally("array_join of values that are not strings")
    if len(others) == 1:
        return each(STRING, lambda v, s: s.join(x for x in v if x is not None), items, *others)
    return each(STRING, lambda v, s, i: s.join(i if x is None else x for x in v), items, *others)


def _type(value: Value) -> T.DataType:
    return value.type


def _position(arguments: list[Value]) -> Value:
    items, value = arguments
    inner = comparable(element_type(items), value.type)
    same = equality(inner)

    def place(v: tuple[Any, ...], x: Any) -> int:
        return next((i for i, y in enumerate(v, 1) if y is not None and same(x, y)), 0)

    return each(LONG, place, cast(items, T.ArrayType(inner)), cast(value, inner))


def _append_or_prepend(arguments: list[Value], *, is_first: bool) -> Value:
    items, value = arguments
    inner = element_type(items)
    if value.type != inner:
        raise UnsupportedLocally("a value whose type differs from the array's elements")

    def grown(v: tuple[Any, ...] | None, x: Any) -> tuple[Any, ...] | None:
        if v is None:
            return None
        return (x, *v) if is_first else (*v, x)

    return whole(items.type, grown, items, value)


def _reverse(arguments: list[Value]) -> Value:
    (value,) = arguments
    if not isinstance(value.type, T.ArrayType | T.StringType):
        raise UnsupportedLocally("reverse of a value that is not a string or an array")
    return each(value.type, lambda v: v[::-1], value)


ARRAYS: Mapping[str, Function] = {
    **MAPS,
    **SETS,
    "get": _get,
    "element_at": partial(_element_at, is_try=False),
    "try_element_at": partial(_element_at, is_try=True),
    "array": _array,
    "size": _size,
    "cardinality": _size,
    "array_size": _size_of_array,
    "slice": _slice,
    "flatten": _flatten,
    "array_compact": _compact,
    "sort_array": _sort_array,
    "array_max": partial(_extreme, max),
    "array_min": partial(_extreme, min),
    "array_contains": _contains,
    "array_repeat": _repeat,
    "sequence": _sequence,
    "concat": _concat,
    "array_join": _join,
    "reverse": _reverse,
    "array_append": partial(_append_or_prepend, is_first=False),
    "array_prepend": partial(_append_or_prepend, is_first=True),
    "array_position": _position,
}
