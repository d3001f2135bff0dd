"""Dimension versions of a run, the same for all of its tasks and all of their attempts.

A dimension of the run's own pipeline has the version that its load left, even if there was nothing
to load. A dimension of another pipeline has the version that it had when the run started.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sluice.airflow.task_graph import Task, TaskKind
from sluice.declare.project import Project
from sluice.delta.log.position import head
from sluice.delta.places.lake_layout import layout
from sluice.read.stored.commits import back_from

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
