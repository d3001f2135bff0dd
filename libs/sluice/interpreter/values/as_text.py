"""Values as texts, in Spark's form."""

from datetime import date

import numpy as np

from sluice.interpreter.refusals import NotHere
from sluice.interpreter.values.numbers import printable
from sluice.interpreter.values.zones import FIRST_DAY

MOST_SINGLE = 1e7


def decimal_text(value: int, scale: int) -> str:
    """Return a decimal as Spark writes it, without an exponent."""
    digits = str(abs(value)).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{text}" if value < 0 else text


def double_text(value: float) -> str:
    """Return a number as Java writes it."""
    if value != value:  # noqa: PLR0124 - NaN
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    number, _, power = repr(printable(value)).partition("e")
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return number
    sign, number = ("-", number[1:]) if number[0] == "-" else ("", number)
    whole, _, fraction = number.partition(".")
    digits = (whole + fraction).lstrip("0")
    shift = len(whole) - 1 if whole != "0" else len(digits) - len(fraction) - 1
    digits = digits.rstrip("0")
    return f"{sign}{digits[:1]}.{digits[1:] or '0'}E{int(power or 0) + shift}"


def single_text(value: float) -> str:
    """Return a FLOAT as Java writes it. Raises NotHere where Java 17 writes more digits than 21."""
    if MOST_SINGLE <= abs(value) < float("inf"):
        raise NotHere(f"the digits of {value}")
    return double_text(float(str(np.float32(value))))


def date_of(days: int) -> date:
    """Return a date. Raises NotHere beyond the years 1 to 9999."""
    try:
        return date.fromordinal(days + FIRST_DAY)
    except (ValueError, OverflowError):
        raise NotHere("a date outside the years 1 to 9999") from None


def date_text(days: int) -> str:
    """Return a date as Spark writes it."""
    return date_of(days).isoformat()


def moment_text(micros: int) -> str:
    """Return a time in UTC as Spark writes it."""
    seconds, fraction = divmod(micros, 1_000_000)
    days, seconds = divmod(seconds, 86_400)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    point = f".{fraction:06}".rstrip("0") if fraction else ""
    return f"{date_text(days)} {clock}{point}"
