"""Pipelines' schedules in Airflow: data intervals, deadlines, assets, and addresses in its UI.

`Grid` is Airflow's timetable of data intervals on the grid of `sluice run`. Airflow's own differs
only where clocks are set: it leaves out bounds in the skipped hour, and fails at a change of half
an hour.

A deadline: a scheduled run is late if it has not ended some time after it was due. A run on a
schedule, or by a change of assets, is due as soon as it exists. So a pipeline that catches up is
late only if it makes no progress. Backfills and manual runs have no deadline, because a person
watches those.

Tables are Airflow's assets. A pipeline with `schedule: assets` runs when a table of another
pipeline changes. So a task records an event only for the tables that its run changed.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from airflow.configuration import conf
from airflow.sdk import Asset, AssetAny
from airflow.timetables.interval import CronDataIntervalTimetable
from pendulum import DateTime, instance

from sluice.airflow.alerts import late
from sluice.airflow.blueprint import Policy
from sluice.language.names import declared_id

try:
    from airflow.sdk.definitions.callback import SyncCallback
    from airflow.sdk.definitions.deadline import BaseDeadlineReference, DeadlineAlert
except ImportError:  # Airflow 3.1: `blueprint.check` names pipelines that have a deadline
    SyncCallback, BaseDeadlineReference, DeadlineAlert = None, object, None

if TYPE_CHECKING:
    from sluice.language.wall_clock import Cron

PREFIX = "/sluice"


def address(page: str) -> str:
    """Return the absolute path of a page, for a link."""
    root = urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")
    return f"{root}{PREFIX}{page}"


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


WATCHED = frozenset({"scheduled", "asset_triggered"})


class Due(BaseDeadlineReference):  # type: ignore[misc]
    """Moment at which a watched run was created."""

    required_kwargs = frozenset({"dag_id", "run_id"})

    def _evaluate_with(self, *, session: Any, dag_id: str, run_id: str) -> datetime | None:
        from airflow.models import DagRun  # only the scheduler asks

        query = session.query(DagRun.run_type).filter_by(dag_id=dag_id, run_id=run_id)
        return datetime.now(UTC) if str(query.scalar()) in WATCHED else None


def deadline(policy: Policy) -> "DeadlineAlert | None":
    """Return the deadline of a pipeline with that policy, as an alert."""
    if policy.deadline is None or SyncCallback is None:
        return None
    alert = SyncCallback(late, {"limit": policy.deadline_text})
    return DeadlineAlert(Due(), policy.deadline, alert, name="late")


GROUP = "sluice"
IN_EVENT = (
    "version",
    "batch",
    "rows_in",
    "inserted",
    "updated",
    "deleted",
    "quarantined",
    "refills",
)


def asset(table: str) -> Asset:
    """Return the asset of the table with that id."""
    return Asset(name=table, uri=f"sluice://{table.replace('.', '/', 1)}", group=GROUP)


def whenever(triggers: Iterable[str]) -> AssetAny:
    """Return the Airflow schedule of a pipeline that runs when any of those tables changes.

    Tables that others write are given by their addresses; their writers record the events.
    """
    return AssetAny(*(Asset(uri=one) if "://" in one else asset(one) for one in triggers))


def event_fields(report: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fields of the event of a change.

    `others` includes the reports of internal tables: rows are quarantined where they are delivered,
    which may be such a table.
    """
    changed = sum(int(report.get(count) or 0) for count in ("inserted", "updated", "deleted"))
    behind = (r for r in others if declared_id(r["table"]) == report["table"])
    quarantined = sum(int(r.get("quarantined") or 0) for r in behind)
    known = {name: report[name] for name in IN_EVENT if name in report}
    return known | {"quarantined": quarantined, "rows_out": changed}
