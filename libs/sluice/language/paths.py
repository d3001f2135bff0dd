"""Paths of a declaration: those that name the interval, and files beside the pipeline's.

If two intervals share a path, their files would be delivered twice. This happens for hourly
intervals with daily folders, or in the hour that repeats when clocks are set back. `same_path`
samples intervals around every clock change of a year in the zone. It adds consecutive ones, and
some a day, a month and a year apart.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from string import Formatter
from zoneinfo import ZoneInfo

from sluice.language.interval import Interval, Schedule
from sluice.language.names import unknown

PLACEHOLDERS = ("interval_start", "interval_end")
CODES = frozenset("YymdHMSjGVufWUz%")


def check_pattern(path: str) -> None:
    """Raise ValueError for a placeholder that no interval can fill."""
    try:
        fields = [part[1:] for part in Formatter().parse(path) if part[1] is not None]
    except ValueError as error:
        raise ValueError(f"{path!r}: {error}; write {{interval_start:%Y-%m-%d}}") from None
    for name, spec, conversion in fields:
        _check_field(name or "", spec or "", conversion)


def check_path(path: str) -> None:
    """Raise ValueError for a path that no file system accepts."""
    if any(ord(character) < 32 for character in path):
        raise ValueError(f"{path!r} has a control character")


def _check_field(name: str, spec: str, conversion: str | None) -> None:
    if name not in PLACEHOLDERS:
        raise ValueError(unknown("placeholder", name, PLACEHOLDERS))
    if "{" in spec or conversion:
        raise ValueError(f"{{{name}}} takes a format and nothing else: {{{name}:%Y-%m-%d}}")
    if not spec:
        raise ValueError(f"{{{name}}} needs a format, e.g. {{{name}:%Y-%m-%d}}")
    codes = [part[:1] for part in spec.replace("%%", "").split("%")[1:]]
    strange = [code for code in codes if code not in CODES]
    if strange or not codes:
        raise ValueError(f"{{{name}:{spec}}} is not a format of a time; write e.g. %Y-%m-%d")


def path_of(pattern: str, interval: Interval, zone: str = "UTC") -> str:
    """Return the interval's own path; bounds are written in the schedule's zone."""
    local = ZoneInfo(zone)
    return pattern.format(
        interval_start=interval.start.astimezone(local), interval_end=interval.end.astimezone(local)
    )


def beside(folder: Path, name: str) -> Path:
    """Return the path of a file in that folder. Raises ValueError if its name leads elsewhere."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{name!r} is not in the folder of the pipeline's file")
    return Path(folder, path)


def contents(folder: Path, name: str) -> bytes:
    """Return the content of a file of that folder. Raises ValueError if it can't be read."""
    try:
        return beside(folder, name).read_bytes()
    except OSError as error:
        raise ValueError(f"can't read {name!r}: {error.strerror}") from None


BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
APART = (0, 1, 2, 7, 8, 31, 60, 366, 800)  # days; each changes a different part of the calendar
IN_A_ROW = 26
AROUND = timedelta(hours=3)
MOST = 80  # intervals around a clock change


def same_path(pattern: str, schedule: Schedule) -> tuple[Interval, Interval] | None:
    """Return two intervals with the same path, if there are any."""
    seen: dict[str, Interval] = {}
    for interval in _sample(schedule.expression, schedule.timezone):
        path = path_of(pattern, interval, schedule.timezone)
        if seen.setdefault(path, interval) != interval:
            return seen[path], interval
    return None


@lru_cache(maxsize=256)
def _sample(expression: str, timezone: str) -> tuple[Interval, ...]:
    schedule = Schedule(expression=expression, timezone=timezone)
    found: list[Interval] = []
    for days in APART:
        found += islice(schedule.onward(BEGIN + timedelta(days=days)), IN_A_ROW)
    for change in _changes(timezone):
        last = change + AROUND
        some = islice(schedule.onward(change - AROUND), MOST)
        found += (interval for interval in some if interval.start < last)
    return tuple(dict.fromkeys(found))


def _changes(timezone: str) -> Iterator[datetime]:
    """Yield the hours of a year in which clocks are set."""
    local = ZoneInfo(timezone)
    hours = (BEGIN + timedelta(hours=n) for n in range(366 * 24))
    before = BEGIN.astimezone(local).utcoffset()
    for hour in hours if timezone != "UTC" else ():
        offset = hour.astimezone(local).utcoffset()
        if offset != before:
            yield hour
        before = offset
