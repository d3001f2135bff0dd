"""The configuration, read once per state of its files.

The scheduler reads it before it forks its workers, so tasks find it read; a file that changed since
is seen by its size and time, and everything is read again. A pipeline with mistakes is left out, so
that the others run on; `check` raises what is wrong with it.
"""

import os
from functools import lru_cache
from pathlib import Path

from sluice.errors import ConfigError
from sluice.specs.project import Project
from sluice.specs.sound import load_sound

Stamp = tuple[str, int, int]


def config_folder(dag_file: str) -> Path:
    """The folder that `SLUICE_CONFIG` names, else `config` beside the folder of DAG files."""
    chosen = os.environ.get("SLUICE_CONFIG")
    return Path(chosen).absolute() if chosen else Path(dag_file).absolute().parents[1] / "config"


def airflows_config() -> Path:
    """That folder, told by Airflow's settings where no DAG file is at hand."""
    from airflow.configuration import conf

    return config_folder(str(Path(conf.get("core", "dags_folder")) / "any.py"))


def project(config: Path) -> Project:
    """The project declared in that folder, as its files are now."""
    return _loaded(config, _stamps(config))[0]


def check(config: Path) -> None:
    """Raises ConfigError with every mistake of that folder."""
    error = _loaded(config, _stamps(config))[1]
    if error:
        raise error.with_traceback(None)


def _stamps(config: Path) -> tuple[Stamp, ...]:
    files = ((file, file.stat()) for file in sorted(config.rglob("*.y*ml")))
    return tuple((str(file), stat.st_size, stat.st_mtime_ns) for file, stat in files)


@lru_cache(maxsize=4)
def _loaded(config: Path, stamps: tuple[Stamp, ...]) -> tuple[Project, ConfigError | None]:  # noqa: ARG001
    return load_sound(config)
