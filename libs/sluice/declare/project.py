"""The whole configuration: `sluice.yaml`, and a file per pipeline in `pipelines/`."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from os import environ as process_environ
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from sluice.cache import cache_folder
from sluice.declare.building import Declaration, build
from sluice.declare.code import check_module
from sluice.declare.declaration_file import DeclarationFile, find_files, read_file, read_tables
from sluice.declare.environment_folders import VARIABLE, existing
from sluice.declare.graph import Graph
from sluice.declare.kept import Noting, kept_in
from sluice.declare.names_elsewhere import check_compared, check_modules
from sluice.declare.recalled import keep, recalled
from sluice.declare.resolution.scope import Review
from sluice.declare.settings import AirflowSettings, QualitySettings, SparkSettings
from sluice.declare.stores import S3, faults, misplaced, out_of_reach, scheme_of, store_of
from sluice.declare.table_spec import TableSpec
from sluice.declare.text.document import Document
from sluice.declare.text.mistakes import Mistakes
from sluice.language.interval import Interval, IntervalError, Schedule, parse_time, zone
from sluice.language.model import Model
from sluice.language.names import check_table_name
from sluice.limits import Limits

__all__ = ["AirflowSettings", "Pipeline", "Project", "QualitySettings", "SparkSettings", "load"]


MANY_TABLES = 8  # from here on, loading takes longer than the cache


def _is_zone(name: Any) -> bool:
    try:
        return isinstance(name, str) and bool(zone(name))
    except ValueError:
        return False


class Pipeline(Model):
    """One pipeline: its schedule and its tables."""

    name: Annotated[str, AfterValidator(check_table_name)] = Field(alias="pipeline")
    description: str = ""
    schedule: Schedule
    start_date: datetime | None = None
    end_date: datetime | None = None
    catchup: bool = False
    timezone: str = "UTC"
    sources: dict[str, TableSpec] = Field(default_factory=dict)
    dimensions: dict[str, TableSpec] = Field(default_factory=dict)
    views: dict[str, TableSpec] = Field(default_factory=dict)
    airflow: AirflowSettings = AirflowSettings()

    def complete_intervals(self, now: datetime) -> list[Interval]:
        """Return the intervals since start_date that ended by `now` and end_date."""
        first = self.start_date
        end = self.schedule.last_until(min(now, self.end_date or now))
        return self.schedule.intervals(first, end) if first and first < end else []

    @field_validator("schedule", mode="before")
    @classmethod
    def _schedule_is_text(cls, data: Any) -> Any:
        if isinstance(data, dict | Schedule):
            return data
        raise ValueError(Schedule.refusal(data))

    @model_validator(mode="before")
    @classmethod
    def _schedule_in_its_zone(cls, data: Any) -> Any:
        schedule = data.get("schedule") if isinstance(data, dict) else None
        if not isinstance(schedule, str):
            return data
        zoned = {"timezone": data["timezone"]} if _is_zone(data.get("timezone")) else {}
        return {**data, "schedule": {"expression": schedule, **zoned}}

    @field_validator("start_date", "end_date", mode="before")
    @classmethod
    def _local_without_a_zone(cls, text: Any, info: ValidationInfo) -> datetime | None:
        schedule = info.data.get("schedule")
        try:
            zone_name = schedule.timezone if schedule else "UTC"
            return None if text is None else parse_time(text, zone_name)
        except IntervalError as error:
            raise ValueError(f"{error.message}; {error.hint}") from None

    @field_validator("timezone")
    @classmethod
    def _zone_exists(cls, name: str) -> str:
        return zone(name).key


class Project(Model):
    """All declarations, checked; relative paths start at `root`.

    `environment`: the one that `lake` is, if it is not the lake of the settings.
    """

    LOADED: ClassVar[frozenset[str]] = frozenset(
        {"pipelines", "root", "graph", "limits", "environment"}
    )

    lake: str = "lake"
    lake_connection: str = ""
    spark: SparkSettings = SparkSettings()
    quality: QualitySettings = QualitySettings()
    airflow: AirflowSettings = AirflowSettings()
    modules: tuple[str, ...] = ()
    pipelines: dict[str, Pipeline] = Field(default_factory=dict)
    root: Path = Path()
    graph: Graph = Graph()
    limits: Limits = Limits()
    environment: str = ""

    @field_validator("modules")
    @classmethod
    def _modules_are_users_own(cls, modules: tuple[str, ...]) -> tuple[str, ...]:
        for name in modules:
            check_module(name)
        return modules

    def resolve(self, path: str) -> str:
        """Resolve a path against the project's root, unless it is absolute or has a scheme."""
        return path if "://" in path else str(self.root / path)

    def address(self, spec: TableSpec) -> str:
        """Return the place of a table's files, up to the first placeholder; '' if it has none."""
        return self.resolve(re.split(r"[{*]", spec.place)[0]) if spec.place else ""

    def within(self, name: str) -> "Project":
        """Return the project in an environment of its lake. Raises UsageError if it has none."""
        return self.model_copy(update={"lake": existing(self.lake, name), "environment": name})


def load(
    config_dir: Path | str = "config",
    *,
    environ: Mapping[str, str] = process_environ,
    review: Review | None = None,
    without: Collection[str] = (),
) -> Project:
    """Load the project declared in that folder; ConfigError lists every mistake.

    Its lake is the environment that `SLUICE_ENV` names, if any; UsageError if there is none.
    `review` checks each expectation further, and returns mistakes as text. Files named in
    `without` are ignored.
    """
    folder, noting = Path(config_dir), Noting(environ)
    kept = kept_in(cache_folder(environ) / "projects", folder)
    is_whole = review is None and not without
    project: Project | None = recalled(kept, environ) if is_whole else None
    if project is None:
        project, documents = _read(folder, noting, review, without)
        is_worth_it = len(project.graph.tables) >= MANY_TABLES
        if is_whole and is_worth_it and not project.modules:
            keep(project, documents, kept, noting)
    chosen = environ.get(VARIABLE)
    return project.within(chosen) if chosen else project


