"""Pipelines' schedules in Airflow: data intervals, deadlines, assets, and addresses; and alerts.

`Grid` is Airflow's timetable of data intervals on the grid of `sluice run`. Airflow's own differs
only where clocks are set: it leaves out bounds in the skipped hour, and fails at a change of half
an hour.

A deadline: a scheduled run is late if it has not ended some time after it was due. A run on a
schedule, or by a change of assets, is due as soon as it exists. So a pipeline that catches up is
late only if it makes no progress. Backfills and manual runs have no deadline, because a person
watches those.

Tables are Airflow's assets. A pipeline with `schedule: assets` runs when a table of another
pipeline changes. So a task records an event only for the tables that its run changed.

Alerts end the task's log. They also go to `airflow: {webhook: ...}` as JSON whose `text` chat
services show. A task alerts only when it has failed for good, not at each retry.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen
from zoneinfo import ZoneInfo

from airflow.configuration import conf
from airflow.sdk import Asset, AssetAny
from airflow.timetables.interval import CronDataIntervalTimetable
from pendulum import DateTime, instance

from sluice.airflow.blueprint import Policy, Task, TaskKind, airflows_config, base
from sluice.airflow.jobs import BOUNDS, JobOutcome, TaskContext, is_preview, requested_run
from sluice.errors import ExitCode, SluiceError
from sluice.language.names import declared_id

try:
    from airflow.sdk.definitions.callback import SyncCallback
    from airflow.sdk.definitions.deadline import BaseDeadlineReference, DeadlineAlert
except ImportError:  # Airflow 3.1: `blueprint.check` names pipelines that have a deadline
    SyncCallback, BaseDeadlineReference, DeadlineAlert = None, object, None


if TYPE_CHECKING:
    from sluice.language.interval import Cron


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
        from sluice.language.interval import Cron  # DAG files do without it

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


PATIENCE = 10.0
KILLED = "its task was killed; by the system, this is often for want of memory"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Alert:
    """One alert."""

    pipeline: str
    run: str
    what: str
    why: str
    next: str
    tables: tuple[str, ...] = ()
    url: str = ""

    @property
    def text(self) -> str:
        """The message for people."""
        return f"{self.what}\nwhy: {self.why}\nnext: {self.next}"

    def send(self, webhook: str) -> None:
        """Log the alert, and post it to the webhook, if there is one."""
        log.error(self.text)
        if webhook:
            body = json.dumps({"text": self.text, **asdict(self)}).encode()
            request = Request(webhook, body, {"Content-Type": "application/json"})
            with urlopen(request, timeout=PATIENCE):
                log.info("sent to the webhook")


def alert_of_failure(context: TaskContext) -> None:
    """Alert that a task has failed for good, except in a preview, whose user sees the failure."""
    if is_preview(context):
        return
    alert = of_failure(context)
    alert.send(_webhook(context["task"].config, alert.pipeline))


def late(context: TaskContext, limit: str) -> None:
    """Alert that a run has not ended by its deadline."""
    alert = of_delay(context["dag_run"], limit)
    alert.send(_webhook(airflows_config(), alert.pipeline))


def of_failure(context: TaskContext) -> Alert:
    """Return the alert of a failed task."""
    task: Task = context["task"].work
    error, instance = context.get("exception"), context.get("ti")
    outcome = getattr(error, "outcome", None) or JobOutcome(error=str(error or KILLED))
    tables = outcome.failed or task.tables
    run = context["run_id"]
    return Alert(
        task.pipeline,
        run,
        what=f"{', '.join(tables)} failed in {task.pipeline}, {run}, task {task.id}",
        why=outcome.error,
        next=_next(task, outcome, tables, context),
        tables=tables,
        url=str(getattr(instance, "log_url", "")),
    )


def of_delay(run: Mapping[str, Any], limit: str) -> Alert:
    """Return the alert of a run, as Airflow's API describes it, that has missed its deadline."""
    pipeline, name = run["dag_id"], run["dag_run_id"]
    what = f"{pipeline} is late: {name} has not ended {limit} after it was due"
    why = f"the run is {run.get('state') or 'not running'} since {run.get('start_date') or 'never'}"
    step = f"look at its running task in the grid; `sluice status` shows what {pipeline} lacks"
    return Alert(pipeline, name, what, why, step)


def _webhook(config: Path, pipeline: str) -> str:
    declared = base(config).pipelines.get(pipeline)
    return declared.airflow.webhook if declared else ""


def _next(task: Task, outcome: JobOutcome, tables: tuple[str, ...], context: TaskContext) -> str:
    answers, command = context.get("params") or {}, _command(task, tables, context)
    ways = ["clear the task with what follows it"]
    if has_bounds := any(answers.get(name) for name in BOUNDS):  # a run keeps its form's values
        ways.append("trigger another run with other bounds")
    if command and not (has_bounds and outcome.exit_code == ExitCode.CONFIGURATION):
        ways.append(f"run `{command}`")
    again = ", or ".join(ways)
    return f"{outcome.hint}; then {again}" if outcome.hint else again


def _command(task: Task, tables: tuple[str, ...], context: TaskContext) -> str:
    """Return a shell command with the same effect; empty if there is none."""
    if task.kind is not TaskKind.INGEST:
        return f"sluice {task.kind.value} {' '.join(tables)}"
    with suppress(SluiceError):
        run = requested_run(context, task.timezone)
        if run.is_about_news:
            return f"sluice run {task.pipeline} --changed"
        if run.interval:
            return f"sluice run {task.pipeline} {run.interval.options(task.timezone)}"
    return ""
