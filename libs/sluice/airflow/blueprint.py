"""Blueprints of DAGs: the part of the configuration that Airflow needs, as plain data.

Airflow reads a DAG file every few seconds, each time in a nearly empty process. Loading the
configuration would parse and check all of it. So what DAGs need is kept as JSON in Airflow's own
folder. It is valid until a file of the configuration, an environment variable that it names, or a
file of this package changes.

A task graph has a pipeline's tasks and their order, without Airflow. `tasks: table` gives every
stored table a task, in the order of the graph. `tasks: pipeline` makes two applications: one for
delivered tables, one for the views over them. The second may process the deliveries of several runs
at once, so later ones find nothing to do. `tasks: auto` gives each table a task where tasks are
cheap, with Spark Connect. Either way `quality` comes last. A table read from another pipeline is a
trigger here, not a task.

The configuration itself is read once per state of its files. The scheduler reads it before it forks
its workers, so tasks find it already read. A changed file shows by its size and time, and
everything is read again. A pipeline with mistakes is left out, so that the others run. The loader
is imported only when used, because DAG files do without it.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from sluice.declare.environment_folders import VARIABLE, of_base
from sluice.declare.project_cache import SOURCES, KeptResult, Noting, Stamp, kept_in, stamps
from sluice.errors import ConfigError

if TYPE_CHECKING:
    from sluice.declare.project import Pipeline, Project
    from sluice.declare.settings import AirflowSettings
    from sluice.declare.table import Graph, Table


def config_folder(dag_file: str) -> Path:
    """Return the folder that `SLUICE_CONFIG` names, else `config` beside the DAG files' folder."""
    chosen = os.environ.get("SLUICE_CONFIG")
    return Path(chosen).absolute() if chosen else Path(dag_file).absolute().parents[1] / "config"


def airflows_config() -> Path:
    """Return the configuration's folder by Airflow's settings, for callers without a DAG file."""
    from airflow.configuration import conf

    return config_folder(str(Path(conf.get("core", "dags_folder")) / "any.py"))


def project(config: Path) -> "Project":
    """Return the project that the folder's current files declare, in the chosen environment.

    The lake is read by its connection, as in tasks.
    """
    chosen = os.environ.get(VARIABLE)
    return _within(config, _state(config), chosen) if chosen else base(config)


def base(config: Path) -> "Project":
    """Return the folder's project, whatever `SLUICE_ENV` says; needs no access to the lake."""
    return _loaded(config, _state(config))[0]


def mistakes(config: Path) -> ConfigError | None:
    """Return every mistake in the folder's current files."""
    return _loaded(config, _state(config))[1]


def pipeline_files(config: Path) -> dict[str, str]:
    """Return the pipeline that each file names, by its path in mistakes; '' if it names none.

    Files that can't be read as YAML count, too.
    """
    from sluice.declare.building import find_files, named_pipeline

    return {path.as_posix(): named_pipeline(path) for path in find_files(config)[1:]}


def load_for_airflow(
    config: Path, environ: Mapping[str, str]
) -> tuple["Project", ConfigError | None]:
    """Return the project with these variables, and the mistakes in what was left out."""
    from sluice.declare.project import load_sound

    return load_sound(config, environ=environ)


_folders: dict[Path, set[str]] = {}  # of specs that a configuration names, as last loaded


def _state(config: Path) -> tuple[Stamp, ...]:
    """Return the state of all files that make up a configuration."""
    below = (stamps(Path(folder), SOURCES) for folder in sorted(_folders.get(config, ())))
    return tuple(chain(stamps(config), *below))


@lru_cache(maxsize=4)
def _loaded(config: Path, state: tuple[Stamp, ...]) -> tuple["Project", ConfigError | None]:  # noqa: ARG001
    environ = Noting(of_base())
    found = load_for_airflow(config, environ)
    _folders[config] = environ.folders
    return found


@lru_cache(maxsize=4)
def _within(config: Path, state: tuple[Stamp, ...], name: str) -> "Project":
    from sluice.airflow.connections import lent

    found = _loaded(config, state)[0]
    with lent(found, ()):
        return found.within(name)


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
    asked = pipeline.airflow.tasks
    by_table = asked == "table" or (asked == "auto" and project.spark.engine == "connect")
    work = (
        [_task([t], project.graph) for t in tables] if by_table else _halves(tables, project.graph)
    )
    own = {table: task.id for task in work for table in task.tables}
    zone = pipeline.timezone
    above = {t.id: tuple(dict.fromkeys(own[r] for r in t.reads if r in own)) for t in work}
    work = [replace(task, upstream=above[task.id], timezone=zone) for task in work]
    work[:1] = [replace(first, previews=tuple(own)) for first in work[:1]]
    followed = {task for tasks in above.values() for task in tasks}
    last = tuple(task for task in above if task not in followed)
    quality = Task("quality", TaskKind.QUALITY, pipeline.name, upstream=last)
    read = dict.fromkeys(table for task in work for table in task.reads)
    places = (project.resolve(t.spec.announced) for t in tables if t.spec.announced)
    uris = (place if "://" in place else f"file://{place}" for place in places)
    outside = dict.fromkeys(uri.rstrip("/") for uri in uris)  # Airflow keeps a slash at the end
    triggers = (*(t for t in read if t not in own), *outside)
    return TaskGraph(pipeline.name, (*work, quality), triggers)


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


