"""Values by chance in Parquet's types, and what they are in declared types, by docs/values.md."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from tests.files.strict import BITS, EXACT, NotTaken

INTEGERS = {str(t): t for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())}
UNSIGNED = {str(t): t for t in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())}
FRACTIONS = (pa.float32(), pa.float64())
PLACES = ((6, 2), (9, 0), (18, 6), (38, 2), (38, 38))
NUMBERS = (*INTEGERS.values(), *UNSIGNED.values(), *FRACTIONS)
STORED_NUMBERS = (*NUMBERS, *(pa.decimal128(*both) for both in PLACES))
STORED_TIMES = (
    pa.date32(),
    *(pa.timestamp(unit, zone) for unit in ("ms", "us", "ns") for zone in (None, "UTC")),
)
STORED_TEXTS = (pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string()))
DECLARED_NUMBERS = (*BITS, "FLOAT", "DOUBLE", *(f"DECIMAL({p}, {s})" for p, s in PLACES))
DECLARED_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
DECLARED_TEXTS = ("STRING", "BINARY")
KINDS = {
    "numbers": (STORED_NUMBERS, DECLARED_NUMBERS),
    "times": (STORED_TIMES, DECLARED_TIMES),
    "texts": (STORED_TEXTS, DECLARED_TEXTS),
}
Columns = dict[str, tuple[pa.DataType, str]]
EDGES = (0, 1, -1, 7, 127, 128, -128, -129, 2**15, 2**24 + 1, 2**31, -(2**31), 2**53 + 1, 2**63)
FLOATS = (0.0, -0.0, 0.1, 1.5, -2.5, 1e22, 1e39, -1e39, 1e-46, 1e308, 5e-324, 16777217.0)
LIMITS = tuple(sign * 2.0**bits for bits in (7, 15, 31, 63) for sign in (1, -1))
NOT_FINITE = (float("nan"), float("inf"), float("-inf"))
EPOCH = datetime.fromtimestamp(0, UTC).replace(tzinfo=None)
PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
DAYS = (0, 1, -1, 19787, -141428, -141427, -719162, -719163, 2932896, 2932897, -25567, -400000)
TEXTS = ("", "a", " é ", "\U0001f600", "1.10", "null")


@dataclass(frozen=True)
class Stored:
    """A value of one of Parquet's types, as Arrow takes it, under a declared type."""

    column: str
    type: pa.DataType
    declared: str
    value: Any


def columns(kind: str, is_nested: bool) -> Columns:
    """Every stored type under every declared one of its kind, by the column's name."""
    stored, declared = KINDS[kind]
    known = [t for t in stored if not (is_nested and str(t).startswith("timestamp[ns"))]
    pairs = [(one, other) for one in known for other in declared]
    return {f"c{nth}": pair for nth, pair in enumerate(pairs)}


def values(chance: Random, of: Columns, each: int) -> Iterator[Stored]:
    """So many values for every column, the edges among them."""
    for column, (type_, declared) in of.items():
        known = list(_edges(type_))
        for nth in range(max(each, len(known))):
            value = known[nth] if nth < len(known) else _by_chance(chance, type_)
            yield Stored(column, type_, declared, value)


