"""Functions of dates and times. The session's zone is UTC.

Dates and times by a pattern, as Spark reads them with the formatters of `java.time`.

A pattern has fields from the year downwards, without a gap, and signs or quoted letters between
them. Numbers between signs have any length. Letters match in any case. Other patterns are left to
Spark.
"""

import calendar
import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from sluice.interpreter import BadValue, UnsupportedLocally
from sluice.interpreter.functions import PARAMETERS, Signature, day, name_each, only_text, same
from sluice.interpreter.functions.intervals import (
    first_day,
    months_between,
    months_later,
    months_on,
)
from sluice.interpreter.values import DATE, INT, LONG, NTZ, STRING, TIMESTAMP
from sluice.interpreter.values.casts import cast
from sluice.interpreter.values.column_batch import Function, Value, constant, each, kernel
from sluice.interpreter.values.numbering import of_numbers
from sluice.interpreter.values.texts import (
    DAY,
    FIRST_DAY,
    UNITS,
    date_of,
    offset_at,
    offset_in,
    region,
)
from sluice.language.interval import EPOCH

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
        # Only Java decides where one number ends and the next begins.
        runs_on = before and field and any(len(f) == 1 or "S" in f for f in (before, field))
        if field and (field not in _DIGITS or runs_on or letter in letters):
            raise UnsupportedLocally(f"the pattern {pattern!r}")
        parts += f"(?P<{letter}>{_DIGITS[field]})" if field else re.escape(quoted or sign)
        letters, before, at = letters + (letter or ""), field or "", found.end()
    if not all(order.startswith("".join(c for c in order if c in letters)) for order in _ORDERS):
        raise UnsupportedLocally(f"the pattern {pattern!r}")
    return re.compile(parts, re.ASCII | re.IGNORECASE)


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


TIME_PATTERNS: Mapping[str, Function] = {
    "from_csv": _from_csv,
    "to_date": partial(_read_by_pattern, DATE),
    "to_timestamp": partial(_read_by_pattern, TIMESTAMP),
    "to_timestamp_ntz": partial(_read_by_pattern, NTZ),
    "try_to_timestamp": partial(_read_by_pattern, TIMESTAMP, is_try=True),
}

_MOST = 2**63
YEAR_0 = range(1 - 366 - FIRST_DAY, 1 - FIRST_DAY)  # days without a date in Python
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_PARTS = {
    **{name: name for name in ("year", "quarter", "month", "day", "hour", "minute")},
    "week": "weekofyear",
    "doy": "dayofyear",
    "dow": "dayofweek",
}
_SPANS = {**UNITS, "day": DAY, "week": 7 * DAY}
_FORMATS = {
    "yyyy-MM-dd HH:mm:ss": "%Y-%m-%d %H:%M:%S",
    "yyyy-MM-dd": "%Y-%m-%d",
    "yyyy-MM": "%Y-%m",
    "yyyy": "%Y",
    "yyyyMMdd": "%Y%m%d",
    "HH:mm": "%H:%M",
}


def _numbers(takes: str, type_: T.DataType, compute: Callable[..., np.ndarray]) -> Function:
    """Return a function of the whole numbers that values are, all at once."""
    of = Signature(takes, type_, compute)
    return lambda arguments: of_numbers(type_, compute, *of.given(arguments))


def _part(compute: Callable[[pa.Array], pa.Array]) -> Function:
    def run(days: pa.Array) -> pa.Array:
        known = days.view(pa.int32()).drop_null().to_numpy()
        for number in (known.min(), known.max()) if len(known) else ():
            if compute is not pc.year or number not in YEAR_0:
                date_of(int(number))
        return compute(days).cast(pa.int32())

    return lambda arguments: kernel(INT, run, day(arguments[0]))


def _of_number(unit: int) -> Signature:
    def make(v: int) -> int:
        if not -_MOST <= v * unit < _MOST:
            raise UnsupportedLocally("a timestamp beyond the supported years")
        return v * unit

    return Signature("integer", TIMESTAMP, make)


def _unit(value: Value) -> str:
    name = str(value.literal).lower()
    if name not in _MONTHS and name not in _SPANS:
        raise UnsupportedLocally(f"the time unit {name!r}")
    return name


def _timestamp_diff(arguments: list[Value]) -> Value:
    """Return the whole units from one time to another, truncated toward zero."""
    name = _unit(arguments[0])

    def units(a: int, b: int) -> int:
        count = months_between(a, b) if name in _MONTHS else b - a
        count = abs(count) // (_MONTHS.get(name) or _SPANS[name])
        return count if b >= a else -count

    return Signature("as_timestamp as_timestamp", LONG, units)(arguments[1:])


