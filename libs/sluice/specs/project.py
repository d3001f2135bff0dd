"""The whole configuration: `config/sluice.yaml` and one file per pipeline in `config/pipelines/`."""

from collections.abc import Mapping
from datetime import datetime
from os import environ as process_environ
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from sluice.specs.building import build
from sluice.specs.dimension import Dimension, DimensionView
from sluice.specs.graph import Graph
from sluice.specs.interval import Schedule, parse_time
from sluice.specs.mistakes import Mistakes
from sluice.specs.model import Model
from sluice.specs.names import Name
from sluice.specs.reading import Reading, find_files, read_file, read_tables
from sluice.specs.settings import AirflowSettings, QualitySettings, SparkSettings
from sluice.specs.source import Source
from sluice.specs.table import ViewSpec

__all__ = ["AirflowSettings", "Pipeline", "Project", "QualitySettings", "SparkSettings", "load"]


class Pipeline(Model):
    """One pipeline: its schedule and its tables."""

    name: Name = Field(alias="pipeline")
    description: str = ""
    schedule: Schedule
    start_date: Annotated[datetime, BeforeValidator(parse_time)] | None = None
    catchup: bool = False
    timezone: str = "UTC"
    sources: dict[str, Source] = Field(default_factory=dict)
    dimensions: dict[str, Dimension | DimensionView] = Field(default_factory=dict)
    views: dict[str, ViewSpec] = Field(default_factory=dict)
    airflow: AirflowSettings = AirflowSettings()

    @model_validator(mode="before")
    @classmethod
    def _schedule_in_its_zone(cls, data: Any) -> Any:
        schedule = data.get("schedule")
        if not isinstance(schedule, str):
            return data
        return {**data, "schedule": {"expression": schedule, "timezone": data.get("timezone", "UTC")}}


class Project(Model):
    """Everything that is declared, checked; `root` is where relative paths start."""

    lake: str = "lake"
    spark: SparkSettings = SparkSettings()
    quality: QualitySettings = QualitySettings()
    airflow: AirflowSettings = AirflowSettings()
    modules: tuple[str, ...] = ()
    pipelines: dict[str, Pipeline] = Field(default_factory=dict)
    root: Path = Path()
    graph: Graph = Graph()

    def resolve(self, path: str) -> str:
        """A declared path from the project's root; one with a scheme, or an absolute one, as it is."""
        return path if "://" in path else str(self.root / path)


def load(config_dir: Path | str = "config", *, environ: Mapping[str, str] = process_environ) -> Project:
    """The project declared in that folder; ConfigError with every mistake."""
    folder = Path(config_dir)
    mistakes = Mistakes()
    readings = [read_file(path, environ, mistakes) for path in find_files(folder)]
    settings, files = readings[0], [reading for reading in readings[1:] if reading]
    files = [read_tables(reading, mistakes) for reading in files]
    pipelines = [_pipeline(reading, settings, mistakes) for reading in files]
    declared = {d.id: d for reading in files for d in reading.declared}
    graph = build(declared, mistakes)
    project = _project(settings, mistakes)
    mistakes.raise_any()
    root = folder.resolve().parent
    named = {pipeline.name: pipeline for pipeline in pipelines if pipeline}
    assert project is not None
    whole = project.model_copy(update={"pipelines": named, "root": root, "graph": graph})
    return whole.model_copy(update={"lake": whole.resolve(project.lake)})


def _pipeline(reading: Reading, settings: Reading | None, mistakes: Mistakes) -> Pipeline | None:
    shared = settings.document.data.get("airflow") if settings else None
    own = reading.header.get("airflow", {})
    merged = {**shared, **own} if isinstance(shared, dict) and isinstance(own, dict) else own
    data = {**reading.header, "airflow": merged, **reading.sections}
    return mistakes.validated(Pipeline, data, reading.document, ())


def _project(settings: Reading | None, mistakes: Mistakes) -> Project | None:
    if settings is None:
        return Project()
    return mistakes.validated(Project, settings.document.data, settings.document, ())
