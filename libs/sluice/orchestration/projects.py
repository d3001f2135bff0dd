"""The configuration, read once per state of its files.

The scheduler reads it before it forks its workers, so tasks find it read; a file that changed since
is seen by its size and time, and everything is read again. A pipeline with mistakes is left out, so
that the others run on. What reads it is imported only then: DAG files do without.
"""

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.errors import ConfigError

if TYPE_CHECKING:
    from sluice.specs.project import Project

Stamp = tuple[str, int, int]


def config_folder(dag_file: str) -> Path:
    """The folder that `SLUICE_CONFIG` names, else `config` beside the folder of DAG files."""
    chosen = os.environ.get("SLUICE_CONFIG")
    return Path(chosen).absolute() if chosen else Path(dag_file).absolute().parents[1] / "config"


def airflows_config() -> Path:
    """That folder, told by Airflow's settings where no DAG file is at hand."""
    from airflow.configuration import conf

    return config_folder(str(Path(conf.get("core", "dags_folder")) / "any.py"))


def project(config: Path) -> "Project":
    """The project declared in that folder, as its files are now."""
    return _loaded(config, stamps(config))[0]


def mistakes(config: Path) -> ConfigError | None:
    """Every mistake of that folder, as its files are now."""
    return _loaded(config, stamps(config))[1]


def stamps(folder: Path, pattern: str = "*.y*ml") -> tuple[Stamp, ...]:
    """The state of the files below a folder, without reading them."""
    files = ((file, file.stat()) for file in sorted(folder.rglob(pattern)))
    return tuple((str(file), stat.st_size, stat.st_mtime_ns) for file, stat in files)


def loaded(config: Path, environ: Mapping[str, str]) -> tuple["Project", ConfigError | None]:
    """The project as that environment has it, and the mistakes of what is left out."""
    from sluice.specs.sound import load_sound

    return load_sound(config, environ=environ)


@lru_cache(maxsize=4)
def _loaded(config: Path, state: tuple[Stamp, ...]) -> tuple["Project", ConfigError | None]:  # noqa: ARG001
    return loaded(config, os.environ)
