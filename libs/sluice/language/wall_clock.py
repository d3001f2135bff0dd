"""Wall clocks: the instants that local times and cron expressions mean where clocks change.

A local time that occurs twice means its second instant. A skipped local time means one that is
later by as much as the clocks moved forward. An expression that includes every hour follows elapsed
time: it means every instant whose local time matches. Both rules are Airflow's. They also hold
where Airflow's arithmetic loses its own grid: at half-hour clock changes, or with many bounds in
the skipped hour.
"""

import re
from calendar import monthrange
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Self
from zoneinfo import ZoneInfo

from croniter import croniter
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

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


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)


def instant(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant in UTC that a time without a zone means there."""
    return max(_both(local, zone))


def _both(local: datetime, zone: ZoneInfo) -> set[datetime]:
    """Return the readings of a local time: two if it occurs twice or is skipped."""
    return {local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}


@lru_cache(maxsize=256)
def _parsed(expression: str) -> croniter:
    return croniter(expression)


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
