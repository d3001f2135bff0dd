"""Check that every interval of a schedule has a separate path.

If two intervals share a path, their files would be delivered twice. This happens for hourly
intervals with daily folders, or in the hour that repeats when clocks are set back. The check
samples intervals around every clock change of a year in the zone. It adds consecutive ones, and
some a day, a month and a year apart.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice

from sluice.language.interval import Interval, Schedule, zone
from sluice.language.paths import path_of

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
        found += islice(_from(schedule, BEGIN + timedelta(days=days)), IN_A_ROW)
    for change in _changes(timezone):
        last = change + AROUND
        some = islice(_from(schedule, change - AROUND), MOST)
        found += (interval for interval in some if interval.start < last)
    return tuple(dict.fromkeys(found))


def _from(schedule: Schedule, moment: datetime) -> Iterator[Interval]:
    start = schedule.last_until(moment)
    while True:
        following = schedule.next_after(start)
        yield Interval(start, following)
        start = following


def _changes(timezone: str) -> Iterator[datetime]:
    """Yield the hours of a year in which clocks are set."""
    local = zone(timezone)
    hours = (BEGIN + timedelta(hours=n) for n in range(366 * 24))
    before = BEGIN.astimezone(local).utcoffset()
    for hour in hours if timezone != "UTC" else ():
        offset = hour.astimezone(local).utcoffset()
        if offset != before:
            yield hour
        before = offset
