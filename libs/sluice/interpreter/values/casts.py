"""Casts, as Spark does them in ANSI mode; a value that can't be cast is left to Spark."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.values import (
    DOUBLE,
    INT,
    MOMENTS,
    OutOfRange,
    arrow_type,
    bounds_check,
    decimal_of_double,
    fits_in,
    is_integer,
    is_moment,
    is_number,
    rescale,
    texts,
    truncate,
)
from sluice.interpreter.values.column_batch import Kernel, Value, constant, each
from sluice.interpreter.values.numbering import map_numbers, same_value, whole_numbers
from sluice.interpreter.values.texts import DAY

Caster = Callable[[Any], Any]
Types = type[T.DataType] | tuple[type[T.DataType], ...]
FRACTIONS = (T.DoubleType, T.FloatType)
MOST = 100_000  # characters or elements that one value is made of
MOST_DIGITS = 38
_MOST_MICROS = 2**63
_MOST_EXACT, _MOST_POWER = 2**53, 10**22  # a number, a power of ten: DOUBLE has all up to it
_DATE = "[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"


def cast(value: Value, type_: T.DataType, *, is_try: bool = False) -> Value:
    """Return the value in another type. Raises UnsupportedLocally for an unsupported cast."""
    if value.type == type_:
        return value
    caster = caster_of(value.type, type_)
    if is_try:
        caster = _try_cast(value.type, type_, caster)
    if value.is_literal:
        return constant(None if value.literal is None else caster(value.literal), type_)
    return each(type_, caster, value, kernel=_kernel_of(value.type, type_))


def _kernel_of(a: T.DataType, b: T.DataType) -> Kernel | None:  # noqa: PLR0911 - one per pair
    """Return Arrow's cast, if it is exactly Spark's."""
    match a, b:
        case T.IntegralType() | T.BooleanType(), T.IntegralType() | T.StringType():
            return lambda c: c.cast(arrow_type(b))
        case T.IntegralType() | T.BooleanType() | T.FloatType(), T.DoubleType():
            return lambda c: c.cast(pa.float64(), safe=False)
        case T.DecimalType() | T.TimestampType(), T.DoubleType():
            return partial(_divide_exact, 10 ** _scale(a))
        case T.IntegralType() | T.DecimalType(), T.DecimalType() if _scale(a) <= b.scale:
            return partial(_rescale, b)
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
        case T.StringType(), _ if _spelling(b):
            return partial(read_texts, b)
    return None


def _scale(type_: T.DataType) -> int:
    """Return the decimal places of the whole numbers that values are."""
    if isinstance(type_, T.TimestampType):
        return 6
    return type_.scale if isinstance(type_, T.DecimalType) else 0


def _spelling(type_: T.DataType) -> str:  # noqa: PLR0911 - one per type
    """Return the usual spelling of a type's values, in which Arrow reads them as Spark does."""
    match type_:
        case T.IntegralType():
            return r"-?[0-9]{1,18}"
        case T.DoubleType():
            return r"-?[0-9]{1,30}(\.[0-9]{1,30})?"
        case T.DecimalType() if type_.scale:
            return rf"-?[0-9]{{1,{MOST_DIGITS}}}(\.[0-9]{{1,{type_.scale}}})?"
        case T.DecimalType():
            return rf"-?[0-9]{{1,{MOST_DIGITS}}}"
        case T.DateType():
            return _DATE
        case T.TimestampType():
            return rf"{_DATE}[ T]{_CLOCK}Z?"
        case T.TimestampNTZType():
            return rf"{_DATE}[ T]{_CLOCK}"
        case T.BooleanType():
            return "true|false"
    return ""


def read_texts(type_: T.DataType, column: pa.Array) -> pa.Array | None:
    """Return the values of texts; None unless each has its type's usual spelling.

    Raises ArrowInvalid for a value that does not exist, or is beyond the type.
    """
    spelling = _spelling(type_)
    fits = spelling and pc.match_substring_regex(column, rf"\A(?:{spelling})\z")
    if not fits or pc.all(fits).as_py() is False:
        return None
    if isinstance(type_, T.TimestampType):
        return pc.utf8_rtrim(column, "Z").cast(pa.timestamp("us")).cast(arrow_type(type_))
    if isinstance(type_, T.DecimalType):
        return _rescale(type_, column)
    return column.cast(arrow_type(type_))


