"""Values as texts in Spark's form, and texts as values; the epoch, and offsets of regions."""

import math
import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from sluice.interpreter import BadValue, UnsupportedLocally
from sluice.interpreter.values import OutOfRange, printable, rescale
from sluice.language.interval import EPOCH

DAY = 86_400_000_000  # microseconds
UNITS = {  # those of a time of day, in microseconds
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
}
FIRST_DAY = date(1970, 1, 1).toordinal()
# Changed since Java 17, so versions of Java differ in their rules, or lack the zone.
_CHANGED = """
Africa/Cairo Africa/Casablanca Africa/El_Aaiun America/Asuncion America/Bahia_Banderas
America/Cambridge_Bay America/Chihuahua America/Ciudad_Juarez America/Coyhaique
America/Ensenada America/Godthab America/Hermosillo America/Inuvik America/Iqaluit
America/Matamoros America/Mazatlan America/Merida America/Mexico_City America/Monterrey
America/Nuuk America/Ojinaga America/Pangnirtung America/Punta_Arenas America/Rankin_Inlet
America/Resolute America/Santa_Isabel America/Santiago America/Scoresbysund America/Thule
America/Tijuana America/Yellowknife Antarctica/Casey Antarctica/Palmer Antarctica/Vostok
Asia/Almaty Asia/Amman Asia/Beirut Asia/Choibalsan Asia/Damascus Asia/Gaza Asia/Hebron
Asia/Hovd Asia/Manila Asia/Qostanay Asia/Qyzylorda Asia/Tehran Asia/Ulaanbaatar
Asia/Ulan_Bator Chile/Continental Europe/Kyiv Mexico/BajaNorte Mexico/BajaSur Mexico/General
Pacific/Apia Pacific/Fiji Pacific/Tongatapu
"""
CHANGED = frozenset(_CHANGED.split())
_MICRO = timedelta(microseconds=1)


@lru_cache(maxsize=256)
def region(name: object) -> ZoneInfo:
    """Return the zone of a region's name. Raises UnsupportedLocally for other names."""
    if not isinstance(name, str) or name in CHANGED or not (name == "UTC" or "/" in name):
        raise UnsupportedLocally(f"the timezone {name!r}")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UnsupportedLocally(f"the timezone {name!r}") from None


def _check_year(micros: int) -> datetime:
    found = EPOCH + timedelta(microseconds=micros) if abs(micros) < 1 << 61 else None
    if found is None or not 1972 <= found.year <= 2036:
        raise UnsupportedLocally("a timezone's offset before 1972 or after 2036")
    return found


def offset_in(utc: int, zone: ZoneInfo) -> int:
    """Return the microseconds that a zone is ahead at a time in UTC."""
    offset = _check_year(utc).astimezone(zone).utcoffset()
    assert offset is not None
    return offset // _MICRO


def offset_at(local: int, zone: ZoneInfo) -> int:
    """Return the microseconds that a zone is ahead at a local time; the earlier one of two."""
    offset = _check_year(local).replace(tzinfo=zone).utcoffset()
    assert offset is not None
    return offset // _MICRO


_WHOLE = re.compile(r"([+-]?)0*(\d+)", re.ASCII)
_DECIMAL = re.compile(r"([+-]?)0*(\d*)(?:\.(\d{0,40}))?", re.ASCII)
DAYS_OF_400_YEARS = 146_097
_MOST = 40  # digits before the point, more than any type has
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_MOMENT = re.compile(
    r"(\d{4}-\d{1,2}-\d{1,2})[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?"
    r" ?(Z|UTC|GMT|[+-]\d{2}:?\d{2}|[A-Za-z_]+/[A-Za-z_/+-]+)?",
    re.ASCII,
)
_SIGNED = ("inf", "infinity")
_NOT_FINITE = {"nan", *_SIGNED, *(f"+{w}" for w in _SIGNED), *(f"-{w}" for w in _SIGNED)}
SPACE = " \t\n\r\x0b\x0c"


def whole_number(text: str) -> int:
    """Return a whole number."""
    text = text.strip(SPACE)
    found = _WHOLE.fullmatch(text)
    if not found:
        raise BadValue(f"the string {text!r} as an integer")
    _check_length(found[2])
    return int(found[1] + found[2])


