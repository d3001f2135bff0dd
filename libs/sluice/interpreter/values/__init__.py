"""Values, columns and their types: rows of Spark's types as Python's, and casts between them.

Here are the types, their limits, the type that holds values of several, and conversion from and to
Arrow.

Types are compared without their NOT NULL: every value here may be null.

| type | value |
|---|---|
| integers | int |
| FLOAT, DOUBLE | float |
| DECIMAL(p, s) | int, the number times 10**s |
| DATE | int, days since 1970 |
| TIMESTAMP, TIMESTAMP_NTZ | int, microseconds since 1970 |
| ARRAY, STRUCT | tuple |
| MAP | tuple of (key, value) |
| others | str, bytes, bool |

All are immutable, so rows can be keys of a dict.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T

from sluice.interpreter import BadValue, UnsupportedLocally
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


def as_nullable(type_: T.DataType) -> T.DataType:
    """Return the type with all its parts nullable and without metadata."""
    match type_:
        case T.ArrayType():
            return T.ArrayType(as_nullable(type_.elementType))
        case T.MapType():
            return T.MapType(as_nullable(type_.keyType), as_nullable(type_.valueType))
        case T.StructType():
            return T.StructType(
                [T.StructField(f.name, as_nullable(f.dataType)) for f in type_.fields]
            )
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


Values = Sequence[Any]
MOMENTS = (T.TimestampType, T.TimestampNTZType)
_TEXT, _UNCOLLATED = pa.string(), T.StringType()
_SIMPLE: dict[type[T.DataType], pa.DataType] = {
    T.BooleanType: pa.bool_(),
    T.ByteType: pa.int8(),
    T.ShortType: pa.int16(),
    T.IntegerType: pa.int32(),
    T.LongType: pa.int64(),
    T.FloatType: pa.float32(),
    T.DoubleType: pa.float64(),
    T.StringType: _TEXT,
    T.BinaryType: pa.binary(),
    T.DateType: pa.date32(),
    T.TimestampType: pa.timestamp("us", "UTC"),
    T.TimestampNTZType: pa.timestamp("us"),
    T.NullType: pa.null(),
}


def arrow_type(type_: T.DataType) -> pa.DataType:
    """Return the Arrow type of a column.

    Raises UnsupportedLocally for types that have no values here.
    """
    if (found := _SIMPLE.get(type(type_))) and (found is not _TEXT or type_ == _UNCOLLATED):
        return found
    match type_:
        case T.DecimalType():
            return pa.decimal128(type_.precision, type_.scale)
        case T.ArrayType():
            return pa.list_(pa.field("element", arrow_type(type_.elementType)))
        case T.MapType():
            return pa.map_(arrow_type(type_.keyType), arrow_type(type_.valueType))
        case T.StructType():
            return pa.struct([pa.field(f.name, arrow_type(f.dataType)) for f in type_.fields])
    raise UnsupportedLocally(f"the type {type_.simpleString()}")


def from_arrow(column: pa.ChunkedArray | pa.Array, type_: T.DataType) -> Values:
    """Return a column's values."""
    wanted = arrow_type(type_)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return _read_column(column if column.type == wanted else column.cast(wanted), type_)


def _read_column(column: pa.Array, type_: T.DataType) -> Values:
    match type_:
        case T.DecimalType():
            low, high = unscale(column)
            pairs = zip(low.view(np.uint64).tolist(), high.tolist(), strict=True)
            return _where_valid(column, [(h << 64) + n for n, h in pairs])
        case T.DateType():
            return list(column.view(pa.int32()).to_pylist())
        case T.TimestampType() | T.TimestampNTZType():
            return list(column.view(pa.int64()).to_pylist())
        case T.ArrayType() | T.MapType():
            return _read_lists(column, type_)
        case T.StructType():
            fields = [
                _read_column(c, f.dataType)
                for c, f in zip(column.flatten(), type_.fields, strict=True)
            ]
            rows = list(zip(*fields, strict=True)) if fields else [()] * len(column)
            return _where_valid(column, rows)
    return list(column.to_pylist())


