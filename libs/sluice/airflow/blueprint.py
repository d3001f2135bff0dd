"""Blueprints of DAGs: the part of the configuration that Airflow needs, as plain data.

Airflow reads a DAG file every few seconds, each time in a nearly empty process. Loading the
configuration would parse and check all of it. So what DAGs need is kept as JSON in Airflow's own
folder. It is valid until a file of the configuration, an environment variable that it names, or a
file of this package changes.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from sluice.airflow.projects import loaded
from sluice.airflow.task_graph import Task, TaskGraph, proof, sweep, task_graph, upkeep
from sluice.declare.environment_folders import of_base
from sluice.declare.kept import KeptResult, Noting, kept_in
from sluice.errors import ConfigError

if TYPE_CHECKING:
    from sluice.declare.project import Pipeline, Project
    from sluice.declare.settings import AirflowSettings


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
    kept = kept_in(_folder(), config)
    return _kept(kept) or _made(config, kept)


def check(config: Path) -> None:
    """Raise ConfigError with every mistake of that folder."""
    found = site(config)
    if found.mistakes:
        raise ConfigError(found.mistakes, hint=found.hint)


def _folder() -> Path:
    return Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser() / "sluice"


def _kept(kept: KeptResult) -> Site | None:
    with suppress(ValueError):
        content = kept.read(of_base())
        return TypeAdapter(Site).validate_json(content) if content else None
    return None


def _made(config: Path, kept: KeptResult) -> Site:
    environ = Noting(of_base())  # DAGs are the same in every environment
    made = _site(*loaded(config, environ))
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
