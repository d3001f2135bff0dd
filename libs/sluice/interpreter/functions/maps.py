"""Functions over maps, except those that take a lambda."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pyspark.sql import types as T

from sluice.interpreter.functions.comparing import equality
from sluice.interpreter.refusals import UnsupportedLocally
from sluice.interpreter.values.casts import cast
from sluice.interpreter.values.column_batch import (
    Function,
    Value,
    constant,
    each,
    element_type,
    whole,
)
from sluice.interpreter.values.value_order import key_function, key_of, normal
from sluice.interpreter.values.value_types import BOOLEAN, common, is_integer, wider

Elements = tuple[Any, ...]


def comparable(a: T.DataType, b: T.DataType) -> T.DataType:
    """Return the type in which an element is compared with a value."""
    if isinstance(a, T.NullType) or (a != b and not (is_integer(a) and is_integer(b))):
        raise UnsupportedLocally("an array's element compared with a value of a different type")
    return wider(a, b)


def _shared_type(items: Value, others: Value) -> T.DataType:
    return T.ArrayType(comparable(element_type(items), element_type(others)))


def _firsts(key: Callable[[Any], Any], items: Elements) -> dict[Any, Any]:
    """Return the first one of equal elements, by what makes them equal."""
    found: dict[Any, Any] = {}
    for x in items:
        found.setdefault(None if x is None else key(x), x)
    return found


def _distinct(arguments: list[Value]) -> Value:
    (items,) = arguments
    key, shown = key_function(element_type(items)), normal(element_type(items))
    return each(items.type, lambda v: tuple(map(shown, _firsts(key, v).values())), items)


def _together(choose: Callable[[dict[Any, Any], dict[Any, Any]], Any], pair: list[Value]) -> Value:
    """Return the elements that are chosen of two arrays, each once."""
    items, others = pair
    type_ = _shared_type(items, others)
    inner = element_type(Value(type_, items.run))
    key, shown = key_function(inner), normal(inner)

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
    type_ = _shared_type(items, others)
    key = key_function(element_type(Value(type_, items.run)))

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


def of_map(child: Value, key: Value) -> Value:
    """Return the map's value of that key, or null."""
    assert isinstance(child.type, T.MapType)
    if comparable(child.type.keyType, key.type) != child.type.keyType:
        raise UnsupportedLocally("a key whose type differs from the map's")
    same = equality(child.type.keyType)
    wanted = cast(key, child.type.keyType)

    def found(items: tuple[Any, ...], name: Any) -> Any:
        return next((value for k, value in items if same(k, name)), None)

    return each(child.type.valueType, found, child, wanted)


def _entries(arguments: list[Value]) -> Value:
    (items,) = arguments
    if not isinstance(items.type, T.MapType):
        raise UnsupportedLocally("map_entries of a value that is not a map")
    entry = T.StructType().add("key", items.type.keyType).add("value", items.type.valueType)
    return Value(T.ArrayType(entry), items.run)


def _from_entries(arguments: list[Value]) -> Value:
    (items,) = arguments
    inner = element_type(items)
    if not isinstance(inner, T.StructType) or len(inner) != 2:
        raise UnsupportedLocally("map_from_entries of an array that has no entries")
    key, shown = key_function(inner.fields[0].dataType), normal(inner.fields[0].dataType)

    def made(v: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if None in v:
            return None
        keys = {key(k) for k, _ in v}
        if len(keys) < len(v) or None in keys:
            raise UnsupportedLocally("a map with a duplicate or null key")
        return tuple((shown(k), x) for k, x in v)

    type_ = T.MapType(inner.fields[0].dataType, inner.fields[1].dataType)
    return each(type_, made, items)


def _map(arguments: list[Value]) -> Value:
    of_keys, of_values = (common(a.type for a in arguments[nth::2]) for nth in (0, 1))
    type_ = T.MapType(of_keys, of_values)
    if len(arguments) % 2 or not arguments or key_of(of_keys):
        raise UnsupportedLocally("a map with keys of this type, or without a value for each key")
    parts = [cast(a, of_values if nth % 2 else of_keys) for nth, a in enumerate(arguments)]

    def made(*row: Any) -> tuple[Any, ...]:
        keys = row[::2]
        if None in keys or len(set(keys)) < len(keys):
            raise UnsupportedLocally("a map with a duplicate or null key")
        return tuple(zip(keys, row[1::2], strict=True))

    if all(a.is_literal for a in parts):
        return constant(made(*(a.literal for a in parts)), type_)
    return whole(type_, made, *parts)


def _from_arrays(arguments: list[Value]) -> Value:
    keys, values = arguments
    type_ = T.MapType(element_type(keys), element_type(values))
    key = key_function(type_.keyType)

    def made(k: tuple[Any, ...], v: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(k) != len(v) or None in k or len(set(map(key, k))) < len(k):
            raise UnsupportedLocally(
                "a map with a duplicate or null key, or without a value for each key"
            )
        return tuple(zip(k, v, strict=True))

    return each(type_, made, keys, values)


def _parts_of_map(at: int, arguments: list[Value]) -> Value:
    (items,) = arguments
    if not isinstance(items.type, T.MapType):
        raise UnsupportedLocally("map_keys or map_values of a value that is not a map")
    inner = (items.type.keyType, items.type.valueType)[at]
    return each(T.ArrayType(inner), lambda v: tuple(pair[at] for pair in v), items)


def _contains_key(arguments: list[Value]) -> Value:
    items, key = arguments
    if not isinstance(items.type, T.MapType) or items.type.keyType != key.type:
        raise UnsupportedLocally("a key whose type differs from the map's")
    same = equality(key.type)
    return each(BOOLEAN, lambda v, x: any(same(k, x) for k, _ in v), items, key)


MAPS: Mapping[str, Function] = {
    "map": _map,
    "map_contains_key": _contains_key,
    "map_entries": _entries,
    "map_from_arrays": _from_arrays,
    "map_from_entries": _from_entries,
    "map_keys": partial(_parts_of_map, 0),
    "map_values": partial(_parts_of_map, 1),
}
