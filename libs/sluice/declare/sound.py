"""The sound part of a configuration: a mistake in one pipeline doesn't affect the others."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from os import environ as process_environ
from pathlib import Path

from sluice.declare.project import Project, load
from sluice.errors import ConfigError

PLACE = re.compile(r"^(?P<file>.+?):\d+: ")


def load_sound(
    config_dir: Path | str = "config", *, environ: Mapping[str, str] = process_environ
) -> tuple[Project, ConfigError | None]:
    """Load the project without its broken pipelines; return it with their mistakes.

    A pipeline that reads from a broken one is left out too. Raises ConfigError if the mistakes are
    in `sluice.yaml`, or no pipeline is left.
    """
    left_out: set[str] = set()
    mistakes: tuple[str, ...] = ()
    while True:
        try:
            project = load(config_dir, environ=environ, without=left_out)
        except ConfigError as error:
            mistakes = mistakes or error.mistakes
            broken = _files(error) - left_out
            left_out |= broken
            if not broken or not _is_sound(Path(config_dir), left_out):
                raise ConfigError(mistakes) from None
        else:
            reported = _error(mistakes, left_out)
            graph = replace(project.graph, left_out=reported)
            return project.model_copy(update={"graph": graph}), reported


def _files(error: ConfigError) -> set[str]:
    places = (PLACE.match(mistake) for mistake in error.mistakes)
    return {place["file"] for place in places if place}


def _is_sound(folder: Path, left_out: Collection[str]) -> bool:
    """Return whether the project's own file is sound, and any pipeline's."""
    pipelines = {path.as_posix() for path in (folder / "pipelines").glob("*.y*ml")}
    return (folder / "sluice.yaml").as_posix() not in left_out and bool(pipelines - {*left_out})


def _error(mistakes: tuple[str, ...], left_out: Collection[str]) -> ConfigError | None:
    if not mistakes:
        return None
    files = ", ".join(sorted(Path(file).name for file in left_out))
    return ConfigError(mistakes, hint=f"until this is fixed, these are left out: {files}")
