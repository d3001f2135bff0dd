"""Types of values: their limits, and the type that holds values of several.

Types are compared without their NOT NULL: every value here may be null.
"""

from collections.abc import Callable, Iterable
from functools import reduce
from typing import cast

from pyspark.sql import types as T

from sluice.interpreter.refusals import BadValue, UnsupportedLocally
from sluice.language.types import Decimal

BOOLEAN, INT, LONG, DOUBLE, STRING = (
    T.BooleanType(),
    T.IntegerType(),
    T.LongType(),
    T.DoubleType(),
    T.StringType(),
)
BINARY, DATE, TIMESTAMP, NTZ, NULL = (
    T.BinaryType(),
    T.DateType(),
    T.TimestampType(),
    T.TimestampNTZType(),
    T.NullType(),
)
SIMPLE: tuple[T.DataType, ...] = (
    *(BOOLEAN, T.ByteType(), T.ShortType(), INT, LONG, T.FloatType(), DOUBLE),
    *(STRING, BINARY, DATE, TIMESTAMP, NTZ),
)
BITS: dict[type[T.DataType], int] = {
    T.ByteType: 8,
    T.ShortType: 16,
    T.IntegerType: 32,
    T.LongType: 64,
}
DIGITS: dict[type[T.DataType], int] = {
    T.ByteType: 3,
    T.ShortType: 5,
    T.IntegerType: 10,
    T.LongType: 20,
}


def plain(type_: T.DataType) -> T.DataType:
    """Return the type with all its parts nullable and without metadata."""
    match type_:
        case T.ArrayType():
            return T.ArrayType(plain(type_.elementType))
        case T.MapType():
            return T.MapType(plain(type_.keyType), plain(type_.valueType))
        case T.StructType():
            return T.StructType([T.StructField(f.name, plain(f.dataType)) for f in type_.fields])
    return type_


def is_integer(type_: T.DataType) -> bool:
    """Return whether values are whole numbers of so many bits."""
    return type(type_) in BITS


def is_fraction(type_: T.DataType) -> bool:
    """Return whether values are floating point numbers."""
    return isinstance(type_, T.DoubleType | T.FloatType)


def is_number(type_: T.DataType) -> bool:
    """Return whether values are numbers."""
    return is_integer(type_) or is_fraction(type_) or isinstance(type_, T.DecimalType)


def is_interval(type_: T.DataType) -> bool:
    """Return whether values are intervals."""
    return isinstance(type_, T.AnsiIntervalType | T.CalendarIntervalType)


def is_moment(type_: T.DataType) -> bool:
    """Return whether values are dates or times."""
    return isinstance(type_, T.DateType | T.TimestampType | T.TimestampNTZType)


def decimal_of(type_: T.DataType) -> Decimal | None:
    """Return the decimal that holds a decimal or an integer type."""
    if isinstance(type_, T.DecimalType):
        return Decimal(type_.precision, type_.scale)
    return Decimal(DIGITS[type(type_)], 0) if type(type_) in DIGITS else None


def of_decimal(found: Decimal) -> T.DecimalType:
    """Return Spark's type of that precision and scale."""
    return T.DecimalType(found.precision, found.scale)


def common(types: Iterable[T.DataType]) -> T.DataType:
    """Return the type that holds values of all.

    Raises UnsupportedLocally where Spark's rule isn't plain.
    """
    return reduce(wider, types, cast(T.DataType, NULL))


def wider(a: T.DataType, b: T.DataType) -> T.DataType:  # noqa: C901, PLR0911 - one per rule
    """Return the type that holds values of both."""
    if a == b or isinstance(b, T.NullType):
        return a
    if isinstance(a, T.NullType):
        return b
    if is_integer(a) and is_integer(b):
        return max(a, b, key=lambda t: BITS[type(t)])
    if is_fraction(a) or is_fraction(b):
        if is_number(a) and is_number(b):
            return DOUBLE
    elif (one := decimal_of(a)) and (other := decimal_of(b)):
        return of_decimal(one.wider(other))
    if isinstance(a, T.ArrayType) and isinstance(b, T.ArrayType):
        return T.ArrayType(wider(a.elementType, b.elementType))
    if isinstance(a, T.StructType) and isinstance(b, T.StructType) and a.names == b.names:
        pairs = zip(a.fields, b.fields, strict=True)
        return T.StructType(
            [T.StructField(f.name, wider(f.dataType, g.dataType)) for f, g in pairs]
        )
    if isinstance(a, T.DateType) and isinstance(b, T.TimestampType | T.TimestampNTZType):
        return b
    if isinstance(b, T.DateType) and isinstance(a, T.TimestampType | T.TimestampNTZType):
        return a
    for kind in (T.DayTimeIntervalType, T.YearMonthIntervalType):
        if isinstance(a, kind) and isinstance(b, kind):
            return kind(min(a.startField, b.startField), max(a.endField, b.endField))
    raise UnsupportedLocally(f"a common type of {a.simpleString()} and {b.simpleString()}")


class OutOfRange(BadValue):
    """A number that the wanted type can't hold."""


def bounds_check(type_: T.DataType) -> Callable[[int], int]:
    """Return the check that an integer fits the type."""
    most = 1 << (BITS[type(type_)] - 1)

    def check(value: int) -> int:
        if -most <= value < most:
            return value
        raise OutOfRange(f"{value}, which is out of the range of {type_.simpleString()}")

    return check


def half_up(value: int, unit: int) -> int:
    """Return value / unit, rounded half away from zero."""
    if unit == 1:
        return value
    whole, rest = divmod(abs(value), unit)
    whole += 2 * rest >= unit
    return whole if value >= 0 else -whole


def rescale(value: int, scale: int, to: int) -> int:
    """Return an unscaled decimal at another scale, rounded half up."""
    return value * 10 ** (to - scale) if to >= scale else half_up(value, 10 ** (scale - to))


def fits_in(type_: T.DecimalType) -> Callable[[int], int]:
    """Return the check that an unscaled number has no more digits than the type."""
    most = 10**type_.precision

    def check(value: int) -> int:
        if -most < value < most:
            return value
        raise OutOfRange(f"a value with more digits than {type_.simpleString()} has")

    return check


def truncate(value: float) -> int:
    """Return a DOUBLE without its fraction."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        raise OutOfRange(f"{value} as an integer")
    return 2**63 - 1 if value == 2**63 else int(value)  # the nearest DOUBLE of the greatest BIGINT


def printable(value: float) -> float:
    """Return the number.

    Raises UnsupportedLocally for one that versions of Java write with other digits.
    """
    if value == 0 or 1e-6 <= abs(value) < 1e15:
        return value
    raise UnsupportedLocally(f"the digits of {value}")


def decimal_of_double(value: float, scale: int) -> int:
    """Return the unscaled decimal nearest to the digits of a DOUBLE."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        raise OutOfRange(f"{value} as a DECIMAL")
    number, _, power = repr(printable(value)).partition("e")
    whole, _, fraction = number.partition(".")
    places = len(fraction) - int(power or 0)
    return rescale(int(whole + fraction), places, scale)
