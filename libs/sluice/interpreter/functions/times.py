"""Functions of dates and times. The session's zone is UTC.

Dates and times by a pattern, as Spark reads them with the formatters of `java.time`.

A pattern has fields from the year downwards, without a gap, and signs or quoted letters between
them. Numbers between signs have any length. Letters match in any case. Other patterns are left to
Spark.
"""

import calendar
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from sluice.interpreter.functions.intervals import (
    first_day,
    months_between,
    months_later,
    months_on,
)
from sluice.interpreter.functions.strings import only_text
from sluice.interpreter.refusals import BadValue, UnsupportedLocally
from sluice.interpreter.values.casts import cast
from sluice.interpreter.values.casts import whole as whole_number
from sluice.interpreter.values.column_batch import Function, Value, constant, each, kernel
from sluice.interpreter.values.numbering import of_numbers
from sluice.interpreter.values.texts import date_of
from sluice.interpreter.values.value_types import (
    DATE,
    INT,
    LONG,
    NTZ,
    STRING,
    TIMESTAMP,
    is_integer,
    is_moment,
)
from sluice.interpreter.values.zones import DAY, FIRST_DAY, UNITS, offset_at, offset_in, region
from sluice.language.wall_clock import EPOCH

_TYPES = {
    "v DATE": (DATE, "dateFormat"),
    "v TIMESTAMP": (TIMESTAMP, "timestampFormat"),
    "v TIMESTAMP_NTZ": (NTZ, "timestampNTZFormat"),
}
_CELL = re.compile('"((?:[^"]|"")+)"')
_PART = re.compile(r"'([A-Za-z .,:;/_()+-]+)'|(([A-Za-z])\3*)|([ .,:;/_()+-])")
_DIGITS = {
    "yyyy": "[0-9]{4}|[+-][0-9]{4,}",
    **{2 * letter: "[0-9]{2}" for letter in "MdHms"},
    **dict.fromkeys("MdHms", "[0-9]{1,19}"),
    **{places * "S": f"[0-9]{{1,{places}}}" for places in range(1, 7)},
}
_ORDERS = ("yMd", "HmsS")
_CLOCK = {"H": (24, 3_600_000_000), "m": (60, 60_000_000), "s": (60, 1_000_000)}


