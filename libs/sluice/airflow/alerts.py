"""Alerts for the person on call: the table, the reason, and the next command.

Alerts end the task's log. They also go to `airflow: {webhook: ...}` as JSON whose `text` chat
services show. A task alerts only when it has failed for good, not at each retry.
"""

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from sluice.airflow.blueprint import Task, TaskKind, airflows_config, base
from sluice.airflow.jobs import BOUNDS, JobOutcome, TaskContext, is_preview, requested_run
from sluice.errors import ExitCode, SluiceError

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
