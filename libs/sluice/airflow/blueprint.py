"""Blueprints of DAGs: the part of the configuration that Airflow needs, as plain data.

Airflow reads a DAG file every few seconds, each time in a process that has imported little. Loading
the configuration would parse and check all of it. So what DAGs need is kept as JSON in Airflow's
own folder. It is valid until a file of the configuration, an environment variable that it names, or
a file of this package changes.
"""

import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from sluice.airflow.graph import Task, TaskGraph, proof, sweep, task_graph, upkeep
from sluice.airflow.projects import loaded, stamps
from sluice.errors import ConfigError

if TYPE_CHECKING:
    from sluice.declare.project import Pipeline, Project
    from sluice.declare.settings import AirflowSettings

PACKAGE = Path(__file__).parents[1]


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
    files = (*stamps(config), *stamps(PACKAGE, "*.py"))
    state = hashlib.sha256(repr((str(config), files)).encode()).hexdigest()
    kept = _folder() / f"{hashlib.sha256(str(config).encode()).hexdigest()[:16]}.json"
    return _kept(kept, state) or _made(config, kept, state)


def check(config: Path) -> None:
    """Raise ConfigError with every mistake of that folder."""
    found = site(config)
    if found.mistakes:
        raise ConfigError(found.mistakes, hint=found.hint)


@dataclass(frozen=True)
class _Kept:
    """A site and the state that it belongs to; variables, possibly secret, are kept as digests."""

    state: str
    salt: str
    environ: dict[str, str | None]
    site: Site


@dataclass(frozen=True)
class _Noting(Mapping[str, str]):
    """The environment; notes which variables were read."""

    asked: set[str] = field(default_factory=set)

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return os.environ[name]

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)


def _folder() -> Path:
    return Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser() / "sluice"


def _kept(file: Path, state: str) -> Site | None:
    with suppress(OSError, ValueError):
        found = TypeAdapter(_Kept).validate_json(file.read_bytes())
        is_same = found.environ == _digests(found.environ, found.salt)
        return found.site if found.state == state and is_same else None
    return None


def _digests(names: Iterable[str], salt: str) -> dict[str, str | None]:
    """Return digests of those environment variables' current values, which they don't reveal."""
    values = ((name, os.environ.get(name)) for name in names)
    key = bytes.fromhex(salt)
    return {n: v and hashlib.blake2b(v.encode(), key=key).hexdigest() for n, v in values}


def _made(config: Path, file: Path, state: str) -> Site:
    environ = _Noting()
    made = _site(*loaded(config, environ))
    salt = secrets.token_hex()
    text = TypeAdapter(_Kept).dump_json(_Kept(state, salt, _digests(environ.asked, salt), made))
    with suppress(OSError):  # an unwritable folder only costs time
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(f".{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_bytes(text)
        draft.replace(file)
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