def _from_csv(arguments: list[Value]) -> Value:
    cell, schema, options = arguments
    type_, name = _TYPES.get(str(schema.literal), (None, ""))
    given = dict(options.literal) if isinstance(options.literal, tuple) else {}
    pattern = given.pop(name, None)
    if type_ is None or not isinstance(pattern, str) or given != {"escape": '"'}:
        raise UnsupportedLocally("from_csv, other than for one date or timestamp with a pattern")
    layout = _layout(pattern)

    def read(v: str) -> tuple[int | None]:
        found = _CELL.fullmatch(v)
        if not (found and v.isascii() and v.isprintable()):
            raise UnsupportedLocally(
                "from_csv of a string that is not one quoted value of printable ASCII"
            )
        moment = _read_moment(layout, found[1])
        return (moment // DAY if moment is not None and type_ == DATE else moment,)

    return each(T.StructType().add("v", type_), read, only_text(cell))


def _read_by_pattern(type_: T.DataType, arguments: list[Value], *, is_try: bool = False) -> Value:
    """Return a date or a time of a text, perhaps by a pattern; null if it has another form."""
    value, *pattern = arguments
    if not pattern:
        if is_try:
            raise UnsupportedLocally("try_to_timestamp without a pattern")
        return cast(value, type_)
    if not (isinstance(value.type, T.StringType) and isinstance(pattern[0].literal, str)):
        raise UnsupportedLocally("a date or a time by a pattern, of a value that is not a STRING")
    written, size = pattern[0].literal, DAY if type_ == DATE else 1
    layout = _layout(written)

    def read(v: str) -> int | None:
        if not (v.isascii() and v.isprintable()):
            raise UnsupportedLocally("a date or a time with other characters than printable ASCII")
        moment = _read_moment(layout, v)
        if moment is None and not is_try:
            raise BadValue(f"the string {v!r} by the pattern {written!r}")
        return moment if moment is None else moment // size

    return each(type_, read, value)


@lru_cache
def _layout(pattern: str) -> re.Pattern[str]:
    """Return the pattern as a regular expression.

    Raises UnsupportedLocally for a pattern left to Spark.
    """
    parts, letters, before, at = "", "", "", 0
    while at < len(pattern):
        found = _PART.match(pattern, at)
        if not found:
            raise UnsupportedLocally(f"the pattern {pattern!r}")
        quoted, field, letter, sign = found.groups()
        if field and (field not in _DIGITS or _run_together(before, field) or letter in letters):
            raise UnsupportedLocally(f"the pattern {pattern!r}")
        parts += f"(?P<{letter}>{_DIGITS[field]})" if field else re.escape(quoted or sign)
        letters, before, at = letters + (letter or ""), field or "", found.end()
    if not all(order.startswith("".join(c for c in order if c in letters)) for order in _ORDERS):
        raise UnsupportedLocally(f"the pattern {pattern!r}")
    return re.compile(parts, re.ASCII | re.IGNORECASE)


def _run_together(before: str, field: str) -> bool:
    """Return whether only Java decides where one number ends and the next begins."""
    return bool(before) and any(len(f) == 1 or "S" in f for f in (before, field))


def _read_moment(layout: re.Pattern[str], written: str) -> int | None:
    """Return a text's microseconds since 1970; null if there is no such day or time."""
    found = layout.fullmatch(written)
    if not found:
        return None
    given = found.groupdict()
    year = given.get("y", "")
    if not year.isdigit() or year == "0000":
        raise UnsupportedLocally(f"the year {year!r}")
    try:
        day = date(int(year), int(given.get("M", 1)), int(given.get("d", 1)))
    except (ValueError, OverflowError):
        return None
    moment = (day.toordinal() - FIRST_DAY) * DAY + int(given.get("S", "").ljust(6, "0"))
    for letter, (most, size) in _CLOCK.items():
        if (value := int(given.get(letter, 0))) >= most:
            return None
        moment += value * size
    return moment


TIME_PATTERNS: Mapping[str, Callable[[list[Value]], Value]] = {
    "from_csv": _from_csv,
    "to_date": partial(_read_by_pattern, DATE),
    "to_timestamp": partial(_read_by_pattern, TIMESTAMP),
    "to_timestamp_ntz": partial(_read_by_pattern, NTZ),
    "try_to_timestamp": partial(_read_by_pattern, TIMESTAMP, is_try=True),
}


_MOST = 2**63
YEAR_0 = range(1 - 366 - FIRST_DAY, 1 - FIRST_DAY)  # days without a date in Python
_MOMENTS = (T.DateType, T.TimestampType, T.TimestampNTZType)
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_PARTS = {
    **{name: name for name in ("year", "quarter", "month", "day", "hour", "minute")},
    "week": "weekofyear",
    "doy": "dayofyear",
    "dow": "dayofweek",
}
_SPANS = {**UNITS, "day": DAY, "week": 7 * DAY}


def _moment(value: Value) -> Value:
    if not isinstance(value.type, T.TimestampType | T.TimestampNTZType):
        raise UnsupportedLocally(
            f"a timestamp function of a value of type {value.type.simpleString()}"
        )
    return value


def _date(value: Value) -> Value:
    if isinstance(value.type, T.StringType):
        raise UnsupportedLocally("a date function of a string")
    return cast(value, DATE)


def _part(compute: Callable[[pa.Array], pa.Array], arguments: list[Value]) -> Value:
    def run(days: pa.Array) -> pa.Array:
        known = days.view(pa.int32()).drop_null().to_numpy()
        for day in (known.min(), known.max()) if len(known) else ():
            if compute is not pc.year or day not in YEAR_0:
                date_of(int(day))
        return compute(days).cast(pa.int32())

    return kernel(INT, run, _date(arguments[0]))


def _clock(unit: int, size: int, arguments: list[Value]) -> Value:
    return of_numbers(INT, lambda v: v // unit % size, _moment(arguments[0]))


def _whole(unit: int, arguments: list[Value]) -> Value:
    """Return the number of whole units since 1970."""
    (value,) = arguments
    if not isinstance(value.type, T.TimestampType):
        raise UnsupportedLocally(f"a Unix time of a value of type {value.type.simpleString()}")
    return of_numbers(LONG, lambda v: v // unit, value)


def _of_number(unit: int, arguments: list[Value]) -> Value:
    (value,) = arguments
    if not is_integer(value.type):
        raise UnsupportedLocally("a timestamp from a number that is not an integer")

    def made(v: int) -> int:
        if not -_MOST <= v * unit < _MOST:
            raise UnsupportedLocally("a timestamp beyond the supported years")
        return v * unit

    return each(TIMESTAMP, made, value)


def _unix_date(arguments: list[Value]) -> Value:
    (value,) = arguments
    if not isinstance(value.type, T.DateType):
        raise UnsupportedLocally("unix_date of a value that is not a DATE")
    return Value(INT, value.run)


def _from_unix_date(arguments: list[Value]) -> Value:
    (value,) = arguments
    return Value(DATE, whole_number(value).run)


def _shift(sign: int, arguments: list[Value]) -> Value:
    start, days = arguments
    if not is_integer(days.type):
        raise UnsupportedLocally("adding days that are not an integer")
    return of_numbers(DATE, lambda v, n: v + sign * n, _date(start), whole_number(days))


def _date_diff(arguments: list[Value]) -> Value:
    if len(arguments) != 2:
        raise UnsupportedLocally("datediff with a unit")
    end, start = map(_date, arguments)
    return of_numbers(INT, np.subtract, end, start)


def _timestamp_diff(arguments: list[Value]) -> Value:
    """Return the whole units from one time to another, truncated toward zero."""
    unit, start, end = arguments
    if not all(
        isinstance(v.type, T.DateType | T.TimestampType | T.TimestampNTZType) for v in (start, end)
    ):
        raise UnsupportedLocally("timestampdiff of values that are not dates or timestamps")
    name = str(unit.literal).lower()
    if name in _MONTHS:
        between, size = months_between, _MONTHS[name]
    elif name in _SPANS:
        between, size = _micros_between, _SPANS[name]
    else:
        raise UnsupportedLocally(f"the time unit {name!r}")

    def units(a: int, b: int) -> int:
        count = abs(between(a, b)) // size
        return count if b >= a else -count

    return each(LONG, units, cast(start, TIMESTAMP), cast(end, TIMESTAMP))


def _timestamp_add(arguments: list[Value]) -> Value:
    unit, number, start = arguments
    if not isinstance(start.type, _MOMENTS) or not is_integer(number.type):
        raise UnsupportedLocally("timestampadd with arguments of these types")
    moment = cast(start, TIMESTAMP) if isinstance(start.type, T.DateType) else start
    name = str(unit.literal).lower()
    if name in _MONTHS:
        size = _MONTHS[name]
        return each(moment.type, lambda n, v: months_on(v, n * size), number, moment)
    if name not in _SPANS:
        raise UnsupportedLocally(f"the time unit {name!r}")
    span = _SPANS[name]

    def added(n: int, v: int) -> int:
        date_of((v + n * span) // DAY)  # readers support no other years
        return v + n * span

    return each(moment.type, added, number, moment)


def _micros_between(start: int, end: int) -> int:
    return end - start


def _add_months(arguments: list[Value]) -> Value:
    start, months = arguments
    return each(DATE, months_later, _date(start), whole_number(months))


def _last_day(arguments: list[Value]) -> Value:
    def last(v: int) -> int:
        found = date_of(v)
        return v - found.day + calendar.monthrange(found.year, found.month)[1]

    return each(DATE, last, _date(arguments[0]))


def _trunc(arguments: list[Value]) -> Value:
    value, unit = _date(arguments[0]), arguments[1].literal
    if not isinstance(unit, str):
        raise UnsupportedLocally("trunc with a unit that is not a constant")
    return each(DATE, partial(first_day, unit.lower()), value)


def _date_trunc(arguments: list[Value]) -> Value:
    unit = arguments[0].literal
    if not isinstance(unit, str) or not is_moment(arguments[1].type):
        raise UnsupportedLocally(
            "date_trunc of no date or time, or with a unit that is not a constant"
        )
    unit, value = unit.lower(), cast(arguments[1], TIMESTAMP)
    if size := {**UNITS, "day": DAY, "dd": DAY}.get(unit):
        return of_numbers(TIMESTAMP, partial(_truncate, size), value)
    return each(TIMESTAMP, lambda v: first_day(unit, v // DAY) * DAY, value)


def _truncate(size: int, moments: np.ndarray) -> np.ndarray:
    found: np.ndarray = moments - moments % size
    if (found > moments).any():
        raise UnsupportedLocally("a timestamp beyond the supported years")
    return found


def _from_utc(arguments: list[Value]) -> Value:
    value, zone = arguments
    return each(
        TIMESTAMP, lambda v, z: v + offset_in(v, region(z)), _moment(value), only_text(zone)
    )


def _to_utc(arguments: list[Value]) -> Value:
    value, zone = arguments
    return each(
        TIMESTAMP, lambda v, z: v - offset_at(v, region(z)), _moment(value), only_text(zone)
    )


def _date_format(arguments: list[Value]) -> Value:
    value, pattern = arguments
    written = {"yyyy-MM-dd": "%Y-%m-%d", "yyyy-MM": "%Y-%m", "yyyy": "%Y", "HH:mm": "%H:%M"}
    written |= {"yyyy-MM-dd HH:mm:ss": "%Y-%m-%d %H:%M:%S", "yyyyMMdd": "%Y%m%d"}
    if pattern.literal not in written or not is_moment(value.type):
        raise UnsupportedLocally("date_format of no date or time, or with an unsupported pattern")
    form = written[pattern.literal]
    moments = cast(value, TIMESTAMP)

    def text(v: int) -> str:
        found = EPOCH + timedelta(microseconds=v)
        if found.year < 1000:
            raise UnsupportedLocally("date_format of a year before 1000")
        return found.strftime(form)

    return each(STRING, text, moments)


def _make_date(arguments: list[Value]) -> Value:
    def made(y: int, m: int, d: int) -> int:
        try:
            return date(y, m, d).toordinal() - FIRST_DAY
        except ValueError:
            raise UnsupportedLocally("make_date of a date that does not exist") from None

    return each(DATE, made, *(whole_number(a) for a in arguments))


def _seconds(arguments: list[Value]) -> Value:
    """Return the whole seconds since 1970 of a time or a day, truncated toward zero."""
    (value,) = arguments
    if not isinstance(value.type, T.TimestampType | T.DateType):
        raise UnsupportedLocally(f"a Unix time of a value of type {value.type.simpleString()}")

    def cut(v: int) -> int:
        return v // 1_000_000 if v >= 0 else -(-v // 1_000_000)

    return each(LONG, cut, cast(value, TIMESTAMP))


def _from_seconds(arguments: list[Value]) -> Value:
    number, *pattern = arguments
    moments = _of_number(1_000_000, [number])
    return _date_format([moments, *(pattern or [constant("yyyy-MM-dd HH:mm:ss", STRING)])])


def _name(names: Sequence[str], of: Callable[[date], int], arguments: list[Value]) -> Value:
    return each(STRING, lambda v: names[of(date_of(v))], _date(arguments[0]))


def _next_day(arguments: list[Value]) -> Value:
    start, name = arguments
    short = str(name.literal).lower()
    number = next((i for i, day in enumerate(_DAYS) if short in (day, day[:3], day[:2])), None)
    if number is None:
        raise UnsupportedLocally("next_day with an unknown day of the week")
    return each(DATE, lambda v: v + 1 + (number - date_of(v).weekday() - 1) % 7, _date(start))


def _date_part(arguments: list[Value]) -> Value:
    part, value = arguments
    name = _PARTS.get(str(part.literal).lower())
    if name is None or not isinstance(value.type, _MOMENTS):
        raise UnsupportedLocally("date_part with an unsupported part or type")
    if name in ("hour", "minute") and isinstance(value.type, T.DateType):
        value = cast(value, TIMESTAMP)
    return TIMES[name]([value])


TIMES: Mapping[str, Function] = {
    "year": partial(_part, pc.year),
    "quarter": partial(_part, pc.quarter),
    "month": partial(_part, pc.month),
    "day": partial(_part, pc.day),
    "dayofmonth": partial(_part, pc.day),
    "dayofweek": partial(_part, partial(pc.day_of_week, count_from_zero=False, week_start=7)),
    "weekday": partial(_part, pc.day_of_week),
    "dayofyear": partial(_part, pc.day_of_year),
    "weekofyear": partial(_part, pc.iso_week),
    "hour": partial(_clock, 3_600_000_000, 24),
    "minute": partial(_clock, 60_000_000, 60),
    "second": partial(_clock, 1_000_000, 60),
    "unix_micros": partial(_whole, 1),
    "unix_millis": partial(_whole, 1_000),
    "unix_seconds": partial(_whole, 1_000_000),
    "timestamp_micros": partial(_of_number, 1),
    "timestamp_millis": partial(_of_number, 1_000),
    "unix_date": _unix_date,
    "date_from_unix_date": _from_unix_date,
    "date_add": partial(_shift, 1),
    "date_sub": partial(_shift, -1),
    "datediff": _date_diff,
    "date_diff": _date_diff,
    "add_months": _add_months,
    "last_day": _last_day,
    "trunc": _trunc,
    "date_trunc": _date_trunc,
    "from_utc_timestamp": _from_utc,
    "to_utc_timestamp": _to_utc,
    "date_format": _date_format,
    "make_date": _make_date,
    "date_part": _date_part,
    "datepart": _date_part,
    "dayname": partial(_name, _DAY_NAMES, lambda d: d.weekday()),
    "monthname": partial(_name, _MONTH_NAMES, lambda d: d.month - 1),
    "next_day": _next_day,
    "unix_timestamp": _seconds,
    "to_unix_timestamp": _seconds,
    "timestamp_seconds": partial(_of_number, 1_000_000),
    "from_unixtime": _from_seconds,
    "timestampdiff": _timestamp_diff,
    "timestampadd": _timestamp_add,
    "dateadd": _timestamp_add,
}