def decimal(text: str, scale: int) -> int:
    """Return an unscaled decimal."""
    text = text.strip(SPACE)
    found = _DECIMAL.fullmatch(text)
    if not found:
        raise BadValue(f"the string {text!r} as a DECIMAL")
    if not any(map(str.isdigit, text)):
        raise OutOfRange(f"the string {text!r}, which has no digits")
    _check_length(found[2])
    value = rescale(int(f"0{found[2]}{found[3] or ''}"), len(found[3] or ""), scale)
    return -value if found[1] == "-" else value


def _check_length(digits: str) -> None:
    if len(digits) > _MOST:
        raise OutOfRange(f"a number of {len(digits)} digits")


def double(text: str) -> float:
    """Return a DOUBLE, perhaps not finite."""
    if text.strip(SPACE).lower() in _NOT_FINITE:
        return float(text)
    if not _NUMBER.fullmatch(text.strip(SPACE)):
        raise BadValue(f"the string {text!r} as a number")
    return float(text)


def single(text: str) -> float:
    """Return the nearest FLOAT of a text, rounded once, half to even."""
    with np.errstate(over="ignore"):
        near = np.float32(double(text))
    if not np.isfinite(near):
        return float(near)
    exact = Decimal(text.strip(SPACE))
    around = [near, *(np.nextafter(near, np.float32(end)) for end in ("-inf", "inf"))]
    finite = [c for c in around if np.isfinite(c)]
    best = min(  # of two at the same distance, the even one
        finite, key=lambda c: (abs(Fraction(float(c)) - Fraction(exact)), c.view(np.uint32) & 1)
    )
    return math.copysign(float(best), -1.0 if text.strip(SPACE)[0] == "-" else 1.0)


def day(text: str) -> int:
    """Return the days since the epoch."""
    found = _DATE.fullmatch(text.strip(SPACE))
    if not found:
        raise BadValue(f"the string {text!r} as a date")
    year, *rest = map(int, found.groups())
    try:
        if year == 0:  # which Python lacks
            return date(400, *rest).toordinal() - DAYS_OF_400_YEARS - FIRST_DAY
        return date(year, *rest).toordinal() - FIRST_DAY
    except ValueError:
        raise OutOfRange(f"the date {text}, which does not exist") from None


def moment(text: str, *, with_zone: bool) -> int:
    """Return a time, in UTC if the text has a zone."""
    text = text.strip(SPACE)
    if _DATE.fullmatch(text):
        return day(text) * DAY
    found = _MOMENT.fullmatch(text)
    if not found or (found[6] and not with_zone):
        raise BadValue(f"the string {text!r} as a timestamp")
    hour, minute, second = (int(part or 0) for part in found.groups()[1:4])
    if hour > 23 or minute > 59 or second > 59:
        raise OutOfRange(f"the time {text}, which does not exist")
    micros = int((found[5] or "")[:6].ljust(6, "0"))
    local = day(found[1]) * DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros
    return local - _offset(local, found[6]) if found[6] else local


def _offset(local: int, zone: str) -> int:
    """Return a zone's microseconds ahead of UTC, at a local time."""
    if zone in ("Z", "UTC", "GMT"):
        return 0
    if zone[0] in "+-":
        hours, minutes = int(zone[1:3]), int(zone[-2:])
        if hours > 18 or minutes > 59 or (hours == 18 and minutes):
            raise OutOfRange(f"the timezone {zone}, which does not exist")
        return (hours * 60 + minutes) * (-60_000_000 if zone[0] == "-" else 60_000_000)
    return offset_at(local, region(zone))


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
    """Return a FLOAT as Java writes it.

    Raises UnsupportedLocally where Java 17 writes more digits than 21.
    """
    if MOST_SINGLE <= abs(value) < float("inf"):
        raise UnsupportedLocally(f"the digits of {value}")
    return double_text(float(str(np.float32(value))))


def date_of(days: int) -> date:
    """Return a date. Raises UnsupportedLocally beyond the years 1 to 9999."""
    try:
        return date.fromordinal(days + FIRST_DAY)
    except (ValueError, OverflowError):
        raise UnsupportedLocally("a date outside the years 1 to 9999") from None


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
