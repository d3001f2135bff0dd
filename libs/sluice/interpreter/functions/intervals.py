"""Intervals, and arithmetic of them with dates and times. The session's zone is UTC.

| type | value |
|---|---|
| INTERVAL YEAR TO MONTH | int, months |
| INTERVAL DAY TO SECOND | int, microseconds |
| INTERVAL, as of `make_interval` | tuple of months, days and microseconds |

No table can hold an interval, so none leaves an expression.
"""

import calendar
from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.functions import Signature, of_column
from sluice.interpreter.functions.arithmetic import ARITHMETIC
from sluice.interpreter.values import (
    DATE,
    INT,
    LONG,
    TIMESTAMP,
    bounds_check,
    is_integer,
    is_interval,
    is_moment,
    wider,
)
from sluice.interpreter.values.casts import cast
from sluice.interpreter.values.column_batch import Function, Value, each
from sluice.interpreter.values.numbering import same_value
from sluice.interpreter.values.texts import DAY, FIRST_DAY, UNITS, date_of


def months_on(moment: int, months: int) -> int:
    """Return the time so many months later, or that of the last day of its month."""
    return months_later(moment // DAY, months) * DAY + moment % DAY


def months_between(start: int, end: int) -> int:
    """Return the whole months from one time to another, as Java's `LocalDateTime.until` counts.

    The end's day is one nearer to the start where its clock falls short of a whole day.
    """
    day, last = start // DAY, end // DAY
    if last > day and end % DAY < start % DAY:
        last -= 1
    elif last < day and end % DAY > start % DAY:
        last += 1
    a, b = date_of(day), date_of(last)
    months, days = (b.year - a.year) * 12 + b.month - a.month, b.day - a.day
    return months - (months > 0 and days < 0) + (months < 0 and days > 0)


def months_later(days: int, months: int) -> int:
    """Return the day so many months later, or the last one of its month."""
    found = date_of(days)
    year, month = divmod(found.year * 12 + found.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise UnsupportedLocally("a date outside the years 1 to 9999")
    last = calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, min(found.day, last)).toordinal() - FIRST_DAY


def first_day(unit: str, days: int) -> int:
    """Return the first day of the week, month, quarter or year.

    Raises UnsupportedLocally for other units.
    """
    found = date_of(days)
    match unit:
        case "week":
            return days - found.weekday()
        case "month" | "mon" | "mm":
            return days - found.day + 1
        case "quarter":
            return date(found.year, (found.month - 1) // 3 * 3 + 1, 1).toordinal() - FIRST_DAY
        case "year" | "yyyy" | "yy":
            return date(found.year, 1, 1).toordinal() - FIRST_DAY
    raise UnsupportedLocally(f"the time unit {unit!r}")


DAYS = T.DayTimeIntervalType(T.DayTimeIntervalType.DAY)
_days, _months, _micros = bounds_check(INT), bounds_check(INT), bounds_check(LONG)
_MOST: Mapping[type[T.DataType], Callable[[int], int]] = {
    T.YearMonthIntervalType: _months,
    T.DayTimeIntervalType: _micros,
}


def _plus(arguments: list[Value]) -> Value:
    a, b = arguments
    return _move(1, *((a, b) if is_interval(b.type) else (b, a)))


def _minus(arguments: list[Value]) -> Value:
    a, b = arguments
    return _move(-1, a, b) if is_interval(b.type) else _between(b, a)


def _move(sign: int, start: Value, interval: Value) -> Value:
    if is_interval(start.type):
        type_ = wider(start.type, interval.type)
        fits = _fits(type_)
        return each(type_, lambda v, n: fits(v + sign * n), start, interval)
    if not (is_moment(start.type) and is_interval(interval.type)):
        raise UnsupportedLocally(
            f"{interval.type.simpleString()} added to {start.type.simpleString()}"
        )
    type_ = interval.type
    if start.type == DATE and isinstance(type_, T.DayTimeIntervalType) and type_ != DAYS:
        start = cast(start, TIMESTAMP)
    if isinstance(type_, T.DayTimeIntervalType) and start.type != DATE:
        of_all = of_column(lambda c, n: _shift_times(c, sign * n)) if interval.is_literal else None
        return each(
            start.type, lambda v, n: _check_moment(v + sign * n), start, interval, kernel=of_all
        )
    parts, move = _parts_of(type_), _move_day if start.type == DATE else _move_moment
    return each(start.type, lambda v, n: move(v, *(sign * p for p in parts(n))), start, interval)


def _shift_times(column: pa.Array, micros: int) -> pa.Array:
    found = pc.add_checked(column.view(pa.int64()), micros)
    for moment in pc.min_max(found).as_py().values():
        _check_moment(moment or 0)
    return found.view(column.type)


def _check_moment(moment: int) -> int:
    date_of(moment // DAY)  # readers support no other years
    return moment


def _parts_of(type_: T.DataType) -> Callable[[Any], tuple[int, int, int]]:
    """Return the function to an interval's months, days and microseconds."""
    if isinstance(type_, T.CalendarIntervalType):
        return same_value
    is_of_months = isinstance(type_, T.YearMonthIntervalType)
    return (lambda n: (n, 0, 0)) if is_of_months else (lambda n: (0, n // DAY, 0))


def _move_day(day: int, months: int, days: int, micros: int) -> int:
    if micros:
        raise UnsupportedLocally("an interval with hours, minutes or seconds added to a DATE")
    return _days((months_later(day, months) if months else day) + days)


def _move_moment(moment: int, months: int, days: int, micros: int) -> int:
    return _check_moment(months_on(moment, months) + days * DAY + micros)


def _between(start: Value, end: Value) -> Value:
    types = (start.type, end.type)
    if not all(map(is_moment, types)):
        raise UnsupportedLocally(f"{end.type.simpleString()} - {start.type.simpleString()}")
    if types == (DATE, DATE):
        return each(DAYS, lambda a, b: (b - a) * DAY, start, end)
    start, end = (cast(v, TIMESTAMP) if v.type == DATE else v for v in (start, end))
    if start.type != end.type:
        raise UnsupportedLocally("the time between a TIMESTAMP and a TIMESTAMP_NTZ")
    return each(T.DayTimeIntervalType(), lambda a, b: b - a, start, end)


def _times(arguments: list[Value]) -> Value:
    a, b = arguments
    interval, count = (a, b) if is_interval(a.type) else (b, a)
    if not is_integer(count.type):
        raise UnsupportedLocally("an interval times a number that is not an integer")
    fits = _fits(interval.type)
    return each(type(interval.type)(), lambda v, n: fits(v * n), interval, count)


def _negative(arguments: list[Value]) -> Value:
    (interval,) = arguments
    fits = _fits(interval.type)
    return each(interval.type, lambda v: fits(-v), interval)


def _fits(type_: T.DataType) -> Callable[[int], int]:
    if type(type_) not in _MOST:
        raise UnsupportedLocally(f"arithmetic on values of type {type_.simpleString()}")
    return _MOST[type(type_)]


def _clock(hours: int, minutes: int, micros: int) -> int:
    return _micros(hours * UNITS["hour"] + minutes * UNITS["minute"] + micros)


_OPERATORS: Mapping[str, Function] = {"+": _plus, "-": _minus, "*": _times, "negative": _negative}


def _operate(name: str, arguments: list[Value]) -> Value:
    """Return arithmetic of numbers, or with an interval or two times."""
    types = [a.type for a in arguments]
    of_times = any(map(is_interval, types)) or (len(types) > 1 and all(map(is_moment, types)))
    return (_OPERATORS if of_times else ARITHMETIC)[name](arguments)


INTERVALS: Mapping[str, Function] = {
    **{name: partial(_operate, name) for name in _OPERATORS},
    "make_interval": Signature(
        "int int? int? int? int? int? seconds?",
        T.CalendarIntervalType(),
        lambda y, m=0, weeks=0, days=0, h=0, minutes=0, micros=0: (
            _months(y * 12 + m),
            _days(weeks * 7 + days),
            _clock(h, minutes, micros),
        ),
    ),
    "make_dt_interval": Signature(
        "int int? int? seconds?",
        T.DayTimeIntervalType(),
        lambda days, h=0, m=0, micros=0: _micros(days * DAY + _clock(h, m, micros)),
    ),
    "make_ym_interval": Signature(
        "int int?", T.YearMonthIntervalType(), lambda y, m=0: _months(y * 12 + m)
    ),
}