def _halves(tables: Sequence["Table"], graph: "Graph") -> list[Task]:
    views = [table for table in tables if table.is_view]
    outside = [table for table in tables if not table.is_view]
    return [
        replace(_task(half, graph), id=_kind(half[0]).value) for half in (outside, views) if half
    ]


def _task(tables: Sequence["Table"], graph: "Graph") -> Task:
    first, written = tables[0], tuple(table.id for table in tables)
    read = dict.fromkeys(
        r for table in tables for r in graph.stored(table.inputs) if r not in written
    )
    kind = _kind(first)
    return Task(f"{kind.value}.{first.name}", kind, first.pipeline, written, tuple(read))


def _kind(table: "Table") -> TaskKind:
    return TaskKind(table.spec.STEP)


@dataclass(frozen=True)
class Policy:
    """Settings for running tasks, and for when a run is late. `python`: of jobs, if any other."""

    owner: str
    python: str
    tags: tuple[str, ...]
    retries: int
    retry_delay: timedelta
    deadline: timedelta | None
    deadline_text: str


@dataclass(frozen=True)
class Blueprint:
    """One pipeline; `schedule` is a cron expression, or None if it runs when assets change."""

    name: str
    description: str
    schedule: str | None
    timezone: str
    start_date: datetime | None
    end_date: datetime | None
    catchup: bool
    policy: Policy
    graph: TaskGraph
    upkeep: Task
    sweep: Task | None
    proof: Task


@dataclass(frozen=True)
class Site:
    """All sound pipelines and the others' mistakes. `remote`: a Spark Connect server, if any."""

    remote: str
    policy: Policy
    pipelines: tuple[Blueprint, ...]
    mistakes: tuple[str, ...] = ()
    hint: str = ""


def site(config: Path) -> Site:
    """Return the site that the folder's current files declare."""
    home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()
    kept = kept_in(home / "sluice", config)
    return _read_kept(kept) or _make_site(config, kept)


def check(config: Path) -> None:
    """Raise ConfigError with every mistake of that folder, and what this Airflow can't do."""
    found = site(config)
    if found.mistakes:
        raise ConfigError(found.mistakes, hint=found.hint)
    unwatched = [pipeline.name for pipeline in found.pipelines if pipeline.policy.deadline]
    if unwatched and not find_spec("airflow.sdk.definitions.callback"):
        raise ConfigError(
            [f"{', '.join(unwatched)}: `airflow: {{deadline: …}}` reports nothing in this Airflow"],
            hint="install Airflow 3.2 or newer, or remove the setting",
        )


def _read_kept(kept: KeptResult) -> Site | None:
    with suppress(ValueError):
        content = kept.read(of_base())
        return TypeAdapter(Site).validate_json(content) if content else None
    return None


def _make_site(config: Path, kept: KeptResult) -> Site:
    environ = Noting(of_base())  # DAGs are the same in every environment
    made = _site(*load_for_airflow(config, environ))
    if ";" not in made.remote:  # parameters, such as a token
        kept.write(TypeAdapter(Site).dump_json(made), environ)
    return made


def _site(project: "Project", error: ConfigError | None) -> Site:
    spark = project.spark
    return Site(
        spark.remote if spark.engine == "connect" else "",
        _policy(project.airflow),
        tuple(_blueprint(project, pipeline) for pipeline in project.pipelines.values()),
        error.mistakes if error else (),
        error.hint if error else "",
    )


def _blueprint(project: "Project", pipeline: "Pipeline") -> Blueprint:
    schedule = pipeline.schedule
    return Blueprint(
        pipeline.name,
        pipeline.description,
        schedule.expression if schedule.has_intervals else None,
        schedule.timezone,
        pipeline.start_date,
        pipeline.end_date,
        pipeline.catchup,
        _policy(pipeline.airflow),
        task_graph(project, pipeline),
        upkeep(project, pipeline),
        sweep(project, pipeline),
        proof(project, pipeline),
    )


def _policy(settings: "AirflowSettings") -> Policy:
    limit = settings.deadline
    return Policy(
        settings.owner,
        settings.python,
        settings.tags,
        settings.retries,
        settings.retry_delay.timedelta,
        limit.timedelta if limit else None,
        limit.text if limit else "",
    )
