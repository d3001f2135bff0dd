"""Whether a task has anything to do, told without Spark: what has nothing new starts no JVM.

Of each table it is asked why it may be skipped, in words for the task's log. A doubt is no reason:
the job looks again, and commits nothing if there was nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sluice.errors import SluiceError
from sluice.orchestration.commands import Run
from sluice.orchestration.graph import Task, TaskKind
from sluice.serving.status import pending
from sluice.specs.definition import definition_of_deliveries
from sluice.specs.dimension import Dimension
from sluice.specs.project import Project
from sluice.specs.source import Source
from sluice.specs.table import Table
from sluice.storage import intervals, landing
from sluice.storage.lake import exists, layout
from sluice.storage.loaded import note
from sluice.storage.position import head

Reason = str | None
FILES = ("csv", "json", "parquet")
INTERVALS, DELIVERIES = "intervals", "deliveries"


@dataclass(frozen=True)
class Pending:
    """The tables of a task that have something to do, or `reason`: why none has."""

    tables: tuple[str, ...]
    reason: str


def pending_of(project: Project, task: Task, run: Run) -> Pending:
    """What that task has to do in that run.

    Of several views that follow each other, the later have something to do if an earlier has.
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
    told = [reason for reason in reasons.values() if reason]
    return Pending(tables, told[0] if len(told) == 1 else "nothing is new in any of its tables")


def _reason(project: Project, name: str, run: Run) -> Reason:
    table = project.graph.tables[name]
    if run.full_refresh and (run.interval or not _is_by_interval(table)):
        return None
    try:
        return WAYS.get(table.kind, _view)(project, table, run)
    except SluiceError:
        return None  # the job meets it too, and tells it in full


def _source(project: Project, table: Table, run: Run) -> Reason:
    spec = table.spec
    assert isinstance(spec, Source)
    if not _is_by_interval(table):
        return None
    if run.interval is None:
        return "this run has no data interval, so there is nothing to ingest"
    if spec.format not in FILES or _is_interrupted(project, table):
        return None
    pipeline = project.pipelines[table.pipeline]
    known = intervals.deliveries(layout(project).uri(table.id, INTERVALS))
    kept_in = DELIVERIES if spec.key or spec.change else ""
    intervals.check_kept(table.id, known, head(layout(project).uri(table.id, kept_in)))
    delivered = {d.interval: d.files for d in known}
    for interval in pipeline.schedule.intervals(run.interval.start, run.interval.end):
        path = project.resolve(landing.interval_path(spec.path, interval, pipeline.timezone))
        if delivered.get(interval) != _fingerprint(path, table):
            return None
    shown = run.interval.shown(pipeline.timezone)
    return f"{table.id} holds {shown} already, and its files are the same"


def _is_by_interval(table: Table) -> bool:
    return table.kind == "source" and table.spec.delivery == "interval"  # type: ignore[union-attr]


def _is_interrupted(project: Project, table: Table) -> bool:
    """Whether a delivery was recorded that its table, kept apart, may not have yet."""
    keeps = table.spec.key or table.spec.change  # type: ignore[union-attr]
    return not exists(layout(project).uri(table.id)) or bool(keeps and pending(project, table))


def _dimension(project: Project, table: Table, run: Run) -> Reason:  # noqa: ARG001
    spec = table.spec
    assert isinstance(spec, Dimension)
    lake = layout(project)
    if spec.format not in FILES or not exists(lake.uri(table.id)):
        return None
    files = landing.delivered(project.resolve(spec.path), table.id)
    noted = note(spec, files, definition_of_deliveries(table))
    known = intervals.deliveries(lake.uri(table.id, INTERVALS))
    intervals.check_kept(table.id, known, head(lake.uri(table.id)))
    if any(d.files == noted for d in known):
        return f"{table.id} is loaded, and its files are the same"
    return None


def _view(project: Project, table: Table, run: Run) -> Reason:  # noqa: ARG001
    return None if pending(project, table) else f"{table.id} reflects all of its inputs"


def _fingerprint(path: str, table: Table) -> str:
    return landing.fingerprint(landing.delivered(path, table.id), definition_of_deliveries(table))


WAYS: Mapping[str, Callable[[Project, Table, Run], Reason]] = {
    "source": _source,
    "dimension": _dimension,
}
