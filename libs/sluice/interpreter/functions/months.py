"""Arithmetic of months, on days and microseconds since 1970."""

import calendar
from datetime import date

from sluice.interpreter.refusals import NotHere
from sluice.interpreter.values.as_text import date_of
from sluice.interpreter.values.zones import DAY, FIRST_DAY


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
        raise NotHere("a date outside the years 1 to 9999")
    last = calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, min(found.day, last)).toordinal() - FIRST_DAY


def first_day(unit: str, days: int) -> int:
    """Return the first day of the week, month, quarter or year. Raises NotHere for other units."""
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
    raise NotHere(f"the time unit {unit!r}")
