"""The configuration, read once per state of its files.

The scheduler reads it before it forks its workers, so tasks find it already read. A changed file
shows by its size and time, and everything is read again. A pipeline with mistakes is left out, so
that the others run. The loader is imported only when used, because DAG files do without it.
"""

import os
from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.declare.environment_folders import VARIABLE, of_base
from sluice.declare.project_cache import SOURCES, Noting, Stamp, stamps
from sluice.errors import ConfigError

if TYPE_CHECKING:
    from sluice.declare.project import Project


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
