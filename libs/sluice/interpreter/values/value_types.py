"""Types of values: their limits, and the type that holds values of several.

Types are compared without their NOT NULL: every value here may be null.
"""

from collections.abc import Iterable
from functools import reduce
from typing import cast

from pyspark.sql import types as T

from sluice.interpreter.refusals import NotHere
from sluice.language.typed.decimals import Decimal

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
    """Return the type that holds values of all. Raises NotHere where Spark's rule isn't plain."""
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
    raise NotHere(f"a common type of {a.simpleString()} and {b.simpleString()}")
