"""Functions over maps, except those that take a lambda."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from pyspark.sql import types as T

from sluice.interpreter.functions.comparing import equality
from sluice.interpreter.functions.sets import comparable
from sluice.interpreter.refusals import NotHere
from sluice.interpreter.values.casts import cast
from sluice.interpreter.values.column_batch import (
    Function,
    Value,
    constant,
    each,
    element_type,
    whole,
)
from sluice.interpreter.values.value_order import key_of, keyed, normal
from sluice.interpreter.values.value_types import BOOLEAN, common


def of_map(child: Value, key: Value) -> Value:
    """Return the map's value of that key, or null."""
    assert isinstance(child.type, T.MapType)
    if comparable(child.type.keyType, key.type) != child.type.keyType:
        raise NotHere("a key whose type differs from the map's")
    same = equality(child.type.keyType)
    wanted = cast(key, child.type.keyType)

    def found(items: tuple[Any, ...], name: Any) -> Any:
        return next((value for k, value in items if same(k, name)), None)

    return each(child.type.valueType, found, child, wanted)


def _entries(arguments: list[Value]) -> Value:
    (items,) = arguments
    if not isinstance(items.type, T.MapType):
        raise NotHere("map_entries of a value that is not a map")
    entry = T.StructType().add("key", items.type.keyType).add("value", items.type.valueType)
    return Value(T.ArrayType(entry), items.run)


def _from_entries(arguments: list[Value]) -> Value:
    (items,) = arguments
    inner = element_type(items)
    if not isinstance(inner, T.StructType) or len(inner) != 2:
        raise NotHere("map_from_entries of an array that has no entries")
    key, shown = keyed(inner.fields[0].dataType), normal(inner.fields[0].dataType)

    def made(v: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if None in v:
            return None
        keys = {key(k) for k, _ in v}
        if len(keys) < len(v) or None in keys:
            raise NotHere("a map with a duplicate or null key")
        return tuple((shown(k), x) for k, x in v)

    type_ = T.MapType(inner.fields[0].dataType, inner.fields[1].dataType)
    return each(type_, made, items)


def _map(arguments: list[Value]) -> Value:
    of_keys, of_values = (common(a.type for a in arguments[nth::2]) for nth in (0, 1))
    type_ = T.MapType(of_keys, of_values)
    if len(arguments) % 2 or not arguments or key_of(of_keys):
        raise NotHere("a map with keys of this type, or without a value for each key")
    parts = [cast(a, of_values if nth % 2 else of_keys) for nth, a in enumerate(arguments)]

    def made(*row: Any) -> tuple[Any, ...]:
        keys = row[::2]
        if None in keys or len(set(keys)) < len(keys):
            raise NotHere("a map with a duplicate or null key")
        return tuple(zip(keys, row[1::2], strict=True))

    if all(a.is_literal for a in parts):
        return constant(made(*(a.literal for a in parts)), type_)
    return whole(type_, made, *parts)


def _from_arrays(arguments: list[Value]) -> Value:
    keys, values = arguments
    type_ = T.MapType(element_type(keys), element_type(values))
    key = keyed(type_.keyType)

    def made(k: tuple[Any, ...], v: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(k) != len(v) or None in k or len(set(map(key, k))) < len(k):
            raise NotHere("a map with a duplicate or null key, or without a value for each key")
        return tuple(zip(k, v, strict=True))

    return each(type_, made, keys, values)


def _parts_of_map(at: int, arguments: list[Value]) -> Value:
    (items,) = arguments
    if not isinstance(items.type, T.MapType):
        raise NotHere("map_keys or map_values of a value that is not a map")
    inner = (items.type.keyType, items.type.valueType)[at]
    return each(T.ArrayType(inner), lambda v: tuple(pair[at] for pair in v), items)


def _contains_key(arguments: list[Value]) -> Value:
    items, key = arguments
    if not isinstance(items.type, T.MapType) or items.type.keyType != key.type:
        raise NotHere("a key whose type differs from the map's")
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
