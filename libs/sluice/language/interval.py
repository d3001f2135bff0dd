"""Time: instants in UTC, data intervals, and the grid that a schedule lays over time.

A bound without a zone is a local time of the pipeline's zone. A schedule's intervals are half open,
adjacent, and aligned in that zone: a day on which clocks change has 23 or 25 hours.

A local time that occurs twice means its second instant. A skipped local time means one that is
later by as much as the clocks moved forward. An expression that includes every hour follows elapsed
time: it means every instant whose local time matches. Both rules are Airflow's. They also hold
where Airflow's arithmetic loses its own grid: at half-hour clock changes, or with many bounds in
the skipped hour.
"""

import re
from calendar import monthrange
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import CroniterError, croniter
from pydantic import AfterValidator, GetCoreSchemaHandler, model_validator
from pydantic_core import CoreSchema, core_schema

from sluice.errors import UsageError
from sluice.language import Model
from sluice.language.names import near

Length = timedelta
UNITS = {
    "microsecond": timedelta(microseconds=1),
    "millisecond": timedelta(milliseconds=1),
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
CALENDAR_UNITS = {"month": 1, "quarter": 3, "year": 12}
DURATION = re.compile(r"\s*(\d+)\s+([a-z]+?)s?\s*")
_UNIT = "|".join("".join(f"[{c}{c.upper()}]" for c in unit) for unit in (*UNITS, *CALENDAR_UNITS))
WRITTEN_DURATION = rf"^\s*0*[1-9]\d*\s+({_UNIT})[sS]?\s*$"  # in JSON Schemas
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
INSTANT = datetime.resolution  # the length of an interval of one moment
SHOWN = 3


def parse_time(text: str | date | datetime, timezone: str = "UTC") -> datetime:
    """Parse an ISO 8601 date or time to an instant; without a zone, it is local to `timezone`."""
    if isinstance(text, date) and not isinstance(text, datetime):
        text = datetime.combine(text, time())
    try:
        found = datetime.fromisoformat(text.strip()) if isinstance(text, str) else text
        return in_utc(found) if found.tzinfo else instant(found, zone(timezone))
    except (ValueError, AttributeError, OverflowError):  # the last: outside the years 1 to 9999
        raise IntervalError(
            f"{text!r} is not a time", hint="write 2017-01-31 or 2017-01-31T08:30:00+01:00"
        ) from None


def in_utc(moment: datetime) -> datetime:
    """Return the same instant in UTC; a time without a zone is taken as UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def zone(name: str) -> ZoneInfo:
    """Return the zone of that IANA name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"unknown timezone {name!r}; write a name such as Europe/Berlin") from None


ZoneName = Annotated[str, AfterValidator(lambda name: zone(name).key)]


@dataclass(frozen=True, order=True)
class Interval:
    """[start, end) in UTC."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", in_utc(self.start))
        object.__setattr__(self, "end", in_utc(self.end))
        if self.start >= self.end:
            raise IntervalError(
                f"interval start {show(self.start)} is not before its end {show(self.end)}",
                hint="the end is exclusive: for one day, give the next day",
            )

    @classmethod
    def parse(cls, start: str, end: str, timezone: str = "UTC") -> Self:
        """Parse the interval between two texts; a time without a zone is local to `timezone`."""
        return cls(parse_time(start, timezone), parse_time(end, timezone))

    def __contains__(self, moment: datetime) -> bool:
        return self.start <= in_utc(moment) < self.end

    def overlaps(self, other: "Interval") -> bool:
        """Return whether they share an instant."""
        return self.start < other.end and other.start < self.end

    def covers(self, other: "Interval") -> bool:
        """Return whether the other is completely inside this one."""
        return self.start <= other.start and other.end <= self.end

    def __str__(self) -> str:
        return self.format()

    def format(self, timezone: str = "UTC") -> str:
        """Format its bounds as people write them, in that zone's local time."""
        return f"[{show(self.start, timezone)}, {show(self.end, timezone)})"

    def options(self, timezone: str) -> str:
        """Return the bounds as options of a command on a pipeline of that zone."""
        return f"--start {_bound(self.start, timezone)} --end {_bound(self.end, timezone)}"