def _rescale(type_: T.DecimalType, column: pa.Array) -> pa.Array:
    """Return numbers as decimals; in 128 bits, Arrow does not notice each overflow of rescaling."""
    return column.cast(pa.decimal256(76, type_.scale)).cast(arrow_type(type_))


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


def as_int(value: Value) -> Value:
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

    return each(INT, few, as_int(value))


_RULES: tuple[tuple[Types, Types, Callable[[Any, Any], Caster]], ...] = (
    # From, to, and the function from these types to the cast of a value that is not null.
    (T.IntegralType, T.IntegralType, lambda _, b: bounds_check(b)),
    (T.BooleanType, T.IntegralType, lambda *_: int),
    (T.DecimalType, T.IntegralType, lambda a, b: _of_decimal(10**a.scale, b)),
    (T.StringType, T.IntegralType, lambda _, b: _then(texts.whole_number, bounds_check(b))),
    (FRACTIONS, T.IntegralType, lambda _, b: _then(truncate, bounds_check(b))),
    (T.TimestampType, T.LongType, lambda *_: lambda v: v // 1_000_000),
    (T.IntegralType, T.DecimalType, lambda _, b: _rescaling(0, b)),
    (T.DecimalType, T.DecimalType, lambda a, b: _rescaling(a.scale, b)),
    (FRACTIONS, T.DecimalType, lambda _, b: _reading(decimal_of_double, b)),
    (T.StringType, T.DecimalType, lambda _, b: _reading(texts.decimal, b)),
    ((T.IntegralType, T.BooleanType), T.DoubleType, lambda *_: float),
    (T.FloatType, T.DoubleType, lambda *_: same_value),
    (T.DecimalType, T.DoubleType, lambda a, _: partial(_divide, by=10**a.scale)),
    (T.StringType, T.DoubleType, lambda *_: texts.double),
    (T.TimestampType, T.DoubleType, lambda *_: partial(_divide, by=1_000_000)),
    (T.StringType, T.FloatType, lambda *_: texts.single),
    (T.DoubleType, T.FloatType, lambda *_: _single),
    (T.IntegralType, T.FloatType, lambda *_: _exact_single),
    (T.DecimalType, T.FloatType, lambda a, _: _round_once(a)),
    (T.IntegralType, T.StringType, lambda *_: str),
    (T.BooleanType, T.StringType, lambda *_: lambda v: "true" if v else "false"),
    (T.DecimalType, T.StringType, lambda a, _: partial(texts.decimal_text, scale=a.scale)),
    (T.DoubleType, T.StringType, lambda *_: texts.double_text),
    (T.FloatType, T.StringType, lambda *_: texts.single_text),
    (T.DateType, T.StringType, lambda *_: texts.date_text),
    (MOMENTS, T.StringType, lambda *_: texts.moment_text),
    (T.BinaryType, T.StringType, lambda *_: _decode),
    (T.DateType, MOMENTS, lambda *_: lambda v: _check_micros(v * DAY)),
    (MOMENTS, T.DateType, lambda *_: lambda v: v // DAY),
    (MOMENTS, MOMENTS, lambda *_: same_value),
    (T.DayTimeIntervalType, T.DayTimeIntervalType, lambda *_: same_value),
    (T.YearMonthIntervalType, T.YearMonthIntervalType, lambda *_: same_value),
    (T.NumericType, T.TimestampType, lambda a, _: _to_moment(a)),
    (T.StringType, T.DateType, lambda *_: texts.day),
    (T.StringType, T.TimestampType, lambda *_: partial(texts.moment, with_zone=True)),
    (T.StringType, T.TimestampNTZType, lambda *_: partial(texts.moment, with_zone=False)),
    (T.StringType, T.BinaryType, lambda *_: str.encode),
    (T.NumericType, T.BooleanType, lambda *_: bool),
)


def caster_of(a: T.DataType, b: T.DataType) -> Caster:  # noqa: PLR0911 - one per pair
    """Return the function that casts a value that is not null."""
    if a == b or isinstance(a, T.NullType):
        return same_value
    for of, to, make in _RULES:
        if isinstance(a, of) and isinstance(b, to):
            return make(a, b)
    match a, b:
        case T.ArrayType(), T.ArrayType():
            item = _nullable(a.elementType, b.elementType)
            return lambda v: tuple(map(item, v))
        case T.MapType(), T.MapType():
            key, item = caster_of(a.keyType, b.keyType), _nullable(a.valueType, b.valueType)
            return lambda v: tuple((key(k), item(x)) for k, x in v)
        case T.StructType(), T.StructType() if len(a) == len(b):
            pairs = zip(a.fields, b.fields, strict=True)
            parts = [_nullable(f.dataType, g.dataType) for f, g in pairs]
            return lambda v: tuple(part(x) for part, x in zip(parts, v, strict=True))
        case T.ArrayType(), T.StringType():
            item = _nullable(a.elementType, b, "null")
            return lambda v: f"[{', '.join(map(item, v))}]"
        case T.MapType(), T.StringType():
            key, item = caster_of(a.keyType, b), _nullable(a.valueType, b, "null")
            return lambda v: f"{{{', '.join(f'{key(k)} -> {item(x)}' for k, x in v)}}}"
        case T.StructType(), T.StringType():
            parts = [_nullable(f.dataType, b, "null") for f in a.fields]
            return lambda v: f"{{{', '.join(p(x) for p, x in zip(parts, v, strict=True))}}}"
    raise UnsupportedLocally(f"a cast from {a.simpleString()} to {b.simpleString()}")


def _nullable(a: T.DataType, b: T.DataType, null: str | None = None) -> Caster:
    """Return the cast of a part of a value, which may be null."""
    caster = caster_of(a, b)
    return lambda v: null if v is None else caster(v)


def _then(first: Caster, second: Caster) -> Caster:
    return lambda v: second(first(v))


def _rescaling(scale: int, b: T.DecimalType) -> Caster:
    fits = fits_in(b)
    return lambda v: fits(rescale(v, scale, b.scale))


def _reading(read: Callable[[Any, int], int], b: T.DecimalType) -> Caster:
    fits = fits_in(b)
    return lambda v: fits(read(v, b.scale))


def _divide(value: int, by: int) -> float:
    return value / by


def _divide_exact(by: int, column: pa.Array) -> pa.Array | None:
    """Return whole numbers divided, rounded once; None unless DOUBLE holds them all, and `by`."""
    numbers = whole_numbers(column)
    if numbers.dtype == object or by > _MOST_POWER:
        return None
    if ((numbers > _MOST_EXACT) | (numbers < -_MOST_EXACT)).any():
        return None
    return pa.array(numbers / float(by), mask=np.asarray(column.is_null()))


def _single(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _exact_single(value: int) -> float:
    """Return a whole number as FLOAT. Spark leaves out a FLOAT on the way to DOUBLE."""
    if _single(value) != value:
        raise UnsupportedLocally("an integer that FLOAT can't represent exactly")
    return float(value)


def _round_once(a: T.DecimalType) -> Caster:
    """Return the cast of a decimal to the nearest FLOAT; its DOUBLE may lie between two of them."""

    def rounded(v: int) -> float:
        near = v / 10**a.scale
        single = _single(near)
        if single == near or not math.isfinite(single):
            return single
        end = math.copysign(math.inf, near - single)
        other = float(np.nextafter(np.float32(single), np.float32(end)))
        is_between = near - single == other - near
        return texts.single(texts.decimal_text(v, a.scale)) if is_between else single

    return rounded


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


def _of_decimal(unit: int, b: T.IntegralType) -> Caster:
    """Return the cast of an unscaled decimal; all but BIGINT go through a DOUBLE in Spark."""
    fits, is_long = bounds_check(b), isinstance(b, T.LongType)

    def cut(v: int) -> int:
        as_int = _cut(v, unit)
        if not is_long and int(v / unit) != as_int:
            raise UnsupportedLocally("a DECIMAL whose nearest DOUBLE rounds to a different integer")
        return fits(as_int)

    return cut


def _check_micros(micros: int) -> int:
    if not -_MOST_MICROS <= micros < _MOST_MICROS:
        raise UnsupportedLocally("a timestamp beyond the supported years")
    return micros


def _to_moment(a: T.DataType) -> Caster:
    """Return the cast of a number of seconds since 1970."""
    if is_integer(a):
        return lambda v: _check_micros(v * 1_000_000)
    if isinstance(a, T.DecimalType):
        unit = 10**a.scale
        return lambda v: _check_micros(_cut(v * 1_000_000, unit))
    return lambda v: _check_micros(truncate(v * 1_000_000))


def _cut(value: int, unit: int) -> int:
    """Return value / unit without its fraction, as Java does."""
    return value // unit if value >= 0 else -(-value // unit)


def _decode(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise UnsupportedLocally("a cast to string of bytes that are not UTF-8") from None
