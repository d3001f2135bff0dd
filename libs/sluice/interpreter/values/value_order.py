"""Equality and order of values, as Spark groups and sorts them."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import types as T

from sluice.interpreter.refusals import UnsupportedLocally

NAN = float("nan")  # the one NaN of keys: tuples compare it by identity


def has_floats(type_: T.DataType) -> bool:
    """True if values of the type are floating point numbers, or hold some."""
    match type_:
        case T.ArrayType():
            return has_floats(type_.elementType)
        case T.MapType():
            return has_floats(type_.keyType) or has_floats(type_.valueType)
        case T.StructType():
            return any(has_floats(f.dataType) for f in type_.fields)
    return isinstance(type_, T.FloatType | T.DoubleType)


def key_function(type_: T.DataType) -> Callable[[Any], Any]:
    """Return the function that maps equal values of a type to one key."""
    return key_of(type_) or same_value


def has_maps(type_: T.DataType) -> bool:
    """True if values of the type are maps, or hold some."""
    match type_:
        case T.ArrayType():
            return has_maps(type_.elementType)
        case T.StructType():
            return any(has_maps(f.dataType) for f in type_.fields)
    return isinstance(type_, T.MapType)


def key_of(type_: T.DataType) -> Callable[[Any], Any] | None:
    """Return a function to keys that are equal if Spark groups the values together.

    None if the values can be keys themselves. NaN equals NaN, -0.0 equals 0.0. Maps are refused.
    """
    if has_maps(type_):
        raise UnsupportedLocally("maps as keys")
    if not has_floats(type_):
        return None
    match type_:
        case T.ArrayType():
            inner = key_of(type_.elementType)
            assert inner
            return lambda v: None if v is None else tuple(map(inner, v))
        case T.StructType():
            parts = [key_function(f.dataType) for f in type_.fields]
            return lambda v: (
                None if v is None else tuple(p(x) for p, x in zip(parts, v, strict=True))
            )
    return _float_key


def group_key(type_: T.DataType) -> Callable[[Any], Any] | None:
    """Return a function to the value that GROUP BY shows for equal values; None for the values
    themselves.

    A map's entries are in the order of their keys there, also within other values.
    """
    if not has_maps(type_):
        return key_of(type_)
    if has_floats(type_):
        raise UnsupportedLocally("maps as keys")
    match type_:
        case T.ArrayType():
            inner = group_key(type_.elementType) or same_value
            return lambda v: None if v is None else tuple(map(inner, v))
        case T.StructType():
            parts = [group_key(f.dataType) or same_value for f in type_.fields]
            return lambda v: (
                None if v is None else tuple(p(x) for p, x in zip(parts, v, strict=True))
            )
    assert isinstance(type_, T.MapType)
    if not is_plain(type_.keyType):
        raise UnsupportedLocally("maps as keys")
    of = group_key(type_.valueType) or same_value
    return lambda v: None if v is None else tuple(sorted((key, of(x)) for key, x in v))


def is_plain(type_: T.DataType) -> bool:
    """True if Python orders values of a type as Spark does, and they hold no others."""
    return isinstance(type_, T.StringType | T.IntegralType | T.DateType | T.TimestampType)


def normal(type_: T.DataType) -> Callable[[Any], Any]:
    """Return the function to the value that Spark shows of equal ones: 0.0 for -0.0."""
    if not has_floats(type_):
        return same_value
    match type_:
        case T.ArrayType():
            inner = normal(type_.elementType)
            return lambda v: None if v is None else tuple(map(inner, v))
        case T.StructType():
            parts = [normal(f.dataType) for f in type_.fields]
            return lambda v: v and tuple(p(x) for p, x in zip(parts, v, strict=True))
    return lambda v: None if v is None else v + 0.0


def _float_key(value: float | None) -> float | None:
    return NAN if value != value else value  # noqa: PLR0124 - NaN


def same_value(value: Any) -> Any:
    """Return the value: the sort key of types that Python orders as Spark does."""
    return value


def order_of(type_: T.DataType) -> Callable[[Any], Any]:
    """Return a function from values, not null, to what Python sorts as Spark does."""
    match type_:
        case T.FloatType() | T.DoubleType():
            return lambda v: (1, 0.0) if v != v else (0, v)  # noqa: PLR0124 - NaN
        case T.ArrayType():
            inner = nulls_first(order_of(type_.elementType))
            return lambda v: tuple(map(inner, v))
        case T.StructType():
            parts = [nulls_first(order_of(f.dataType)) for f in type_.fields]
            return lambda v: tuple(p(x) for p, x in zip(parts, v, strict=True))
        case T.MapType() | T.NullType():
            raise UnsupportedLocally(f"an order by values of type {type_.simpleString()}")
    return same_value


def nulls_first(order: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the order with null before all values."""
    return lambda v: (0,) if v is None else (1, order(v))
