"""A pipeline as tasks: plain data that says what runs and after what, without Airflow.

`tasks: table` gives every stored table a task, in the order of the graph. `tasks: pipeline` makes
two applications of them: what comes from outside, and the views over it. The second may do in one
go what several runs brought, and those behind it find nothing left. Left to itself (`auto`), a
pipeline has a task per table where a task is cheap, with Spark Connect. Either way `quality` comes
last. What is read from another pipeline is no task here but a trigger.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from sluice.specs.graph import Graph
from sluice.specs.project import Pipeline, Project
from sluice.specs.table import Table


class TaskKind(StrEnum):
    """What a task does; the first word of its id."""

    INGEST = "ingest"
    LOAD = "load"
    ADVANCE = "advance"
    QUALITY = "quality"


@dataclass(frozen=True)
class Task:
    """One task: what it does, the tables that it writes, the ids of the tasks that it follows."""

    id: str
    kind: TaskKind
    pipeline: str
    tables: tuple[str, ...] = ()
    upstream: tuple[str, ...] = ()


@dataclass(frozen=True)
class TaskGraph:
    """The tasks of a pipeline, each after those that it follows, and the tables that trigger it."""

    pipeline: str
    tasks: tuple[Task, ...]
    triggers: tuple[str, ...]


def task_graph(project: Project, pipeline: Pipeline) -> TaskGraph:
    """What a run of that pipeline does."""
    tables = [table for table in project.graph.pipeline(pipeline.name) if table.is_stored]
    if _is_by_table(project, pipeline):
        work = [_task(table, project.graph) for table in tables]
    else:
        work = _halves(tables)
    quality = Task("quality", TaskKind.QUALITY, pipeline.name, upstream=_last(work))
    return TaskGraph(pipeline.name, (*work, quality), tuple(_foreign(tables, project.graph)))


def _is_by_table(project: Project, pipeline: Pipeline) -> bool:
    asked = pipeline.airflow.tasks
    return asked == "table" or (asked == "auto" and project.spark.engine == "connect")


def _halves(tables: Iterable[Table]) -> list[Task]:
    views = [table for table in tables if table.is_view]
    outside = [table for table in tables if not table.is_view]
    work = [_half(TaskKind.INGEST, outside, ()), _half(TaskKind.ADVANCE, views, ("ingest",))]
    present = {task.id for task in work if task}
    return [replace(task, upstream=tuple(present & {*task.upstream})) for task in work if task]


def _half(kind: TaskKind, tables: Sequence[Table], upstream: tuple[str, ...]) -> Task | None:
    if not tables:
        return None
    ids = tuple(table.id for table in tables)
    return Task(kind.value, kind, tables[0].pipeline, ids, upstream)


def _last(work: Iterable[Task]) -> tuple[str, ...]:
    followed = {above for task in work for above in task.upstream}
    return tuple(task.id for task in work if task.id not in followed)


def _task(table: Table, graph: Graph) -> Task:
    own = (read for read in _read(table, graph) if read.pipeline == table.pipeline)
    upstream = tuple(_id(read) for read in own)
    return Task(_id(table), _kind(table), table.pipeline, (table.id,), upstream)


def _kind(table: Table) -> TaskKind:
    return {"source": TaskKind.INGEST, "dimension": TaskKind.LOAD}.get(table.kind, TaskKind.ADVANCE)


def _id(table: Table) -> str:
    return f"{_kind(table).value}.{table.name}"


def _foreign(tables: Iterable[Table], graph: Graph) -> Iterator[str]:
    found = (read for table in tables for read in _read(table, graph))
    yield from dict.fromkeys(read.id for read in found if read.pipeline not in _pipelines(tables))


def _pipelines(tables: Iterable[Table]) -> set[str]:
    return {table.pipeline for table in tables}


def _read(table: Table, graph: Graph) -> Iterator[Table]:
    """The stored tables that a table is made from: a dimension view stands for its dimensions."""
    for name in table.inputs:
        read = graph.tables[name]
        yield from (read,) if read.is_stored else _read(read, graph)