def _timestamp_add(arguments: list[Value]) -> Value:
    name = _unit(arguments[0])

    def add(v: int, n: int) -> int:
        if name in _MONTHS:
            return months_on(v, n * _MONTHS[name])
        date_of((v + n * _SPANS[name]) // DAY)  # readers support no other years
        return v + n * _SPANS[name]

    return Signature("as_moment integer", same, add)(arguments[:0:-1])


def _last_day(v: int) -> int:
    found = date_of(v)
    return v - found.day + calendar.monthrange(found.year, found.month)[1]


def _trunc(arguments: list[Value]) -> Value:
    unit = arguments[1].literal
    if not isinstance(unit, str):
        raise UnsupportedLocally("trunc with a unit that is not a constant")
    return Signature("date", DATE, partial(first_day, unit.lower()))(arguments[:1])


def _date_trunc(arguments: list[Value]) -> Value:
    unit = arguments[0].literal
    if not isinstance(unit, str):
        raise UnsupportedLocally("date_trunc with a unit that is not a constant")
    unit = unit.lower()
    if size := {**UNITS, "day": DAY, "dd": DAY}.get(unit):
        return _numbers("as_timestamp", TIMESTAMP, partial(_truncate, size))(arguments[1:])
    found = Signature("as_timestamp", TIMESTAMP, lambda v: first_day(unit, v // DAY) * DAY)
    return found(arguments[1:])


def _truncate(size: int, moments: np.ndarray) -> np.ndarray:
    found: np.ndarray = moments - moments % size
    if (found > moments).any():
        raise UnsupportedLocally("a timestamp beyond the supported years")
    return found


def _date_format(arguments: list[Value]) -> Value:
    form = _FORMATS.get(arguments[1].literal)
    if form is None:
        raise UnsupportedLocally("date_format with an unsupported pattern")

    def write(v: int) -> str:
        found = EPOCH + timedelta(microseconds=v)
        if found.year < 1000:
            raise UnsupportedLocally("date_format of a year before 1000")
        return found.strftime(form)

    def write_all(moments: pa.Array) -> pa.Array | None:
        ends = pc.min_max(pc.year(moments)).as_py()
        if ends["min"] is None or ends["min"] < 1000 or ends["max"] > 9999:
            return None
        seconds = pc.floor_temporal(moments.cast(pa.timestamp("us")), unit="second")
        return pc.strftime(seconds.cast(pa.timestamp("s")), format=form)

    return Signature("as_timestamp", STRING, write, write_all)(arguments[:1])


def _from_seconds(arguments: list[Value]) -> Value:
    number, *pattern = arguments
    moments = _of_number(1_000_000)([number])
    return _date_format([moments, *(pattern or [constant("yyyy-MM-dd HH:mm:ss", STRING)])])


def _make_date(y: int, m: int, d: int) -> int:
    try:
        return date(y, m, d).toordinal() - FIRST_DAY
    except ValueError:
        raise UnsupportedLocally("make_date of a date that does not exist") from None


def _next_day(arguments: list[Value]) -> Value:
    short = str(arguments[1].literal).lower()
    number = next((i for i, name in enumerate(_DAYS) if short in (name, name[:3], name[:2])), None)
    if number is None:
        raise UnsupportedLocally("next_day with an unknown day of the week")
    return Signature("date", DATE, lambda v: v + 1 + (number - date_of(v).weekday() - 1) % 7)(
        arguments[:1]
    )


def _date_part(arguments: list[Value]) -> Value:
    name = _PARTS.get(str(arguments[0].literal).lower())
    if name is None:
        raise UnsupportedLocally("date_part with an unsupported part")
    return TIMES[name]([PARAMETERS["as_moment"](arguments[1])])


TIMES: Mapping[str, Function] = name_each(
    {
        "year": _part(pc.year),
        "quarter": _part(pc.quarter),
        "month": _part(pc.month),
        "day dayofmonth": _part(pc.day),
        "dayofweek": _part(partial(pc.day_of_week, count_from_zero=False, week_start=7)),
        "weekday": _part(pc.day_of_week),
        "dayofyear": _part(pc.day_of_year),
        "weekofyear": _part(pc.iso_week),
        "hour": _numbers("moment", INT, lambda v: v // UNITS["hour"] % 24),
        "minute": _numbers("moment", INT, lambda v: v // UNITS["minute"] % 60),
        "second": _numbers("moment", INT, lambda v: v // UNITS["second"] % 60),
        "unix_micros": _numbers("timestamp", LONG, lambda v: v),
        "unix_millis": _numbers("timestamp", LONG, lambda v: v // 1_000),
        "unix_seconds": _numbers("timestamp", LONG, lambda v: v // 1_000_000),
        "unix_timestamp to_unix_timestamp": (
            "date_or_timestamp",
            LONG,
            lambda v: v // 1_000_000 if v >= 0 else -(-v // 1_000_000),
        ),
        "timestamp_micros": _of_number(1),
        "timestamp_millis": _of_number(1_000),
        "timestamp_seconds": _of_number(1_000_000),
        "from_unixtime": _from_seconds,
        "unix_date": _numbers("only_date", INT, lambda v: v),
        "date_from_unix_date": _numbers("int", DATE, lambda v: v),
        "date_add": _numbers("date int", DATE, np.add),
        "date_sub": _numbers("date int", DATE, np.subtract),
        "datediff date_diff": _numbers("date date", INT, np.subtract),
        "add_months": ("date int", DATE, months_later),
        "last_day": ("date", DATE, _last_day),
        "next_day": _next_day,
        "trunc": _trunc,
        "date_trunc": _date_trunc,
        "from_utc_timestamp": (
            "moment only_text",
            TIMESTAMP,
            lambda v, z: v + offset_in(v, region(z)),
        ),
        "to_utc_timestamp": (
            "moment only_text",
            TIMESTAMP,
            lambda v, z: v - offset_at(v, region(z)),
        ),
        "date_format": _date_format,
        "make_date": ("int int int", DATE, _make_date),
        "date_part datepart": _date_part,
        "dayname": ("date", STRING, lambda v: _DAYS[date_of(v).weekday()][:3].title()),
        "monthname": ("date", STRING, lambda v: _MONTH_NAMES[date_of(v).month - 1]),
        "timestampdiff": _timestamp_diff,
        "timestampadd dateadd": _timestamp_add,
    }
)
