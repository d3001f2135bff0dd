"""Casts, as Spark does them in ANSI mode; a value that can't be cast is left to Spark."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from sluice.interpreter.refusals import UnsupportedLocally
from sluice.interpreter.values import texts
from sluice.interpreter.values.arrow_conversion import arrow_type
from sluice.interpreter.values.column_batch import Value, constant, each, kernel
from sluice.interpreter.values.numbering import map_numbers
from sluice.interpreter.values.texts import (
    date_text,
    decimal_text,
    double_text,
    moment_text,
    single_text,
)
from sluice.interpreter.values.value_types import (
    BITS,
    DOUBLE,
    INT,
    OutOfRange,
    bounds_check,
    decimal_of_double,
    fits_in,
    is_integer,
    is_moment,
    is_number,
    rescale,
    truncate,
)
from sluice.interpreter.values.zones import DAY

Caster = Callable[[Any], Any]
MOST = 100_000  # characters or elements that one value is made of
_MOST_MICROS = 2**63


def cast(value: Value, type_: T.DataType, *, is_try: bool = False) -> Value:
    """Return the value in another type. Raises UnsupportedLocally for an unsupported cast."""
    if value.type == type_:
        return value
    caster = caster_of(value.type, type_)
    if is_try:
        caster = _try_cast(value.type, type_, caster)
    if value.is_literal:
        return constant(None if value.literal is None else caster(value.literal), type_)
    if not is_try and (convert := _kernel_of(value.type, type_)):
        return kernel(type_, convert, value)
    return each(type_, caster, value)


def _kernel_of(a: T.DataType, b: T.DataType) -> Callable[[pa.Array], pa.Array] | None:  # noqa: PLR0911 - one per pair
    """Return Arrow's cast, if it is exactly Spark's."""
    match a, b:
        case T.IntegralType() | T.BooleanType(), T.IntegralType() | T.StringType():
            return lambda c: c.cast(arrow_type(b))
        case T.IntegralType() | T.BooleanType() | T.FloatType(), T.DoubleType():
            return lambda c: c.cast(pa.float64(), safe=False)
        case T.IntegralType(), T.DecimalType():
            return lambda c: c.cast(pa.decimal128(20, 0)).cast(arrow_type(b))
        case T.DecimalType(), T.DecimalType() if a.scale <= b.scale:
            return lambda c: c.cast(arrow_type(b))
        case T.DateType(), T.TimestampType() | T.TimestampNTZType():
            return lambda c: pc.multiply_checked(c.view(pa.int32()).cast(pa.int64()), DAY).view(
                arrow_type(b)
            )
        case T.TimestampType() | T.TimestampNTZType(), T.TimestampType() | T.TimestampNTZType():
            return lambda c: c.view(pa.int64()).view(arrow_type(b))
        case T.TimestampType() | T.TimestampNTZType(), T.DateType():
            return partial(map_numbers, b, lambda v: v // DAY)
        case T.StringType(), T.BinaryType():
            return lambda c: c.cast(pa.binary())
    return None


def boolean(value: Value) -> Value:
    """Return a BOOLEAN; other types are left to Spark."""
    if not isinstance(value.type, T.BooleanType | T.NullType):
        raise UnsupportedLocally(f"{value.type.simpleString()} as a condition")
    return cast(value, T.BooleanType())


def number(value: Value) -> Value:
    """Return a number as DOUBLE; other types are left to Spark."""
    if not is_number(value.type):
        raise UnsupportedLocally(f"{value.type.simpleString()} as a number")
    return cast(value, DOUBLE)


def whole(value: Value) -> Value:
    """Return a whole number as INT; other types are left to Spark."""
    if not is_integer(value.type) or isinstance(value.type, T.LongType):
        raise UnsupportedLocally(f"{value.type.simpleString()} as an INT")
    return cast(value, INT)


def length(value: Value) -> Value:
    """Return the length of a result, at least 0; a very large one is left to Spark."""

    def few(count: int) -> int:
        if abs(count) > MOST:
            raise UnsupportedLocally(f"a string or array of length {count}")
        return max(count, 0)

    return each(INT, few, whole(value))


def caster_of(a: T.DataType, b: T.DataType) -> Caster:  # noqa: C901, PLR0911, PLR0912 - one per pair
    """Return the function that casts a value that is not null."""
    if a == b or isinstance(a, T.NullType):
        return _same
    if is_integer(b):
        return _to_integer(a, b)
    if isinstance(b, T.DecimalType):
        return _to_decimal(a, b)
    if isinstance(b, T.DoubleType):
        return _to_double(a)
    if isinstance(b, T.StringType):
        return _to_string(a)
    match a, b:
        case T.FloatType(), T.FloatType():
            return _same
        case T.StringType(), T.FloatType():
            return texts.single
        case T.DoubleType(), T.FloatType():
            return _single
        case _, T.FloatType() if is_integer(a):
            return _exact_single
        case T.DecimalType(), T.FloatType():
            return _rounded_once(_to_double(a), _to_string(a))
        case T.DateType(), T.TimestampType() | T.TimestampNTZType():
            return lambda v: v * DAY
        case T.TimestampType() | T.TimestampNTZType(), T.DateType():
            return lambda v: v // DAY
        case T.TimestampType(), T.TimestampNTZType():
            return _same
        case T.TimestampNTZType(), T.TimestampType():
            return _same
        case T.DayTimeIntervalType(), T.DayTimeIntervalType():
            return _same
        case T.YearMonthIntervalType(), T.YearMonthIntervalType():
            return _same
        case _, T.TimestampType() if is_number(a):
            return _to_moment(a)
        case T.StringType(), T.DateType():
            return texts.day
        case T.StringType(), T.TimestampType() | T.TimestampNTZType():
            return partial(texts.moment, with_zone=isinstance(b, T.TimestampType))
        case T.StringType(), T.BinaryType():
            return lambda v: v.encode()
        case _, T.BooleanType() if is_number(a):
            return bool
        case T.ArrayType(), T.ArrayType():
            inner = _nullable(caster_of(a.elementType, b.elementType))
            return lambda v: tuple(map(inner, v))
        case T.MapType(), T.MapType():
            key, item = caster_of(a.keyType, b.keyType), caster_of(a.valueType, b.valueType)
            item = _nullable(item)
            return lambda v: tuple((key(k), item(x)) for k, x in v)
        case T.StructType(), T.StructType() if len(a) == len(b):
            pairs = zip(a.fields, b.fields, strict=True)
            parts = [_nullable(caster_of(f.dataType, g.dataType)) for f, g in pairs]
            return lambda v: tuple(part(x) for part, x in zip(parts, v, strict=True))
    raise UnsupportedLocally(f"a cast from {a.simpleString()} to {b.simpleString()}")


def _same(value: Any) -> Any:
    return value


def _single(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _exact_single(value: int) -> float:
    """Return a whole number as FLOAT. Spark leaves out a FLOAT on the way to DOUBLE."""
    if _single(value) != value:
        raise UnsupportedLocally("an integer that FLOAT can't represent exactly")
    return float(value)


def _rounded_once(to_double: Caster, to_text: Caster) -> Caster:
    """Return the cast of a number to the nearest FLOAT; its DOUBLE may lie between two of them."""

    def rounded(v: Any) -> float:
        near = to_double(v)
        single = _single(near)
        if single == near or not math.isfinite(single):
            return single
        end = math.copysign(math.inf, near - single)
        other = float(np.nextafter(np.float32(single), np.float32(end)))
        return texts.single(to_text(v)) if near - single == other - near else single

    return rounded


def _nullable(caster: Caster) -> Caster:
    return lambda v: None if v is None else caster(v)


def _try_cast(a: T.DataType, b: T.DataType, caster: Caster) -> Caster:
    """Return null for a value out of range; a text of another form is left to Spark."""
    if (is_number(a) or isinstance(a, T.StringType)) and (is_number(b) or is_moment(b)):

        def attempt(value: Any) -> Any:
            try:
                return caster(value)
            except OutOfRange:
                return None

        return attempt
    return caster


def _to_integer(a: T.DataType, b: T.DataType) -> Caster:
    fits = bounds_check(b)
    if is_integer(a):
        return fits if BITS[type(a)] > BITS[type(b)] else _same
    match a:
        case T.BooleanType():
            return int
        case T.DecimalType():
            return _of_decimal(10**a.scale, fits, is_long=isinstance(b, T.LongType))
        case T.StringType():
            return lambda v: fits(texts.whole_number(v))
        case T.DoubleType() | T.FloatType():
            return lambda v: fits(truncate(v))
        case T.TimestampType() if isinstance(b, T.LongType):
            return lambda v: v // 1_000_000
    raise UnsupportedLocally(f"a cast from {a.simpleString()} to {b.simpleString()}")


def _of_decimal(unit: int, fits: Callable[[int], int], *, is_long: bool) -> Caster:
    """Return the cast of an unscaled decimal; all but BIGINT go through a DOUBLE in Spark."""

    def cut(v: int) -> int:
        whole = _cut(v, unit)
        if not is_long and int(v / unit) != whole:
            raise UnsupportedLocally("a DECIMAL whose nearest DOUBLE rounds to a different integer")
        return fits(whole)

    return cut


def _to_moment(a: T.DataType) -> Caster:
    """Return the cast of a number of seconds since 1970."""

    def known(micros: int) -> int:
        if not -_MOST_MICROS <= micros < _MOST_MICROS:
            raise UnsupportedLocally("a timestamp beyond the supported years")
        return micros

    if is_integer(a):
        return lambda v: known(v * 1_000_000)
    if isinstance(a, T.DecimalType):
        unit = 10**a.scale
        return lambda v: known(_cut(v * 1_000_000, unit))
    return lambda v: known(truncate(v * 1_000_000))


def _cut(value: int, unit: int) -> int:
    """Return value / unit without its fraction, as Java does."""
    return value // unit if value >= 0 else -(-value // unit)


def _to_decimal(a: T.DataType, b: T.DecimalType) -> Caster:
    fits, scale = fits_in(b), b.scale
    if is_integer(a):
        unit = 10**scale
        return lambda v: fits(v * unit)
    match a:
        case T.DecimalType():
            return lambda v: fits(rescale(v, a.scale, scale))
        case T.DoubleType() | T.FloatType():
            return lambda v: fits(decimal_of_double(v, scale))
        case T.StringType():
            return lambda v: fits(texts.decimal(v, scale))
    raise UnsupportedLocally(f"a cast from {a.simpleString()} to {b.simpleString()}")


def _to_double(a: T.DataType) -> Caster:
    if is_integer(a) or isinstance(a, T.BooleanType):
        return float
    match a:
        case T.FloatType():
            return _same
        case T.DecimalType():
            unit = 10**a.scale
            return lambda v: v / unit
        case T.StringType():
            return texts.double
        case T.TimestampType():
            return lambda v: v / 1_000_000
    raise UnsupportedLocally(f"a cast from {a.simpleString()} to double")


def _to_string(a: T.DataType) -> Caster:  # noqa: C901, PLR0911 - one per type
    if is_integer(a):
        return str
    match a:
        case T.BooleanType():
            return lambda v: "true" if v else "false"
        case T.DecimalType():
            return lambda v: decimal_text(v, a.scale)
        case T.DoubleType():
            return double_text
        case T.FloatType():
            return single_text
        case T.DateType():
            return date_text
        case T.TimestampType() | T.TimestampNTZType():
            return moment_text
        case T.BinaryType():
            return _decode
        case T.ArrayType():
            item = _show_part(a.elementType)
            return lambda v: f"[{', '.join(map(item, v))}]"
        case T.MapType():
            key, item = _show_part(a.keyType), _show_part(a.valueType)
            return lambda v: f"{{{', '.join(f'{key(k)} -> {item(x)}' for k, x in v)}}}"
        case T.StructType():
            parts = [_show_part(f.dataType) for f in a.fields]
            return lambda v: f"{{{', '.join(p(x) for p, x in zip(parts, v, strict=True))}}}"
    raise UnsupportedLocally(f"a cast from {a.simpleString()} to string")


def _show_part(a: T.DataType) -> Caster:
    shown = caster_of(a, T.StringType())
    return lambda v: "null" if v is None else shown(v)


def _decode(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise UnsupportedLocally("a cast to string of bytes that are not UTF-8") from None
