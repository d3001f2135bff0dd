"""Airflow's timetable of data intervals, on the grid that `sluice run` cuts time along.

Airflow's own is the same but where clocks are set: there it leaves out bounds that fall into the
hour that is skipped, and does not get past a change of half an hour.
"""

from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from airflow.timetables.interval import CronDataIntervalTimetable
from pendulum import DateTime, instance

if TYPE_CHECKING:
    from sluice.specs.wall_clock import Cron

INSTANT = DateTime.resolution


class Grid(CronDataIntervalTimetable):  # type: ignore[misc]
    """Data intervals of a cron expression in a zone; Airflow finds it as the plugin's."""

    def _get_next(self, current: DateTime) -> DateTime:
        return instance(self._cron.after(current))

    def _get_prev(self, current: DateTime) -> DateTime:
        return instance(self._cron.until(current - INSTANT))

    @property
    def _cron(self) -> "Cron":
        from sluice.specs.wall_clock import Cron  # a DAG file does without

        return Cron(self._expression, ZoneInfo(str(self._timezone.name)))
