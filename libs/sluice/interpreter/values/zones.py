"""The epoch, and offsets of regions where Java's tables and Python's certainly agree."""

from datetime import date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sluice.interpreter.refusals import UnsupportedLocally
from sluice.language.wall_clock import EPOCH

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
