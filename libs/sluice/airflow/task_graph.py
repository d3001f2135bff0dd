"""Task graph of a pipeline as plain data: its tasks and their order, without Airflow.

`tasks: table` gives every stored table a task, in the order of the graph. `tasks: pipeline` makes
two applications: one for delivered tables, one for the views over them. The second may process the
deliveries of several runs at once, so later ones find nothing to do. `tasks: auto` gives each table
a task where tasks are cheap, with Spark Connect. Either way `quality` comes last. A table read from
another pipeline is a trigger here, not a task.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.declare.graph import Graph
    from sluice.declare.project import Pipeline, Project
    from sluice.declare.table import Table


class TaskKind(StrEnum):
    """Kind of a task's work; the first word of its id."""

    INGEST = "ingest"
    LOAD = "load"
    ADVANCE = "advance"
    QUALITY = "quality"
    MAINTAIN = "maintain"
    SWEEP = "sweep"
    VERIFY = "verify"


@dataclass(frozen=True)
class Task:
    """One task: its kind, the tables that it writes and reads, the tasks that it follows.

    `timezone`: the pipeline's, for bounds given by a person. `previews`: the tables of the run that
    this task previews; the first task of a pipeline does so for all.
    """

    id: str
    kind: TaskKind
    pipeline: str
    tables: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    upstream: tuple[str, ...] = ()
    timezone: str = "UTC"
    previews: tuple[str, ...] = ()


@dataclass(frozen=True)
class TaskGraph:
    """Tasks of a pipeline, each after those that it follows, and the tables that trigger it."""

    pipeline: str
    tasks: tuple[Task, ...]
    triggers: tuple[str, ...]

    @property
    def tables(self) -> tuple[str, ...]:
        """Tables that its tasks write."""
        return tuple(table for task in self.tasks for table in task.tables)


def task_graph(project: "Project", pipeline: "Pipeline") -> TaskGraph:
    """Return the tasks of a run of that pipeline."""
    tables = [table for table in project.graph.pipeline(pipeline.name) if table.is_stored]
    by_table = _is_by_table(project, pipeline)
    work = (
        [_task([t], project.graph) for t in tables] if by_table else _halves(tables, project.graph)
    )
    own = {table: task.id for task in work for table in task.tables}
    zone = pipeline.timezone
    work = [replace(task, upstream=_above(task, own), timezone=zone) for task in work]
    work[:1] = [replace(first, previews=tuple(own)) for first in work[:1]]
    quality = Task("quality", TaskKind.QUALITY, pipeline.name, upstream=_last(work))
    read = dict.fromkeys(table for task in work for table in task.reads)
    places = (project.resolve(t.spec.announced) for t in tables if t.spec.announced)
    triggers = (*(t for t in read if t not in own), *dict.fromkeys(map(_address, places)))
    return TaskGraph(pipeline.name, (*work, quality), triggers)


def _address(place: str) -> str:
    """Return the name of the asset of a table; Airflow keeps a slash at the end of a name."""
    return (place if "://" in place else f"file://{place}").rstrip("/")


def upkeep(project: "Project", pipeline: "Pipeline") -> Task:
    """Return the task that maintains a pipeline's tables; it changes no row."""
    tables = tuple(t.id for t in project.graph.pipeline(pipeline.name) if t.is_stored)
    return Task(f"maintain.{pipeline.name}", TaskKind.MAINTAIN, pipeline.name, tables)


def sweep(project: "Project", pipeline: "Pipeline") -> Task | None:
    """Return the task that checks expectations of whole tables; None if there are none."""
    tables = (t for t in project.graph.pipeline(pipeline.name) if t.is_stored)
    expected = {t.id: t.expect for t in tables}
    judged = tuple(name for name, of in expected.items() if any(e.over == "table" for e in of))
    return Task(f"sweep.{pipeline.name}", TaskKind.SWEEP, pipeline.name, judged) if judged else None


def proof(project: "Project", pipeline: "Pipeline") -> Task:
    """Return the task that compares a pipeline's views with a recompute; it writes nothing."""
    views = tuple(t.id for t in project.graph.pipeline(pipeline.name) if t.is_view)
    return Task(f"verify.{pipeline.name}", TaskKind.VERIFY, pipeline.name, views)


def _is_by_table(project: "Project", pipeline: "Pipeline") -> bool:
    asked = pipeline.airflow.tasks
    return asked == "table" or (asked == "auto" and project.spark.engine == "connect")


def _halves(tables: Sequence["Table"], graph: "Graph") -> list[Task]:
    views = [table for table in tables if table.is_view]
    outside = [table for table in tables if not table.is_view]
    return [
        replace(_task(half, graph), id=_kind(half[0]).value) for half in (outside, views) if half
    ]


def _task(tables: Sequence["Table"], graph: "Graph") -> Task:
    """Return a task that writes these tables; its id names the first."""
    first, written = tables[0], tuple(table.id for table in tables)
    read = dict.fromkeys(
        r for table in tables for r in graph.stored(table.inputs) if r not in written
    )
    kind = _kind(first)
    return Task(f"{kind.value}.{first.name}", kind, first.pipeline, written, tuple(read))


def _kind(table: "Table") -> TaskKind:
    return TaskKind(table.spec.STEP)


def _above(task: Task, own: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(own[table] for table in task.reads if table in own))


def _last(work: Iterable[Task]) -> tuple[str, ...]:
    followed = {above for task in work for above in task.upstream}
    return tuple(task.id for task in work if task.id not in followed)
