"""Equality and order of values, as Spark groups and sorts them."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import types as T
from pyspark.version import __version__

from sluice.interpreter.refusals import UnsupportedLocally

IS_SPARK_41 = tuple(map(int, __version__.split(".")[:2])) < (4, 2)
NAN = float("nan")  # the one NaN of keys: tuples compare it by identity


def _holds(type_: T.DataType, kinds: tuple[type[T.DataType], ...]) -> bool:
    match type_:
        case T.ArrayType():
            parts = [type_.elementType]
        case T.MapType():
            parts = [type_.keyType, type_.valueType]
        case T.StructType():
            parts = [f.dataType for f in type_.fields]
        case _:
            parts = []
    return isinstance(type_, kinds) or any(_holds(part, kinds) for part in parts)


def has_floats(type_: T.DataType) -> bool:
    """True if values of the type are floating point numbers, or hold some."""
    return _holds(type_, (T.FloatType, T.DoubleType))


def check_distinct(type_: T.DataType) -> None:
    """Raise UnsupportedLocally if the project's Spark has other distinct values of the type.

    Spark 4.1 keeps -0.0 beside 0.0, and in collect_set each NaN; later ones keep one of them.
    """
    if IS_SPARK_41 and has_floats(type_):
        raise UnsupportedLocally("distinct floating point numbers, for Spark 4.1")


def has_maps(type_: T.DataType) -> bool:
    """True if values of the type are maps, or hold some."""
    return _holds(type_, (T.MapType,))


def _of_parts(
    type_: T.DataType, of: Callable[[T.DataType], Callable[[Any], Any]]
) -> Callable[[Any], Any] | None:
    """Return the function to arrays and structs of what `of` makes of their parts."""
    match type_:
        case T.ArrayType():
            inner = of(type_.elementType)
            return lambda v: None if v is None else tuple(map(inner, v))
        case T.StructType():
            parts = [of(f.dataType) for f in type_.fields]
            return lambda v: (
                None if v is None else tuple(p(x) for p, x in zip(parts, v, strict=True))
            )
    return None


def key_function(type_: T.DataType) -> Callable[[Any], Any]:
    """Return the function that maps equal values of a type to one key."""
    return key_of(type_) or same_value


def key_of(type_: T.DataType) -> Callable[[Any], Any] | None:
    """Return a function to keys that are equal if Spark groups the values together.

    None if the values can be keys themselves. NaN equals NaN, -0.0 equals 0.0. Maps are refused.
    """
    if has_maps(type_):
        raise UnsupportedLocally("maps as keys")
    return (_of_parts(type_, key_function) or _float_key) if has_floats(type_) else None


def group_key(type_: T.DataType) -> Callable[[Any], Any] | None:
    """Return a function to the value that GROUP BY shows for equal values; None for the values
    themselves.

    A map's entries are in the order of their keys there, also within other values.
    """
    if not has_maps(type_):
        return key_of(type_)
    if has_floats(type_):
        raise UnsupportedLocally("maps as keys")
    if not isinstance(type_, T.MapType):
        return _of_parts(type_, lambda part: group_key(part) or same_value)
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
    return _of_parts(type_, normal) or (lambda v: None if v is None else v + 0.0)


def _float_key(value: float | None) -> float | None:
    return NAN if value != value else value  # noqa: PLR0124 - NaN


def same_value(value: Any) -> Any:
    """Return the value: the sort key of types that Python orders as Spark does."""
    return value


def order_of(type_: T.DataType) -> Callable[[Any], Any]:
    """Return a function from values, not null, to what Python sorts as Spark does."""
    if isinstance(type_, T.MapType | T.NullType):
        raise UnsupportedLocally(f"an order by values of type {type_.simpleString()}")
    if isinstance(type_, T.FloatType | T.DoubleType):
        return lambda v: (1, 0.0) if v != v else (0, v)  # noqa: PLR0124 - NaN
    return _of_parts(type_, lambda part: nulls_first(order_of(part))) or same_value


def nulls_first(order: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the order with null before all values."""
    return lambda v: (0,) if v is None else (1, order(v))
