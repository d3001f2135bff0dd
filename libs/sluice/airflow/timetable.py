"""Airflow's timetable of data intervals, on the grid of `sluice run`.

Airflow's own differs only where clocks are set: it leaves out bounds in the skipped hour. It also
fails at a change of half an hour.
"""

from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from airflow.timetables.interval import CronDataIntervalTimetable
from pendulum import DateTime, instance

if TYPE_CHECKING:
    from sluice.language.wall_clock import Cron

INSTANT = DateTime.resolution


class Grid(CronDataIntervalTimetable):  # type: ignore[misc]
    """Data intervals of a cron expression in a zone; Airflow finds it through the plugin."""

    def _get_next(self, current: DateTime) -> DateTime:
        return instance(self._cron.after(current))

    def _get_prev(self, current: DateTime) -> DateTime:
        return instance(self._cron.until(current - INSTANT))

    @property
    def _cron(self) -> "Cron":
        from sluice.language.wall_clock import Cron  # DAG files do without it

        return Cron(self._expression, ZoneInfo(str(self._timezone.name)))
