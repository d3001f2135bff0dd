"""Equality and order of values, as Spark groups and sorts them, and whole numbers that have both.

Groups, orders, joins and windows are computed from these numbers, column by column.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T
from pyspark.version import __version__

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.values import Values, arrow_type, is_fraction, unscale
from sluice.interpreter.values.column_batch import (
    ArrowColumn,
    Same,
    Value,
    column_of,
    concatenate,
    kernel,
    null_mask,
)

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


KeyOf = Callable[[T.DataType], Callable[[Any], Any] | None]  # of a type's values
_WHOLE = (T.BooleanType, T.IntegralType, T.DateType, T.TimestampType, T.TimestampNTZType)
FLAT = (*_WHOLE, T.FractionalType, T.StringType, T.BinaryType)
MOST_NUMBERS = 2**63  # that fit into 64 bits, from 0 on
DENSE = 4  # times more numbers than are there, at most, are looked up by place; others are hashed


def is_of_flat(type_: T.DataType) -> bool:
    """True if values of the type are flat, or structs of such."""
    if isinstance(type_, T.StructType):
        return bool(type_.fields) and all(is_of_flat(field.dataType) for field in type_.fields)
    return isinstance(type_, FLAT)


def number_values(values: Values, type_: T.DataType, how: KeyOf = key_of) -> np.ndarray:
    """Return a number for each value, null among them: from 0 on, in the order of the first."""
    if isinstance(values, Same):
        return np.zeros(len(values), np.int64)
    if isinstance(type_, FLAT):
        column = column_of(values, type_)
        if isinstance(type_, _WHOLE) and len(column) and not column.null_count:
            return _renumber(whole_numbers(column))
        return _encode(unify_floats(column) if is_fraction(type_) else column)
    if isinstance(type_, T.StructType) and how is key_of and is_of_flat(type_):
        column = column_of(values, type_)
        parts = zip(column.flatten(), type_.fields, strict=True)
        fields = [number_values(ArrowColumn(c, f.dataType), f.dataType) for c, f in parts]
        return combine([_encode(column.is_null()), *fields], len(values))
    key = how(type_) or same_value
    known: dict[Any, int] = {}
    numbers = (known.setdefault(None if v is None else key(v), len(known)) for v in values)
    return np.fromiter(numbers, np.int64, len(values))


def combine(numbers: Sequence[np.ndarray], count: int) -> np.ndarray:
    """Return the numbers of so many rows, likewise, from those of the values in each row."""
    if not numbers:
        return np.zeros(count, np.int64)
    whole, *others = numbers
    size = int(whole.max(initial=0)) + 1
    for more in others:
        many = int(more.max(initial=0)) + 1
        if size * many > MOST_NUMBERS:
            whole = _renumber(whole)
            size = int(whole.max(initial=0)) + 1
        whole, size = whole * many + more, size * many
    return _renumber(whole) if others and count else whole


def _renumber(numbers: np.ndarray) -> np.ndarray:
    """Return a number for each of some numbers, from 0 on in the order of the first."""
    least, count = int(numbers.min()), len(numbers)
    span = int(numbers.max()) - least + 1
    if span > DENSE * count:
        return _encode(pa.array(numbers))
    places, first = numbers - least, np.empty(span, np.int64)
    first[places[::-1]] = np.arange(count)[::-1]  # the last one assigned stays
    firsts = first[places]
    renumbered: np.ndarray = (np.cumsum(firsts == np.arange(count)) - 1)[firsts]
    return renumbered


def _encode(column: pa.Array) -> np.ndarray:
    indices = column.dictionary_encode(null_encoding="encode").indices
    return np.asarray(indices, np.int64)


def unify_floats(column: pa.Array) -> pa.Array:
    """Return fractions with one NaN, and 0.0 for -0.0."""
    numbers = column.fill_null(0.0).to_numpy() + column.type.to_pandas_dtype()(0.0)
    numbers[np.isnan(numbers)] = np.nan
    return pa.array(numbers, mask=np.asarray(column.is_null()))


def comparable(
    columns: Sequence[Values], type_: T.DataType, *, is_of_order: bool = False
) -> list[pa.Array]:
    """Return columns that Arrow compares as Spark compares the values: these, or their numbers.

    NaN equals itself and is the greatest; 0.0 equals -0.0. Numbers are ordered only if asked for.
    """
    if is_fraction(type_):
        arrays = [column_of(c, type_) for c in columns]
        return [pa.array(order_numbers(a), mask=np.asarray(a.is_null())) for a in arrays]
    if isinstance(type_, FLAT):
        return [column_of(c, type_) for c in columns]
    together = concatenate(columns, type_)
    numbers = rank_values(together, type_)[0] if is_of_order else number_values(together, type_)
    found, ends = pa.array(numbers, mask=null_mask(together)), np.cumsum([*map(len, columns)])
    return [found[end - len(c) : end] for c, end in zip(columns, ends.tolist(), strict=True)]


def rank_values(values: Values, type_: T.DataType) -> tuple[np.ndarray, np.ndarray]:
    """Return a number for each value, ordered as the values; and which are null, numbered alike."""
    if isinstance(values, Same):
        return np.zeros(len(values), np.int64), np.full(len(values), values.value is None)
    if isinstance(type_, T.StructType) and is_of_flat(type_):
        column = column_of(values, type_)
        return _rank_structs(column, type_), np.asarray(column.is_null())
    if not isinstance(type_, FLAT):
        order = order_of(type_)
        keys = [None if v is None else order(v) for v in values]
        places = {key: i for i, key in enumerate(sorted({k for k in keys if k is not None}))}
        found = np.fromiter((places.get(k, 0) for k in keys), np.int64, len(keys))
        return found, null_mask(values)
    return order_numbers(column_of(values, type_)), null_mask(values)


def _rank_structs(column: pa.Array, type_: T.StructType) -> np.ndarray:
    keys: list[np.ndarray] = []
    for part, field in zip(column.flatten(), type_.fields, strict=True):
        numbers, nulls = rank_values(ArrowColumn(part, field.dataType), field.dataType)
        keys += [~nulls, np.where(nulls, 0, numbers)]
    order = np.lexsort(keys[::-1])
    is_new = np.zeros(len(order), bool)
    for key in keys:
        is_new[1:] |= np.diff(key[order]) != 0
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(is_new)
    return ranks


def order_numbers(column: pa.Array) -> np.ndarray:
    """Return a number for each value, null too, of a flat column, ordered as the values."""
    type_ = column.type
    if pa.types.is_floating(type_):
        bits = np.asarray(unify_floats(column.cast(pa.float64())).fill_null(0.0)).view(np.int64)
        numbers: np.ndarray = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    elif pa.types.is_string(type_) or pa.types.is_binary(type_) or pa.types.is_decimal(type_):
        encoded = column.dictionary_encode()
        places = np.zeros(max(len(encoded.dictionary), 1), np.int64)
        places[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary))
        numbers = places[np.asarray(encoded.indices.fill_null(0))]
    else:
        numbers = whole_numbers(column)
    return numbers


def whole_numbers(column: pa.Array) -> np.ndarray:
    """Return integers, days, microseconds, booleans or unscaled decimals; 0 for null.

    As Python's integers, if some are longer than 64 bits.
    """
    type_ = column.type
    if pa.types.is_decimal(type_):
        column = column.fill_null(0) if column.null_count else column
        low, high = unscale(column)
        if (high == low >> 63).all():
            return low
        whole = [(h << 64) + (n % 2**64) for n, h in zip(low.tolist(), high.tolist(), strict=True)]
        return np.array(whole, object)
    if pa.types.is_date32(type_):
        column = column.view(pa.int32())
    elif pa.types.is_timestamp(type_):
        column = column.view(pa.int64())
    return np.asarray(column.cast(pa.int64()).fill_null(0))


def of_numbers(type_: T.DataType, compute: Callable[..., np.ndarray], *arguments: Value) -> Value:
    """Return a function of the whole numbers that values are; null if one of them is null."""
    return kernel(type_, partial(map_numbers, type_, compute), *arguments)


def map_numbers(
    type_: T.DataType, compute: Callable[..., np.ndarray], *columns: pa.Array
) -> pa.Array:
    """Return a column of a type from the whole numbers of others. Raises ArrowInvalid."""
    wanted = arrow_type(type_)
    nulls = np.any([np.asarray(c.is_null()) for c in columns], axis=0)
    found = pa.array(compute(*map(whole_numbers, columns)), mask=nulls)
    return found.cast(pa.int32() if wanted.bit_width == 32 else pa.int64()).view(wanted)
