"""Time: instants in UTC, durations, data intervals, and the grid that a schedule lays over time.

Times without a zone are UTC, everywhere. A schedule's intervals are half open, touch each other, and are cut in
the schedule's own zone, so that a day of a daylight saving change has 23 or 25 hours.
"""

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, ClassVar, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import CroniterBadCronError, CroniterBadDateError, croniter
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from sluice.errors import UsageError
from sluice.specs.model import Model
from sluice.specs.names import near


class IntervalError(UsageError):
    """Bounds that the schedule's grid does not have."""


def parse_time(text: str | date | datetime) -> datetime:
    """An ISO 8601 date or time as an instant; UTC where it names no zone."""
    if isinstance(text, datetime):
        return in_utc(text)
    if isinstance(text, date):
        return datetime.combine(text, time(), UTC)
    try:
        return in_utc(datetime.fromisoformat(text.strip()))
    except ValueError:
        raise IntervalError(
            f"{text!r} is not a time", hint="write 2017-01-31 or 2017-01-31T08:30:00+01:00"
        ) from None


def in_utc(moment: datetime) -> datetime:
    """The same instant in UTC; a time without a zone is taken as UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def zone(name: str) -> ZoneInfo:
    """The zone of that IANA name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"unknown timezone {name!r}; write a name such as Europe/Berlin") from None


@dataclass(frozen=True, order=True)
class Interval:
    """[start, end) in UTC."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", in_utc(self.start))
        object.__setattr__(self, "end", in_utc(self.end))
        if self.start >= self.end:
            raise IntervalError(f"interval start {show(self.start)} is not before {show(self.end)}")

    @classmethod
    def parse(cls, start: str, end: str) -> Self:
        """The interval between two times as text."""
        return cls(parse_time(start), parse_time(end))

    def __contains__(self, moment: datetime) -> bool:
        return self.start <= in_utc(moment) < self.end

    def overlaps(self, other: "Interval") -> bool:
        """Whether they share an instant."""
        return self.start < other.end and other.start < self.end

    def covers(self, other: "Interval") -> bool:
        """Whether the other lies wholly inside this one."""
        return self.start <= other.start and other.end <= self.end

    def __str__(self) -> str:
        return f"[{show(self.start)}, {show(self.end)})"


def show(moment: datetime) -> str:
    """A time as people write it: only the date at midnight UTC."""
    moment = in_utc(moment)
    return moment.date().isoformat() if moment.time() == time() else moment.isoformat()


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


@dataclass(frozen=True)
class Duration:
    """`90 days`: a length of time; months and years follow the calendar."""

    text: str

    def __post_init__(self) -> None:
        match = DURATION.fullmatch(self.text.lower())
        if not match or match[2] not in UNITS | CALENDAR_UNITS:
            guess = near(match[2], UNITS | CALENDAR_UNITS) if match else ""
            hint = f"; did you mean '{match[1]} {guess}s'?" if match and guess else ""
            raise ValueError(
                f"{self.text!r} is not a duration{hint}; write e.g. '30 minutes', '1 day' or '1 month'"
            )
        if int(match[1]) == 0:
            raise ValueError(f"{self.text!r}: a duration must be longer than nothing")

    @property
    def count(self) -> int:
        """How many units."""
        return int(self.text.split()[0])

    @property
    def unit(self) -> str:
        """The unit, singular."""
        return self.text.lower().split()[1].removesuffix("s")

    @property
    def months(self) -> int:
        """Its length in calendar months; 0 where the length is fixed."""
        unit = CALENDAR_UNITS.get(self.unit, 0)
        return self.count * unit

    @property
    def timedelta(self) -> Length:
        """Its length, for a fixed one."""
        if self.months:
            raise ValueError(f"{self.text!r} has no fixed length")
        return self.count * UNITS[self.unit]

    @property
    def longest(self) -> Length:
        """The longest that it can be: for comparing durations."""
        return timedelta(days=31 * self.months) if self.months else self.timedelta

    @property
    def sql(self) -> str:
        """As a Spark SQL literal."""
        return f"INTERVAL {self.count} {self.unit.upper()}"

    def after(self, moment: datetime) -> datetime:
        """The moment that much later; the last day of a month where the day does not exist."""
        return add_months(moment, self.months) if self.months else moment + self.timedelta

    def before(self, moment: datetime) -> datetime:
        """The moment that much earlier."""
        return add_months(moment, -self.months) if self.months else moment - self.timedelta

    def __str__(self) -> str:
        return self.text

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        parse = core_schema.no_info_after_validator_function(cls, core_schema.str_schema())
        return core_schema.json_or_python_schema(
            json_schema=parse,
            python_schema=core_schema.union_schema(
                [core_schema.is_instance_schema(cls), parse], mode="left_to_right"
            ),
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )


def add_months(moment: datetime, months: int) -> datetime:
    """Calendar arithmetic as Spark's: 31 January plus a month is the last of February."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    day = min(moment.day, monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)


