"""A pipeline as tasks: plain data that says what runs and after what, without Airflow.

`tasks: table` gives every stored table a task, in the order of the graph; `tasks: pipeline` gives
one application that does them all. Either way `quality` comes last. What is read from another
pipeline is no task here but a trigger.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from sluice.specs.graph import Graph
from sluice.specs.project import Pipeline, Project
from sluice.specs.table import Table


class TaskKind(StrEnum):
    """What a task does; the first word of its id."""

    INGEST = "ingest"
    LOAD = "load"
    ADVANCE = "advance"
    RUN = "run"
    QUALITY = "quality"


@dataclass(frozen=True)
class Task:
    """One task: what it does, the tables that it writes, the ids of the tasks that it follows."""

    kind: TaskKind
    pipeline: str
    tables: tuple[str, ...]
    upstream: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """`advance.top_products`; `run` and `quality` are one for the pipeline."""
        if self.kind in (TaskKind.RUN, TaskKind.QUALITY):
            return self.kind.value
        return f"{self.kind.value}.{self.tables[0].partition('.')[2]}"


@dataclass(frozen=True)
class TaskGraph:
    """The tasks of a pipeline, each after those that it follows, and the tables that trigger it."""

    pipeline: str
    tasks: tuple[Task, ...]
    triggers: tuple[str, ...]


def task_graph(project: Project, pipeline: Pipeline) -> TaskGraph:
    """What a run of that pipeline does."""
    tables = [table for table in project.graph.pipeline(pipeline.name) if table.is_stored]
    if pipeline.airflow.tasks == "pipeline":
        everything = tuple(table.id for table in tables)
        work = [Task(TaskKind.RUN, pipeline.name, everything)]
    else:
        work = [_task(table, project.graph) for table in tables]
    quality = Task(TaskKind.QUALITY, pipeline.name, (), _last(work))
    return TaskGraph(pipeline.name, (*work, quality), tuple(_foreign(tables, project.graph)))


def _last(work: Iterable[Task]) -> tuple[str, ...]:
    followed = {above for task in work for above in task.upstream}
    return tuple(task.id for task in work if task.id not in followed)


def _task(table: Table, graph: Graph) -> Task:
    own = (read for read in _read(table, graph) if read.pipeline == table.pipeline)
    return Task(_kind(table), table.pipeline, (table.id,), tuple(_id(read) for read in own))


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
