"""Pending work of a task, found without Spark: a task with nothing new starts no JVM.

Each table gives the reason why it may be skipped, in words for the task's log. In doubt the task
runs: the job checks again, and commits nothing if nothing is new.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from sluice.airflow.commands import PipelineRun
from sluice.airflow.task_graph import Task, TaskKind
from sluice.declare.project import Project
from sluice.delta.log.opened import exists
from sluice.delta.places.lake_layout import layout
from sluice.errors import SluiceError
from sluice.read.pending import news_of, nothing_new, pending


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