def show(moment: datetime, timezone: str = "UTC") -> str:
    """Format a time as people write it: a UTC midnight as its date, other zones with the offset."""
    local = in_utc(moment).astimezone(zone(timezone) if timezone != "UTC" else UTC)
    is_date = timezone == "UTC" and local.time() == time()
    return local.date().isoformat() if is_date else local.isoformat()


def _bound(moment: datetime, timezone: str) -> str:
    """Return a time as `parse_time` reads it there: a midnight that occurs once as its date."""
    local = in_utc(moment).astimezone(zone(timezone))
    day = local.replace(tzinfo=None)
    is_date = day.time() == time() and instant(day, zone(timezone)) == in_utc(moment)
    return day.date().isoformat() if is_date else local.isoformat()


@dataclass(frozen=True)
class Cron:
    """Instants of a cron expression in a zone. A step costs a few of croniter's."""

    expression: str
    zone: ZoneInfo

    def after(self, moment: datetime) -> datetime:
        """Return the first instant after that moment."""
        found: list[datetime] = []
        for local in self._steps(min(self._local(moment)), "get_next"):
            found += (named for named in self._instants(local) if named > moment)
            if found and self._is_plain(local):
                return min(found)
        raise AssertionError("croniter ends by an error alone")

    def until(self, moment: datetime) -> datetime:
        """Return the last instant that is not after that moment."""
        around, found = self._local(moment), list[datetime]()
        start = max(around).replace(microsecond=0) + SECOND
        for local in self._steps(start, "get_prev"):
            found += (named for named in self._instants(local) if named <= moment)
            if found and local <= min(around) and self._is_plain(local):
                return max(found)
        raise AssertionError("croniter ends by an error alone")

    def _instants(self, local: datetime) -> set[datetime]:
        """Return the instants of a step: one, unless the expression includes every hour."""
        both = _both(local, self.zone)
        if _parsed(self.expression).expanded[1] == ["*"]:
            return {t for t in both if t.astimezone(self.zone).replace(tzinfo=None) == local}
        return {max(both)}

    def _is_plain(self, local: datetime) -> bool:
        """Return whether the local time occurs exactly once: instants there follow local order."""
        return len(_both(local, self.zone)) == 1

    def _local(self, moment: datetime) -> list[datetime]:
        """Return the moment's local times, by the offsets of the days around it."""
        near = (moment - DAY, moment, moment + DAY)
        offsets = [at.astimezone(self.zone).utcoffset() or timedelta() for at in near]
        return [moment.astimezone(UTC).replace(tzinfo=None) + offset for offset in offsets]

    def _steps(self, start: datetime, way: str) -> Iterator[datetime]:
        """Yield the expression's local times from there, forward or back."""
        steps = copy(_parsed(self.expression))  # to parse takes longer than to step
        steps.set_current(start)
        step = getattr(steps, way)
        while True:
            yield step(datetime)


class IntervalError(UsageError):
    """An error about bounds that the schedule's grid does not have."""