def _edges(type_: pa.DataType) -> Iterator[Any]:
    if pa.types.is_integer(type_):
        yield from (n for n in EDGES if _fits(n, type_))
    elif pa.types.is_floating(type_):
        single = [float(np.float32(f)) for f in (*FLOATS, *LIMITS) if abs(f) < 3.4e38]
        yield from (*(single if type_ == pa.float32() else (*FLOATS, *LIMITS)), *NOT_FINITE)
    elif pa.types.is_decimal(type_):
        yield from (
            _decimal(units, type_) for units in (0, 1, -1, 50, 100, 10**type_.precision - 1)
        )
    elif pa.types.is_date(type_):
        yield from DAYS
    elif pa.types.is_timestamp(type_):
        second = PER_SECOND[type_.unit]
        yield from (d * 86400 * second for d in DAYS if abs(d * 86400 * second) < 2**63)
        yield from (-1, 1, second // 2, 1_711_852_200 * second)
    elif pa.types.is_binary(type_):
        yield from (*(t.encode() for t in TEXTS), b"\xff", b"a\xc0\xaf", b"\xed\xa0\x80")
    else:
        yield from TEXTS


def _fits(number: int, type_: pa.DataType) -> bool:
    low = 0 if str(type_).startswith("u") else -(2 ** (type_.bit_width - 1))
    return low <= number < low + 2**type_.bit_width


def _decimal(units: int, type_: pa.DataType) -> Decimal:
    with localcontext(EXACT):
        return Decimal(units).scaleb(-type_.scale)


def _by_chance(chance: Random, type_: pa.DataType) -> Any:
    size = chance.choice((4, 8, 16, 31, 40, 63))
    number = chance.randrange(-(2**size), 2**size)
    if pa.types.is_integer(type_):
        return next(n for n in (number, number % 2**7) if _fits(n, type_))
    if pa.types.is_floating(type_):
        made = chance.choice(
            (float(number), number / 100, chance.gauss(0, 1) * 10.0 ** (size - 31))
        )
        return float(np.float32(made)) if type_ == pa.float32() else made
    if pa.types.is_decimal(type_):
        digits = chance.randrange(type_.precision) + 1
        return _decimal(chance.randrange(-(10**digits) + 1, 10**digits), type_)
    if pa.types.is_date(type_):
        return chance.randrange(-800_000, 3_000_000)
    if pa.types.is_timestamp(type_):
        least, most = -62_200_000_000, 253_500_000_000
        if type_.unit == "ns":
            least, most = -9_000_000_000, 9_000_000_000
        return chance.randrange(least * PER_SECOND[type_.unit], most * PER_SECOND[type_.unit])
    text = "".join(chance.choice("aé\U0001f600\x00 '\"\n") for _ in range(chance.randrange(6)))
    return text.encode()[: chance.randrange(1, 9)] if pa.types.is_binary(type_) else text


# What they are


def value(stored: Stored) -> Any:
    """The value in the declared type. Raises NotTaken."""
    if stored.declared in DECLARED_TIMES:
        return _time(stored)
    if stored.declared in DECLARED_TEXTS:
        return _text(stored)
    return _number(stored)


def _demand(is_so: bool) -> None:
    if not is_so:
        raise NotTaken


def _number(stored: Stored) -> Any:
    number, declared = stored.value, stored.declared
    if declared in ("FLOAT", "DOUBLE"):
        return _fraction(number, declared)
    _demand(math.isfinite(number))
    with localcontext(EXACT):
        exact = Decimal(number)
        if declared in BITS:
            _demand(exact == exact.to_integral_value())
            limit = 2 ** (BITS[declared] - 1)
            _demand(-limit <= exact < limit)
            return int(exact)
        precision, scale = map(int, declared[8:-1].split(","))
        unit = Decimal(1).scaleb(-scale)
        if isinstance(number, float):
            exact = Decimal(repr(number))
        rounded = exact.quantize(unit, ROUND_HALF_UP)
        _demand(isinstance(number, float) or rounded == exact)
        _demand(abs(rounded) < Decimal(1).scaleb(precision - scale))
        return rounded


def _fraction(number: Any, declared: str) -> float:
    if isinstance(number, float) and not math.isfinite(number):
        return number
    with np.errstate(over="ignore"):
        found = float(np.float32(float(number))) if declared == "FLOAT" else float(number)
    _demand(abs(found) != float("inf") and (found != 0 or number == 0))
    return found


def _text(stored: Stored) -> Any:
    if stored.declared == "BINARY":
        return stored.value if isinstance(stored.value, bytes) else stored.value.encode()
    if isinstance(stored.value, str):
        return stored.value
    try:
        return bytes(stored.value).decode()
    except UnicodeDecodeError as error:
        raise NotTaken from error


def _time(stored: Stored) -> Any:
    if pa.types.is_date(stored.type):
        micros = stored.value * 86400 * 10**6
    else:
        micros = stored.value * 10**6 // PER_SECOND[stored.type.unit]
    try:
        at = EPOCH + timedelta(microseconds=micros)
    except OverflowError as error:
        raise NotTaken from error
    if stored.declared == "DATE":
        _demand(at == datetime.combine(at.date(), datetime.min.time()))
        return date(at.year, at.month, at.day)
    return at.replace(tzinfo=UTC) if stored.declared == "TIMESTAMP" else at
