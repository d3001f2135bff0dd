"""Wall clocks: the instants that local times and cron expressions mean where clocks change.

A local time that occurs twice means its second instant. A skipped local time means one that is
later by as much as the clocks moved forward. An expression that includes every hour follows elapsed
time: it means every instant whose local time matches. Both rules are Airflow's. They also hold
where Airflow's arithmetic loses its own grid: at half-hour clock changes, or with many bounds in
the skipped hour.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from croniter import croniter

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)


def instant(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant in UTC that a time without a zone means there."""
    return max(_both(local, zone))


def _both(local: datetime, zone: ZoneInfo) -> set[datetime]:
    """Return the readings of a local time: two if it occurs twice or is skipped."""
    return {local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}


@lru_cache(maxsize=256)
def _names_every_hour(expression: str) -> bool:
    hours: list[object] = croniter(expression).expanded[1]
    return hours == ["*"]


@dataclass(frozen=True)
class Cron:
    """Instants of a cron expression in a zone. A step costs a few of croniter's."""

    expression: str
    zone: ZoneInfo

    def after(self, moment: datetime) -> datetime:
        """Return the first instant after that moment."""
        found: list[datetime] = []
        for local in self._steps(min(self._local(moment)), "get_next"):
            found += (named for named in self._named(local) if named > moment)
            if found and self._is_plain(local):
                return min(found)
        raise AssertionError("croniter ends by an error alone")

    def until(self, moment: datetime) -> datetime:
        """Return the last instant that is not after that moment."""
        around, found = self._local(moment), list[datetime]()
        start = max(around).replace(microsecond=0) + SECOND
        for local in self._steps(start, "get_prev"):
            found += (named for named in self._named(local) if named <= moment)
            if found and local <= min(around) and self._is_plain(local):
                return max(found)
        raise AssertionError("croniter ends by an error alone")

    def _named(self, local: datetime) -> set[datetime]:
        """Return the instants of a step: one, unless the expression includes every hour."""
        both = _both(local, self.zone)
        if _names_every_hour(self.expression):
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
        step = getattr(croniter(self.expression, start), way)
        while True:
            yield step(datetime)