class Schedule(Model):
    """A cron expression's data intervals, or `assets`: a run whenever inputs change."""

    PRESETS: ClassVar[tuple[str, ...]] = ("@hourly", "@daily", "@weekly", "@monthly", "@yearly")

    expression: str
    timezone: str = "UTC"

    @model_validator(mode="after")
    def _has_a_grid(self) -> Self:
        zone(self.timezone)
        if self.has_intervals and not self._is_cron:
            raise ValueError(self.refusal(self.expression))
        return self

    @classmethod
    def refusal(cls, found: object) -> str:
        """Return the message for something that is not a schedule."""
        what = "it is empty" if found is None else f"{found!r} is not a schedule"
        return f"{what}; write a cron expression, {', '.join(cls.PRESETS)} or assets"

    @property
    def _is_cron(self) -> bool:
        if self.expression not in self.PRESETS and len(self.expression.split()) != 5:
            return False
        try:
            croniter(self.expression, EPOCH).get_next()
        except (CroniterError, ValueError, KeyError, AttributeError):
            return False
        return True

    @property
    def has_intervals(self) -> bool:
        """True if its runs have data intervals."""
        return self.expression != "assets"

    def next_after(self, moment: datetime) -> datetime:
        """Return the first instant of the grid after that moment."""
        return self._cron.after(in_utc(moment))

    def last_until(self, moment: datetime) -> datetime:
        """Return the last instant of the grid that is not after that moment."""
        return self._cron.until(in_utc(moment))

    def is_on_grid(self, moment: datetime) -> bool:
        """Return whether an interval starts there."""
        return self.last_until(moment) == in_utc(moment)

    def nearest(self, moment: datetime) -> tuple[datetime, datetime]:
        """Return the grid's instants before and after a moment; the moment twice if on the grid."""
        before = self.last_until(moment)
        return (before, before) if before == in_utc(moment) else (before, self.next_after(moment))

    def containing(self, moment: datetime) -> Interval:
        start = self.last_until(moment)
        return Interval(start, self.next_after(start))

    def intervals(self, start: datetime, end: datetime) -> list[Interval]:
        """Cut [start, end) along the grid; refuse a bound off the grid, naming the nearest two."""
        for bound in (start, end):
            if off := self.off_grid(bound):
                raise off
        return list(_cut(self._cron, Interval(start, end)))

    def off_grid(self, bound: datetime) -> IntervalError | None:
        """Return why no interval begins or ends there, and the nearest bounds; None if one does."""
        try:
            before, after = (show(at, self.timezone) for at in self.nearest(bound))
        except (OverflowError, CroniterError):
            return IntervalError(
                f"{show(bound)} is at the end of the calendar: no interval begins there",
                hint="give a year from 2 to 9990",
            )
        if before == after:
            return None
        schedule = f"{self.expression!r} ({self.timezone})"
        return IntervalError(
            f"{show(bound, self.timezone)} is not a bound of the schedule {schedule}",
            hint=f"the nearest are {before} and {after}",
        )

    def onward(self, moment: datetime) -> Iterator[Interval]:
        """Yield the intervals from the one that contains the moment on, without end."""
        return _onward(self._cron, in_utc(moment))

    @property
    def _cron(self) -> Cron:
        if not self.has_intervals:
            raise IntervalError(
                "a pipeline with the schedule 'assets' has no data intervals",
                hint="give it a cron expression or a preset such as '@daily'",
            )
        return Cron(self.expression, zone(self.timezone))


def _onward(cron: Cron, moment: datetime) -> Iterator[Interval]:
    start = cron.until(moment)
    while True:
        following = cron.after(start)
        yield Interval(start, following)
        start = following


@lru_cache(maxsize=8)
def _cut(cron: Cron, whole: Interval) -> tuple[Interval, ...]:
    """Return the intervals between two of the grid's instants; all sources of a pipeline ask."""
    found = list[Interval]()
    for interval in _onward(cron, whole.start):
        found.append(interval)
        if interval.end >= whole.end:
            break
    return tuple(found)


@dataclass(frozen=True)
class Span:
    """Consecutive intervals without a gap: their bounds, shown in a zone, and their number."""

    interval: Interval
    count: int
    timezone: str = "UTC"

    def __str__(self) -> str:
        noun = "interval" if self.count == 1 else "intervals"
        return f"{self.interval.format(self.timezone)} ({self.count:,} {noun})"


def spans(intervals: Iterable[Interval], timezone: str = "UTC") -> list[Span]:
    """Merge the intervals into spans, in order."""
    found: list[Span] = []
    for interval in sorted(intervals):
        if found and interval.start <= found[-1].interval.end:
            last = found.pop()
            end = max(last.interval.end, interval.end)
            found.append(Span(Interval(last.interval.start, end), last.count + 1, timezone))
        else:
            found.append(Span(interval, 1, timezone))
    return found


