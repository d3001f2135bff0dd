"""Arrays as sets: distinct elements, unions, intersections and differences."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pyspark.sql import types as T

from sluice.interpreter.functions.comparing import equality
from sluice.interpreter.refusals import NotHere
from sluice.interpreter.values.casts import cast
from sluice.interpreter.values.column_batch import Function, Value, each, element_type
from sluice.interpreter.values.value_order import keyed, normal
from sluice.interpreter.values.value_types import BOOLEAN, is_integer, wider

Elements = tuple[Any, ...]


def comparable(a: T.DataType, b: T.DataType) -> T.DataType:
    """Return the type in which an element is compared with a value."""
    if isinstance(a, T.NullType) or (a != b and not (is_integer(a) and is_integer(b))):
        raise NotHere("an array's element compared with a value of a different type")
    return wider(a, b)


def _shared(items: Value, others: Value) -> T.DataType:
    """Return the type of two combined arrays."""
    return T.ArrayType(comparable(element_type(items), element_type(others)))


def _firsts(key: Callable[[Any], Any], items: Elements) -> dict[Any, Any]:
    """Return the first one of equal elements, by what makes them equal."""
    found: dict[Any, Any] = {}
    for x in items:
        found.setdefault(None if x is None else key(x), x)
    return found


def _distinct(arguments: list[Value]) -> Value:
    (items,) = arguments
    key, shown = keyed(element_type(items)), normal(element_type(items))
    return each(items.type, lambda v: tuple(map(shown, _firsts(key, v).values())), items)


def _together(choose: Callable[[dict[Any, Any], dict[Any, Any]], Any], pair: list[Value]) -> Value:
    """Return the elements that are chosen of two arrays, each once."""
    items, others = pair
    type_ = _shared(items, others)
    inner = element_type(Value(type_, items.run))
    key, shown = keyed(inner), normal(inner)

    def chosen(v: Elements, w: Elements) -> Elements:
        return tuple(map(shown, choose(_firsts(key, v), _firsts(key, w))))

    return each(type_, chosen, cast(items, type_), cast(others, type_))


def _except(a: dict[Any, Any], b: dict[Any, Any]) -> list[Any]:
    return [x for key, x in a.items() if key not in b]


def _intersect(a: dict[Any, Any], b: dict[Any, Any]) -> list[Any]:
    return [x for key, x in a.items() if key in b]


def _union(a: dict[Any, Any], b: dict[Any, Any]) -> list[Any]:
    return list({**a, **{key: x for key, x in b.items() if key not in a}}.values())


def _overlap(arguments: list[Value]) -> Value:
    items, others = arguments
    type_ = _shared(items, others)
    key = keyed(element_type(Value(type_, items.run)))

    def meet(v: Elements, w: Elements) -> bool | None:
        a, b = _firsts(key, v).keys(), _firsts(key, w).keys()
        if (a & b) - {None}:
            return True
        return None if v and w and None in a | b else False

    return each(BOOLEAN, meet, cast(items, type_), cast(others, type_))


def _remove(arguments: list[Value]) -> Value:
    items, value = arguments
    inner = comparable(element_type(items), value.type)
    same, type_ = equality(inner), T.ArrayType(inner)

    def without(v: Elements, x: Any) -> Elements:
        return tuple(y for y in v if y is None or not same(y, x))

    return each(type_, without, cast(items, type_), cast(value, inner))


SETS: Mapping[str, Function] = {
    "array_distinct": _distinct,
    "array_except": partial(_together, _except),
    "array_intersect": partial(_together, _intersect),
    "array_union": partial(_together, _union),
    "arrays_overlap": _overlap,
    "array_remove": _remove,
}
