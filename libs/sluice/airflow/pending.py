"""Pending work of a task, found without Spark: a task with nothing new starts no JVM.

Each table gives the reason why it may be skipped, in words for the task's log. In doubt the task
runs: the job checks again, and commits nothing if nothing is new.

Dimension versions of a run, the same for all of its tasks and all of their attempts.

A dimension of the run's own pipeline has the version that its load left, even if there was nothing
to load. A dimension of another pipeline has the version that it had when the run started.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sluice.airflow.blueprint import Task, TaskKind
from sluice.airflow.jobs import PipelineRun
from sluice.declare.project import Project
from sluice.delta.log.opened import exists
from sluice.delta.log.position import head
from sluice.delta.places.lake_layout import layout
from sluice.errors import SluiceError
from sluice.read.commits import back_from
from sluice.read.pending import news_of, nothing_new, pending

VERSIONS = "versions"  # the XCom that passes them on
LOADING = (TaskKind.INGEST, TaskKind.LOAD)


def left_by(
    project: Project, task: Task, reports: Iterable[Mapping[str, Any]] = ()
) -> dict[str, int]:
    """Return the versions of a task's dimensions after it, whether or not it had to load them."""
    if task.kind not in LOADING:
        return {}
    mine = [name for name in task.tables if project.graph.tables[name].is_loaded]
    loaded = {r["table"]: r["version"] for r in reports if r["table"] in mine}
    found = {name: loaded.get(name) or _newest(project, name) for name in mine}
    return {name: version for name, version in found.items() if version is not None}


def at_start(project: Project, task: Task, started: datetime | None) -> dict[str, int]:
    """Return the versions of other pipelines' dimensions that a task reads, as of that moment."""
    tables = (project.graph.tables[name] for name in task.reads)
    foreign = [t.id for t in tables if t.is_loaded and t.pipeline != task.pipeline]
    found = {name: _as_of(project, name, started) for name in foreign if started}
    return {name: version for name, version in found.items() if version is not None}


def _newest(project: Project, name: str) -> int | None:
    at = head(layout(project).uri(name))
    return at.version if at else None


def _as_of(project: Project, name: str, moment: datetime) -> int | None:
    newest = _newest(project, name)
    if newest is None:
        return None
    commits = back_from(layout(project).uri(name), newest)
    return next((c.version for c in commits if c.at <= moment), None)


@dataclass(frozen=True)
class Pending:
    """Tables of a task that have something to do, or the `reason` why none has."""

    tables: tuple[str, ...]
    reason: str


def pending_of(project: Project, task: Task, run: PipelineRun) -> Pending:
    """Return what the task has to do in that run.

    If one view of the task has something to do, all of them have.
    """
    if task.kind in (TaskKind.MAINTAIN, TaskKind.SWEEP):
        return Pending(task.tables, "")
    if task.kind is TaskKind.VERIFY:
        built = tuple(name for name in task.tables if exists(layout(project).uri(name)))
        return Pending(built, "none of its views has been built yet")
    chosen = tuple(filter(run.is_about, task.tables))
    if not chosen:
        return Pending((), f"this run is about {', '.join(run.only)} alone")
    reasons = {name: _reason(project, name, run) for name in chosen}
    tables = tuple(name for name, reason in reasons.items() if reason is None)
    if tables and task.kind is TaskKind.ADVANCE:
        tables = chosen
    known = [reason for reason in reasons.values() if reason]
    return Pending(tables, known[0] if len(known) == 1 else "nothing is new in any of its tables")


def _reason(project: Project, name: str, run: PipelineRun) -> str | None:
    table = project.graph.tables[name]
    if run.full_refresh and (run.interval or not table.spec.is_by_interval):
        return None
    try:
        if not run.is_about_news or not table.spec.is_by_interval:
            return nothing_new(project, table, run.interval)
        if news_of(project, table, datetime.now(UTC)) or pending(project, table):
            return None
    except SluiceError:
        return None  # the job meets it, too, and reports it in full
    return f"no interval of {name} is due, and the files of none have changed"
