"""Wall clocks: the instants that local times and cron expressions mean where clocks are set.

A local time that comes twice means its second instant, and one that is skipped means as much later
as the clocks were set forward. An expression that names every hour is about time that passes: it
means every instant whose local time it names. Both are Airflow's rules, held to where Airflow's
arithmetic loses its own grid: clocks set by half an hour, many bounds in the hour that is skipped.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from croniter import croniter

DAY, SECOND = timedelta(days=1), timedelta(seconds=1)


def instant(local: datetime, zone: ZoneInfo) -> datetime:
    """The instant in UTC that a time without a zone means there."""
    return max(_both(local, zone))


def _both(local: datetime, zone: ZoneInfo) -> set[datetime]:
    """The readings of a local time: two where it comes twice or is skipped."""
    return {local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}


@lru_cache(maxsize=256)
def _names_every_hour(expression: str) -> bool:
    hours: list[object] = croniter(expression).expanded[1]
    return hours == ["*"]


@dataclass(frozen=True)
class Cron:
    """The instants of a cron expression in a zone. Cost of a step: a few of croniter's."""

    expression: str
    zone: ZoneInfo

    def after(self, moment: datetime) -> datetime:
        """The first instant after that moment."""
        found: list[datetime] = []
        for local in self._steps(min(self._local(moment)), "get_next"):
            found += (named for named in self._named(local) if named > moment)
            if found and self._is_plain(local):
                return min(found)
        raise AssertionError("croniter ends by an error alone")

    def until(self, moment: datetime) -> datetime:
        """The last instant that is not after that moment."""
        around, found = self._local(moment), list[datetime]()
        start = max(around).replace(microsecond=0) + SECOND
        for local in self._steps(start, "get_prev"):
            found += (named for named in self._named(local) if named <= moment)
            if found and local <= min(around) and self._is_plain(local):
                return max(found)
        raise AssertionError("croniter ends by an error alone")

    def _named(self, local: datetime) -> set[datetime]:
        """The instants that a step means: one, but for an expression that names every hour."""
        both = _both(local, self.zone)
        if _names_every_hour(self.expression):
            return {t for t in both if t.astimezone(self.zone).replace(tzinfo=None) == local}
        return {max(both)}

    def _is_plain(self, local: datetime) -> bool:
        """Whether the local time comes exactly once: instants follow each other as times."""
        return len(_both(local, self.zone)) == 1

    def _local(self, moment: datetime) -> list[datetime]:
        """The moment by the clocks of the days around it."""
        near = (moment - DAY, moment, moment + DAY)
        offsets = [at.astimezone(self.zone).utcoffset() or timedelta() for at in near]
        return [moment.astimezone(UTC).replace(tzinfo=None) + offset for offset in offsets]

    def _steps(self, start: datetime, way: str) -> Iterator[datetime]:
        """The expression's local times from there, on or back."""
        step = getattr(croniter(self.expression, start), way)
        while True:
            yield step(datetime)