def _read(
    folder: Path, environ: Mapping[str, str], review: Review | None, without: Collection[str]
) -> tuple[Project, list[Document]]:
    mistakes = Mistakes()
    found = [path for path in find_files(folder) if path.as_posix() not in without]
    settings, *files = [read_file(path, environ, mistakes) for path in found]
    readings = [read_tables(reading, mistakes) for reading in files if reading]
    pipelines = list(_pipelines(readings, settings, mistakes))
    project = _project(settings, mistakes)
    declared = {d.id: d for reading in readings for d in reading.declared}
    graph = build(declared, mistakes, is_complete=None not in files, review=review)
    if None not in files:
        check_compared(declared, mistakes)
    if project:
        check_modules(declared.values(), project.modules, mistakes)
        _check_store(project, settings, declared.values(), environ, mistakes)
    mistakes.raise_any()
    loaded = _assembled(project or Project(), pipelines, graph, folder.resolve().parent)
    return loaded, [reading.document for reading in (settings, *files) if reading]


def _assembled(project: Project, pipelines: list[Pipeline], graph: Graph, root: Path) -> Project:
    named = {pipeline.name: pipeline for pipeline in pipelines}
    found = project.model_copy(update={"pipelines": named, "root": root, "graph": graph})
    places = (table.spec.place for table in graph.tables.values())
    spark = _reaching(project.spark, [project.lake, *places])
    return found.model_copy(update={"lake": found.resolve(project.lake), "spark": spark})


def _reaching(spark: SparkSettings, places: Iterable[str]) -> SparkSettings:
    """Return the settings of a Spark that can read all these places."""
    if "s3" in spark.drivers or not any(scheme_of(place) in S3.schemes for place in places):
        return spark
    return spark.model_copy(update={"drivers": (*spark.drivers, "s3")})


def _project(settings: DeclarationFile | None, mistakes: Mistakes) -> Project | None:
    if settings is None:
        return None
    data = {key: value for key, value in settings.document.data.items() if value is not None}
    for key in sorted(Project.LOADED & data.keys()):
        mistakes.add(settings.document, (key,), f"unknown key {key!r}")
    return mistakes.validated(Project, data, settings.document, ())


def _check_store(
    project: Project,
    settings: DeclarationFile | None,
    declared: Iterable[Declaration],
    environ: Mapping[str, str],
    mistakes: Mistakes,
) -> None:
    """Report why the lake, or tables, can't be stored there.

    A connection of Airflow provides keys, so the profile does not matter.
    """
    if settings:
        reach = () if project.lake_connection else out_of_reach(project.lake, environ)
        for where, message in (*faults(project.lake, project.spark.commit, environ), *reach):
            mistakes.add(settings.document, where, message)
    for one in declared:
        for message in _unreachable(one.spec) if one.spec else ():
            mistakes.add(one.document, (*one.where, "path"), message)


def _unreachable(spec: TableSpec) -> Iterator[str]:
    """Yield why rows can't be read at a table's place."""
    if why := misplaced(spec.place, is_delta=bool(spec.announced)):
        yield why
    store = store_of(spec.place)
    if store and not store.takes_spark and (why := spec.only_by_spark):
        yield f"a Delta table on {store.name} would be read by Spark, {why}"


def _pipelines(
    readings: list[DeclarationFile], settings: DeclarationFile | None, mistakes: Mistakes
) -> Iterator[Pipeline]:
    seen: dict[str, str] = {}
    for reading in readings:
        pipeline = _pipeline(reading, settings, mistakes)
        if pipeline is None:
            continue
        path = seen.setdefault(pipeline.name, reading.document.path)
        if path != reading.document.path:
            mistakes.add(
                reading.document, ("pipeline",), f"{pipeline.name!r} is declared in {path}"
            )
        yield pipeline


def _pipeline(
    reading: DeclarationFile, settings: DeclarationFile | None, mistakes: Mistakes
) -> Pipeline | None:
    shared = settings.document.data.get("airflow") if settings else None
    own = reading.header.get("airflow") or {}
    merged = {**shared, **own} if isinstance(shared, dict) and isinstance(own, dict) else own
    data = {**reading.header, "airflow": merged, **reading.sections}
    pipeline = mistakes.validated(Pipeline, data, reading.document, ())
    if pipeline:
        _check_schedule(pipeline, reading, mistakes)
    return pipeline


def _check_schedule(pipeline: Pipeline, reading: DeclarationFile, mistakes: Mistakes) -> None:
    start, end = pipeline.start_date, pipeline.end_date
    if start and end and end <= start:
        mistakes.add(reading.document, ("end_date",), "`end_date` is not after `start_date`")
    if pipeline.schedule.has_intervals and start is None:
        at = ("start_date",) if "start_date" in reading.header else ()
        mistakes.add(reading.document, at, "`start_date` is missing: the first interval's start")
    if pipeline.schedule.has_intervals:
        _check_bounds(pipeline, reading, mistakes)
    for section, tables in reading.sections.items():
        for name, spec in tables.items():
            for where, message in spec.check_schedule(pipeline.schedule):
                mistakes.add(reading.document, (section, name, *where), message)


def _check_bounds(pipeline: Pipeline, reading: DeclarationFile, mistakes: Mistakes) -> None:
    for field, bound in (("start_date", pipeline.start_date), ("end_date", pipeline.end_date)):
        if bound and (off := pipeline.schedule.off_grid(bound)):
            mistakes.add(reading.document, (field,), f"{off.message}; {off.hint}")