def _read_lists(column: pa.Array, type_: T.ArrayType | T.MapType) -> Values:
    offsets = column.offsets.to_pylist()
    if isinstance(type_, T.MapType):
        keys = _read_column(column.keys, type_.keyType)
        items: Values = list(zip(keys, _read_column(column.items, type_.valueType), strict=True))
    else:
        items = _read_column(column.values, type_.elementType)
    return _where_valid(column, [tuple(items[a:b]) for a, b in pairwise(offsets)])


def _where_valid(column: pa.Array, values: Values) -> Values:
    if not column.null_count:
        return values
    valid = column.is_valid().to_pylist()
    return [value if is_valid else None for value, is_valid in zip(values, valid, strict=True)]


def unscale(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and the upper 64 bits of unscaled decimals, as signed numbers."""
    halves = np.frombuffer(column.buffers()[1] or b"", np.int64)
    halves = halves[2 * column.offset : 2 * (column.offset + len(column))]
    return halves[::2], halves[1::2]


def to_arrow(values: Sequence[Any], type_: T.DataType) -> pa.Array:
    """Return a column of these values."""
    wanted = arrow_type(type_)
    match type_:
        case T.DecimalType():
            return _written_decimals(values, wanted)
        case T.DateType():
            return pa.array(values, pa.int32()).view(wanted)
        case T.TimestampType() | T.TimestampNTZType():
            return pa.array(values, pa.int64()).view(wanted)
        case T.ArrayType() | T.MapType():
            return _written_lists(values, type_, wanted)
        case T.StructType():
            return _written_structs(values, type_, wanted)
    return pa.array(values, wanted)


def _written_decimals(values: Sequence[Any], wanted: pa.DataType) -> pa.Array:
    try:
        numbers = pa.array(values, pa.int64())
    except (OverflowError, pa.ArrowInvalid):  # more than 64 bits
        parts = ((v or 0).to_bytes(16, "little", signed=True) for v in values)
        halves = np.frombuffer(b"".join(parts), np.int64)
        mask = pa.array([v is not None for v in values], pa.bool_()).buffers()[1]
    else:
        low, mask = numbers.fill_null(0).to_numpy(), numbers.buffers()[0]
        halves = np.stack([low, low >> 63], axis=1)
    return pa.Array.from_buffers(wanted, len(values), [mask, pa.py_buffer(halves)])


def _written_lists(
    values: Sequence[Any], type_: T.ArrayType | T.MapType, wanted: pa.DataType
) -> pa.Array:
    at, offsets = 0, [0]
    for value in values:
        at += len(value) if value is not None else 0
        offsets.append(at)
    items = [item for value in values if value is not None for item in value]
    mask = pa.array([v is not None for v in values], pa.bool_()).buffers()[1]
    starts = pa.array(offsets, pa.int32()).buffers()[1]
    if isinstance(type_, T.MapType):
        keys, found = _columns(items, 2)
        parts = [to_arrow(keys, type_.keyType), to_arrow(found, type_.valueType)]
        child = pa.StructArray.from_arrays(parts, fields=[wanted.key_field, wanted.item_field])
    else:
        child = to_arrow(items, type_.elementType)
    return pa.Array.from_buffers(wanted, len(values), [mask, starts], children=[child])


def _written_structs(values: Sequence[Any], type_: T.StructType, wanted: pa.DataType) -> pa.Array:
    nothing = (None,) * len(type_.fields)
    columns = _columns([nothing if v is None else v for v in values], len(type_.fields))
    children = [to_arrow(c, f.dataType) for c, f in zip(columns, type_.fields, strict=True)]
    mask = pa.array([v is not None for v in values], pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(wanted, len(values), [mask], children=children)


def _columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    return [[row[i] for row in rows] for i in range(width)]