def newest(found: Sequence[Span]) -> str:
    """Return the last SHOWN of ordered spans as text, and the number of earlier intervals."""
    others = sum(span.count for span in found[:-SHOWN])
    nouns = "interval" if others == 1 else "intervals"
    earlier = [f"{others:,} earlier {nouns}"] if others else []
    return ", ".join([*earlier, *map(str, found[-SHOWN:])])


def gaps(delivered: Iterable[Interval], schedule: Schedule) -> list[Span]:
    """Return the grid's missing intervals between the first and the last delivered one."""
    known = [span.interval for span in spans(delivered)]
    missing: list[Interval] = []
    for before, after in pairwise(known):  # their bounds may be of an earlier grid
        _, first = schedule.nearest(before.end)
        last = schedule.last_until(after.start)
        missing += schedule.intervals(first, last) if first < last else []
    return spans(missing, schedule.timezone)


@dataclass(frozen=True)
class Duration:
    """`90 days`: a length of time; months and years follow the calendar."""

    text: str

    def __post_init__(self) -> None:
        match = DURATION.fullmatch(self.text.lower())
        if not match or match[2] not in UNITS | CALENDAR_UNITS:
            guess = near(match[2], UNITS | CALENDAR_UNITS) if match else ""
            hint = f"; did you mean '{match[1]} {guess}s'?" if match and guess else ";"
            raise ValueError(
                f"{self.text!r} is not a duration{hint} write e.g. '30 minutes' or '1 month'"
            )
        if int(match[1]) == 0:
            raise ValueError(f"{self.text!r}: a duration must be longer than zero")

    @property
    def count(self) -> int:
        """Number of units."""
        return int(self.text.split()[0])

    @property
    def unit(self) -> str:
        """The unit, singular."""
        return self.text.lower().split()[1].removesuffix("s")

    @property
    def months(self) -> int:
        """Length in calendar months; 0 if the length is fixed."""
        unit = CALENDAR_UNITS.get(self.unit, 0)
        return self.count * unit

    @property
    def timedelta(self) -> Length:
        """Length, if it is fixed."""
        if self.months:
            raise ValueError(f"{self.text!r} has no fixed length")
        return self.count * UNITS[self.unit]

    @property
    def longest(self) -> Length:
        """Greatest possible length, for comparing durations."""
        return timedelta(days=31 * self.months) if self.months else self.timedelta

    @property
    def shortest(self) -> Length:
        """Least possible length: 28 days for a month, 58 for two."""
        return timedelta(days=30 * self.months - 2) if self.months else self.timedelta

    def may_exceed(self, other: "Duration") -> bool:
        """Return whether it is longer than the other, at least in some months."""
        if self.months and other.months:
            return self.months > other.months
        return self.longest > other.shortest

    @property
    def sql(self) -> str:
        return f"INTERVAL {self.count} {self.unit.upper()}"

    def after(self, moment: datetime) -> datetime:
        """Return the moment that much later; the month's last day if the day does not exist."""
        return add_months(moment, self.months) if self.months else moment + self.timedelta

    def before(self, moment: datetime) -> datetime:
        """Return the moment that much earlier."""
        return add_months(moment, -self.months) if self.months else moment - self.timedelta

    def __str__(self) -> str:
        return self.text

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.json_or_python_schema(
            json_schema=core_schema.no_info_after_validator_function(
                cls, core_schema.str_schema(pattern=WRITTEN_DURATION)
            ),
            python_schema=core_schema.no_info_plain_validator_function(cls._read),
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )

    @classmethod
    def _read(cls, data: Any) -> Self:
        return data if isinstance(data, cls) else cls(str(data))


def add_months(moment: datetime, months: int) -> datetime:
    """Add months as Spark does: 31 January plus a month is the last day of February."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    day = min(moment.day, monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)


def instant(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant in UTC that a time without a zone means there."""
    return max(_both(local, zone))


def _both(local: datetime, zone: ZoneInfo) -> set[datetime]:
    """Return the readings of a local time: two if it occurs twice or is skipped."""
    return {local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}


@lru_cache(maxsize=256)
def _parsed(expression: str) -> croniter:
    return croniter(expression)