class Schedule(Model):
    """When a pipeline runs: a cron expression's data intervals, or `assets`: whenever inputs change."""

    PRESETS: ClassVar[tuple[str, ...]] = ("@hourly", "@daily", "@weekly", "@monthly", "@yearly")

    expression: str
    timezone: str = "UTC"

    def model_post_init(self, context: Any, /) -> None:
        zone(self.timezone)
        if not self.has_intervals or self.expression in self.PRESETS:
            return
        try:
            five = len(self.expression.split()) == 5
            croniter(self.expression)
        except (CroniterBadCronError, CroniterBadDateError, ValueError, KeyError, AttributeError):
            five = False
        if not five:
            presets = ", ".join(self.PRESETS)
            raise ValueError(
                f"{self.expression!r} is no schedule; write a cron expression, {presets} or assets"
            )

    @property
    def has_intervals(self) -> bool:
        """Whether its runs have data intervals."""
        return self.expression != "assets"

    def next_after(self, moment: datetime) -> datetime:
        """The first instant of the grid after that moment."""
        return self._cron(moment).get_next(datetime).astimezone(UTC)

    def last_until(self, moment: datetime) -> datetime:
        """The last instant of the grid that is not after that moment."""
        second = in_utc(moment).replace(microsecond=0) + timedelta(seconds=1)
        return self._cron(second).get_prev(datetime).astimezone(UTC)

    def is_on_grid(self, moment: datetime) -> bool:
        """Whether an interval starts there."""
        return self.last_until(moment) == in_utc(moment)

    def nearest(self, moment: datetime) -> tuple[datetime, datetime]:
        """The grid's instants around that moment; itself twice, where it is one."""
        before = self.last_until(moment)
        return (before, before) if before == in_utc(moment) else (before, self.next_after(moment))

    def containing(self, moment: datetime) -> Interval:
        """The interval that the moment lies in."""
        start = self.last_until(moment)
        return Interval(start, self.next_after(start))

    def intervals(self, start: datetime, end: datetime) -> list[Interval]:
        """[start, end) cut along the grid; a bound off the grid is refused with the nearest two."""
        for bound in (start, end):
            self._check_bound(bound)
        whole = Interval(start, end)
        return list(self._walk(whole))

    def _walk(self, whole: Interval) -> Iterator[Interval]:
        start = whole.start
        while start < whole.end:
            following = self.next_after(start)
            yield Interval(start, following)
            start = following

    def _check_bound(self, bound: datetime) -> None:
        before, after = self.nearest(bound)
        if before != after:
            raise IntervalError(
                f"{show(bound)} is not a bound of the schedule {self.expression!r} ({self.timezone})",
                hint=f"the nearest are {show(before)} and {show(after)}",
            )

    def _cron(self, moment: datetime) -> croniter:
        if not self.has_intervals:
            raise IntervalError(
                "a pipeline with the schedule 'assets' has no data intervals",
                hint="give it a cron expression or a preset such as '@daily'",
            )
        return croniter(self.expression, in_utc(moment).astimezone(zone(self.timezone)))
