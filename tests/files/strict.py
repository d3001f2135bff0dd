"""A reader of single values, written from docs/values.md: plain Python, slow, and strict.

It shares no line with the product and asks no library for what the page does not promise.
"""

import base64
import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from datetime import time as clock
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
WORDS = {"true": True, "t": True, "yes": True, "y": True, "1": True}
WORDS |= {"false": False, "f": False, "no": False, "n": False, "0": False}
DIGITS = frozenset("0123456789")
EXACT = Context(prec=400)


class NotTaken(Exception):
    """The text is no value of the type."""


def value(text: str, type_: str, format_: str) -> Any:
    """The value of a text. Raises NotTaken."""
    if format_ == "csv" and not text:
        return None
    if type_ == "STRING":
        return text
    if type_ == "BINARY":
        return text.encode() if format_ == "csv" else _base64(text.strip(" \t"))
    if type_.startswith("DECIMAL"):
        precision, scale = map(int, re.findall(r"\d+", type_))
        return _decimal(text.strip(" \t"), precision, scale)
    return READERS[type_](text.strip(" \t"), type_)


def _demand(is_so: bool) -> None:
    if not is_so:
        raise NotTaken


def _digits(text: str, *lengths: int) -> str:
    _demand(bool(text) and set(text) <= DIGITS and (not lengths or len(text) in lengths))
    return text


def _exact(text: str, most: int = 2) -> Fraction:
    """A number as it is written; an exponent of so many digits at most."""
    mantissa, mark, exponent = text.replace("E", "e").partition("e")
    unsigned = mantissa[1:] if mantissa[:1] in ("+", "-") else mantissa
    whole, _, rest = unsigned.partition(".")
    _digits(whole + rest)
    shift = 0
    if mark:
        plain = exponent[1:] if exponent[:1] in ("+", "-") else exponent
        shift = int(_digits(plain, *range(1, most + 1))) * (-1 if exponent[0] == "-" else 1)
    number = Fraction(int(whole + rest)) * Fraction(10) ** (shift - len(rest))
    return -number if mantissa[:1] == "-" else number


def _integer(text: str, type_: str) -> int:
    number = _exact(text)
    limit = 2 ** (BITS[type_] - 1)
    _demand(number.denominator == 1 and -limit <= number < limit)
    return int(number)


def _decimal(text: str, precision: int, scale: int) -> Decimal:
    units = _exact(text) * 10**scale
    _demand(units.denominator == 1 and abs(units) < 10**precision)
    with localcontext(EXACT):
        return Decimal(int(units)).scaleb(-scale)


def _fraction(text: str, type_: str) -> float:
    if text.lower() == "nan":
        return float("nan")
    if text.lower().lstrip("+-") in ("inf", "infinity") and len(text.lstrip("+-")) + 1 >= len(text):
        return float(text)
    number = _exact(text, most=4)
    found = float(text) if type_ == "DOUBLE" else _nearest_float(number)
    _demand(abs(found) != float("inf") and (found != 0 or number == 0))
    return -0.0 if found == 0 and text[0] == "-" else found


def _nearest_float(number: Fraction) -> float:
    """Of the floats around a number the nearest, of two the even one."""
    limit = Fraction(2) ** 128 - Fraction(2) ** 103  # half a step beyond the largest
    if abs(number) >= limit:
        return float("inf")
    low, high = 0, 0x7F7FFFFF
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if Fraction(_float(middle)) <= abs(number) else (low, middle - 1)
    around = [n for n in (low, low + 1) if n <= 0x7F7FFFFF]
    nearest = min(around, key=lambda n: (abs(Fraction(_float(n)) - abs(number)), n % 2))
    return -_float(nearest) if number < 0 else _float(nearest)


def _float(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def _boolean(text: str, _: str) -> bool:
    _demand(text.isascii() and text.lower() in WORDS)
    return WORDS[text.lower()]


def _day(text: str) -> date:
    parts = text.split("-")
    _demand(len(parts) == 3)
    year, month, day = _digits(parts[0], 4), _digits(parts[1], 1, 2), _digits(parts[2], 1, 2)
    try:
        return date(int(year), int(month), int(day))
    except ValueError as error:
        raise NotTaken from error


def _cut(text: str) -> tuple[str, str]:
    """The day and what comes behind its `T` or space."""
    for at, character in enumerate(text):
        if character in "T ":
            return text[:at], text[at + 1 :]
    return text, ""


def _date(text: str, _: str) -> date:
    day, time = _cut(text)
    if day != text:
        plain = time.removesuffix("Z")
        is_midnight = plain in ("00:00", "00:00:00")
        zeros = plain.removeprefix("00:00:00.")
        _demand(is_midnight or (zeros != plain and bool(zeros) and not zeros.strip("0")))
    return _day(day)


def _local(text: str, _: str = "") -> datetime:
    day, time = _cut(text)
    on = _day(day)
    if day == text:
        return datetime.combine(on, clock())
    hour, _, rest = time.partition(":")
    minute, colon, second = rest.partition(":")
    whole, point, places = second.partition(".")
    _digits(hour, 1, 2)
    _digits(minute, 2)
    if colon:
        _digits(whole, 2)
    if point:
        _digits(places)
        _demand(not places[6:].strip("0"))
    micros = int(places[:6].ljust(6, "0")) if point else 0
    try:
        return datetime.combine(on, clock(int(hour), int(minute), int(whole or 0), micros))
    except ValueError as error:
        raise NotTaken from error


def _instant(text: str, _: str) -> datetime:
    """The zone begins behind the last digit of the time, at a space, a letter or a sign."""
    _, time = _cut(text)
    behind = len(time.lstrip("0123456789:."))
    if not behind:
        return _local(text).replace(tzinfo=UTC)
    local, zone = text[:-behind], text[-behind:]
    _demand(":" in local)
    return _in_zone(_local(local), zone.removeprefix(" "))


def _in_zone(local: datetime, zone: str) -> datetime:
    if zone in ("Z", "UTC", "GMT"):
        return local.replace(tzinfo=UTC)
    if zone[:1] in ("+", "-"):
        return _utc(local.replace(tzinfo=_offset(zone)))
    _demand("/" in zone)
    try:
        found = ZoneInfo(zone)
    except (ValueError, OSError, KeyError) as error:
        raise NotTaken from error
    at = _utc(local.replace(tzinfo=found))
    _demand(at.astimezone(found).replace(tzinfo=None) == local)
    return at


def _offset(zone: str) -> timezone:
    hours, minutes = zone[1:3], zone[3:].removeprefix(":")
    _demand(":" not in zone or bool(minutes))
    _digits(hours, 2)
    _digits(minutes or "00", 2)
    ahead = timedelta(hours=int(hours), minutes=int(minutes or 0))
    _demand(int(minutes or 0) < 60 and ahead <= timedelta(hours=18))
    return timezone(-ahead if zone[0] == "-" else ahead)


def _utc(at: datetime) -> datetime:
    try:
        return at.astimezone(UTC)
    except (OverflowError, ValueError) as error:
        raise NotTaken from error


def _base64(text: str) -> bytes:
    _demand(len(text) % 4 == 0)
    try:
        decoded = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise NotTaken from error
    _demand(base64.b64encode(decoded).decode() == text)
    return decoded


READERS: dict[str, Callable[[str, str], Any]] = {
    **dict.fromkeys(BITS, _integer),
    **dict.fromkeys(("FLOAT", "DOUBLE"), _fraction),
    "BOOLEAN": _boolean,
    "DATE": _date,
    "TIMESTAMP_NTZ": _local,
    "TIMESTAMP": _instant,
}
