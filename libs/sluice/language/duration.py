"""Lengths of time as people write them: `90 days`, `1 month`."""

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

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
        """Spark SQL literal."""
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
