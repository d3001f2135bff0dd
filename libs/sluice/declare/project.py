"""The whole configuration: `sluice.yaml`, and a file per pipeline in `pipelines/`."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from os import environ as process_environ
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from sluice.cache import cache_folder
from sluice.declare.building import (
    Declaration,
    DeclarationFile,
    build,
    find_files,
    named_pipeline,
    read_file,
    read_tables,
)
from sluice.declare.document import Document, hide_values
from sluice.declare.environment_folders import VARIABLE, existing
from sluice.declare.mistakes import Mistakes
from sluice.declare.project_cache import Noting, keep, kept_in, recall
from sluice.declare.resolution import Review
from sluice.declare.settings import AirflowSettings, QualitySettings, SparkSettings, check_module
from sluice.declare.spark_specs import SparkProject, is_spec, left_out_of, read_spec
from sluice.declare.stores import S3, explain_misplaced, faults, out_of_reach, scheme_of, store_of
from sluice.declare.table import Graph, Table
from sluice.declare.table_spec import SECTIONS, TableSpec
from sluice.errors import ConfigError
from sluice.language import Model
from sluice.language.interval import Interval, IntervalError, Schedule, ZoneName, parse_time, zone
from sluice.language.names import check_table_name, listing, unknown
from sluice.limits import Limits, machine_memory


def check_modules(
    declared: Iterable[Declaration], modules: Collection[str], mistakes: Mistakes
) -> None:
    """Note users' aggregators and sort keys from modules that the project does not list."""
    for declaration in declared:
        for at, function in declaration.spec.own_code() if declaration.spec else ():
            module = function.partition(":")[0]
            if module not in modules:
                message = (
                    f"the module {module!r} is not listed under `modules:` of sluice.yaml; "
                    f"modules are: {listing(modules)}"
                )
                mistakes.add(declaration.document, (*declaration.where, *at), message)


def check_compared(declared: Mapping[str, Declaration], mistakes: Mistakes) -> None:
    """Note tables that expectations name but that don't exist."""
    for declaration in declared.values():
        own = f"{declaration.id.split('.')[0]}."
        expectations = declaration.spec.expectations if declaration.spec else ()
        for i, expectation in enumerate(expectations):
            name = expectation.other_table
            if name and name not in declared and own + name not in declared:
                known = [n.removeprefix(own) for n in declared if n != declaration.id]
                where = (*declaration.where, "expect", i)
                mistakes.add(declaration.document, where, unknown("table", name, known))


__all__ = ["AirflowSettings", "Pipeline", "Project", "QualitySettings", "SparkSettings", "load"]

LEFT_OUT = (
    "`sluice validate` names what is left out of spark-pipelines projects; the rest runs without it"
)
PARTS_OF_URLS = re.compile(r"[#?]|%[0-9A-Fa-f]{2}")
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
    timezone: ZoneName = "UTC"
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


class Project(Model):
    """All declarations, checked; relative paths start at `root`.

    `environment`: the one that `lake` is, if it is not the lake of the settings. `written`:
    fields of tables that name variables, as the files have them. `values`: the environment's values
    of these variables. `streams`: the streaming tables of spark-pipelines projects that read
    others, by the source or view that reads these for them. `datasets`: all that they define.
    """

    LOADED: ClassVar[frozenset[str]] = frozenset(
        {"pipelines", "root", "graph", "limits", "environment", "written", "values"}
        | {"streams", "datasets"}
    )

    lake: str = "lake"
    lake_connection: str = ""
    spark: SparkSettings = SparkSettings()
    quality: QualitySettings = QualitySettings()
    airflow: AirflowSettings = AirflowSettings()
    modules: tuple[str, ...] = ()
    spark_pipelines: tuple[str, ...] = ()
    pipelines: dict[str, Pipeline] = Field(default_factory=dict)
    root: Path = Path()
    graph: Graph = Graph()
    limits: Limits = Field(default_factory=lambda: Limits.of_machine(machine_memory()))
    environment: str = ""
    written: dict[str, dict[str, Any]] = Field(default_factory=dict)
    values: dict[str, str] = Field(default_factory=dict, repr=False)
    streams: dict[str, frozenset[str]] = Field(default_factory=dict)
    datasets: frozenset[str] = frozenset()

    @field_validator("modules")
    @classmethod
    def _modules_are_users_own(cls, modules: tuple[str, ...]) -> tuple[str, ...]:
        for name in modules:
            check_module(name)
        return modules

    def resolve(self, path: str) -> str:
        """Resolve a path against the project's root, unless it is absolute or has a scheme."""
        return path if "://" in path else str(self.root / path)

    def declaration(self, table: Table) -> TableSpec:
        """Return the declaration of a table; of a query, as a whole."""
        declared: TableSpec = getattr(self.pipelines[table.pipeline], table.section)[table.name]
        return declared

    def definition(self, table: Table) -> dict[str, Any]:
        """Return the declaration as users write it, without values of the environment."""
        named, shown = self.written.get(table.id, {}), self.declaration(table).as_written()
        return {key: named.get(key, value) for key, value in shown.items()}

    def shown_definition(self, table: Table) -> dict[str, Any]:
        """Return the definition without places that rows come from, and options for reading."""
        apart = self.declaration(table).PLACES
        return {key: value for key, value in self.definition(table).items() if key not in apart}

    def hide(self, text: str, given: str = "") -> str:
        """Return a message as any reader may see it; `given`: their own text, of which all stays.

        Delivered files are named below the place of their table, and variables have no values.
        """
        known = self._places.sub(lambda of: of[0] if of[0] in given else "", text)
        return hide_values(known, self.values, given)

    def delivered(self, file: str) -> str:
        """Return a delivered file's path below the place of its table; else its name."""
        below = self._places.sub("", file)
        return below if below != file else file.rpartition("/")[2]

    @cached_property
    def _places(self) -> re.Pattern[str]:
        """The folders of delivered files, each with its scheme."""
        every = {re.split("[{*]", t.spec.place)[0] for t in self.graph.tables.values()}
        folders = (self.resolve(place).rpartition("://")[2] for place in every if place[-1:] == "/")
        escaped = sorted((re.escape(f"{f.rstrip('/')}/") for f in folders), key=len, reverse=True)
        return re.compile(rf"(?:\b[a-z]\w*:(?://)?)?(?:{'|'.join(escaped) or '(?!)'})")

    def address(self, spec: TableSpec) -> str:
        """Return the place of a table's files, up to the first placeholder; '' if it has none."""
        return self.resolve(re.split(r"[{*]", spec.place)[0]) if spec.place else ""

    def within(self, name: str) -> "Project":
        """Return the project in an environment of its lake. Raises UsageError if it has none."""
        return self.model_copy(update={"lake": existing(self.lake, name), "environment": name})


def specs_in(folder: Path) -> list[str]:
    """Return the specs of spark-pipelines projects that a folder's settings name."""
    return _specs_of(read_file(folder / "sluice.yaml", {}, Mistakes()))


def _specs_of(settings: DeclarationFile | None) -> list[str]:
    named = settings.document.data.get("spark_pipelines") if settings else ()
    return [str(path) for path in named] if isinstance(named, list) else []


def load(
    config_dir: Path | str = "config",
    *,
    environ: Mapping[str, str] = process_environ,
    review: Review | None = None,
    without: Collection[str] = (),
) -> Project:
    """Load the project declared in that folder; ConfigError lists every mistake.

    A spec of a spark-pipelines project in place of the folder is a project with that pipeline; its
    lake is the spec's storage.

    Its lake is the environment that `SLUICE_ENV` names, if any; UsageError if there is none.
    `review` checks each expectation further, and returns mistakes as text. Files named in
    `without` are ignored, and so is a spark-pipelines project with such a file.
    """
    folder, noting = Path(config_dir), Noting(environ)
    kept = kept_in(cache_folder(environ) / "projects", folder)
    is_whole = review is None and not without
    project: Project | None = recall(kept, environ) if is_whole else None
    if project is None:
        project, documents = _read_project(folder, noting, review, without)
        is_worth_it = len(project.graph.tables) >= MANY_TABLES
        is_worth_it = is_worth_it or bool(noting.folders)
        is_worth_it = is_worth_it and not project.graph.left_out
        if is_whole and is_worth_it and not project.modules:
            keep(project, documents, kept, noting)
    chosen = environ.get(VARIABLE)
    return project.within(chosen) if chosen else project


def _read_project(
    folder: Path, environ: Noting, review: Review | None, without: Collection[str]
) -> tuple[Project, list[Document]]:
    mistakes = Mistakes()
    specs: list[SparkProject | None]
    if is_spec(folder):
        specs = [read_spec(folder, environ, mistakes)]
        lake = {"lake": specs[0].storage} if specs[0] else {}
        settings: DeclarationFile | None = DeclarationFile(Document(folder.as_posix(), {**lake}))
        files: list[DeclarationFile | None] = []
    else:
        found = [path for path in find_files(folder) if path.as_posix() not in without]
        settings, *files = [read_file(path, environ, mistakes) for path in found]
        paths = [folder / path for path in _specs_of(settings)]
        sound = (p for p in paths if not any(Path(f).is_relative_to(p.parent) for f in without))
        specs = [read_spec(path, environ, mistakes) for path in sound]
    files += [spec.file if spec else None for spec in specs]
    readings = [read_tables(reading, mistakes) for reading in files if reading]
    pipelines = list(_pipelines(readings, settings, mistakes))
    project = _project(settings, mistakes)
    first = {reading.pipeline: reading for reading in reversed(readings)}
    declared = {d.id: d for reading in first.values() for d in reading.declared}
    is_complete = None not in files and len(first) == len(readings)
    graph = build(declared, mistakes, is_complete=is_complete, review=review)
    if is_complete:
        check_compared(declared, mistakes)
    if project:
        check_modules(declared.values(), project.modules, mistakes)
        _check_store(project, settings, declared.values(), environ, mistakes)
    mistakes.raise_any()
    if left_out := left_out_of([spec for spec in specs if spec]):
        graph = replace(graph, left_out=ConfigError(left_out, hint=LEFT_OUT))
    loaded = _assemble(project or Project(), pipelines, graph, folder.resolve().parent)
    named = {one.id: one.document.fields_as_written(one.where) for one in declared.values()}
    documents = [reading.document for reading in files if reading]
    named_in = [document.values_below(SECTIONS) for document in documents]
    values = {name: value for known in named_in for name, value in known.items()}
    written = {t: v for t, v in named.items() if v}
    streams = {source: of for spec in specs if spec for source, of in spec.streams.items()}
    datasets = frozenset[str]().union(*(spec.datasets for spec in specs if spec))
    spark = {"streams": streams, "datasets": datasets}
    loaded = loaded.model_copy(update={"written": written, "values": values, **spark})
    return loaded, [*([settings.document] if settings else []), *documents]


def _assemble(project: Project, pipelines: list[Pipeline], graph: Graph, root: Path) -> Project:
    named = {pipeline.name: pipeline for pipeline in pipelines}
    found = project.model_copy(update={"pipelines": named, "root": root, "graph": graph})
    places = (table.spec.place for table in graph.tables.values())
    spark = project.spark
    is_in_s3 = any(scheme_of(place) in S3.schemes for place in (project.lake, *places))
    if is_in_s3 and "s3" not in spark.drivers:
        spark = spark.model_copy(update={"drivers": (*spark.drivers, "s3")})
    lake = found.resolve(project.lake)
    if "://" not in lake and (part := PARTS_OF_URLS.search(lake)):
        raise ConfigError(
            [f"lake: {lake} has {part[0]!r} in its path, which Delta's libraries read as in a URL"],
            hint="name another folder as `lake` in sluice.yaml, or move the project",
        )
    return found.model_copy(update={"lake": lake, "spark": spark})


def _project(settings: DeclarationFile | None, mistakes: Mistakes) -> Project | None:
    if settings is None:
        return None
    data = {key: value for key, value in settings.document.data.items() if value is not None}
    for key in sorted(Project.LOADED & data.keys()):
        mistakes.add(settings.document, (key,), f"unknown key {key!r}")
    return mistakes.validate(Project, data, settings.document, ())


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
    if why := explain_misplaced(spec.place, is_delta=bool(spec.announced)):
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
    pipeline = mistakes.validate(Pipeline, data, reading.document, ())
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
    for name, bound in (("start_date", start), ("end_date", end)):
        off = bound and pipeline.schedule.has_intervals and pipeline.schedule.off_grid(bound)
        if off:
            mistakes.add(reading.document, (name,), f"{off.message}; {off.hint}")
    for section, tables in reading.sections.items():
        for name, spec in tables.items():
            for where, message in spec.check_schedule(pipeline.schedule):
                mistakes.add(reading.document, (section, name, *where), message)


PLACE = re.compile(r"^(?P<file>.+?):\d+: ")
KEY = re.compile(r"[\w.\[\]]+: ")


def without_message(mistake: str) -> str:
    """Return the file, line and key of a mistake alone.

    What is wrong there may name tables that the file reads, with their columns and types.
    """
    place = PLACE.match(mistake)
    if not place:
        return "`sluice validate` says what is wrong"
    key = KEY.match(mistake, place.end())
    return f"{place[0]}{key[0] if key else ''}`sluice validate` says what is wrong"


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
            places = (PLACE.match(mistake) for mistake in error.mistakes)
            broken = {place["file"] for place in places if place} - left_out
            left_out |= broken
            folder = Path(config_dir)
            others = {p.as_posix() for p in (folder / "pipelines").glob("*.y*ml")} - left_out
            if not broken or not others or (folder / "sluice.yaml").as_posix() in left_out:
                raise ConfigError(mistakes) from None
        else:
            reported = _error(mistakes, left_out)
            named = {file: named_pipeline(Path(file)) for file in sorted(left_out)}
            reasons = reported or project.graph.left_out
            graph = replace(project.graph, left_out=reasons, broken=named)
            return project.model_copy(update={"graph": graph}), reported


def _error(mistakes: tuple[str, ...], left_out: Collection[str]) -> ConfigError | None:
    if not mistakes:
        return None
    files = ", ".join(sorted(Path(file).name for file in left_out))
    return ConfigError(mistakes, hint=f"until this is fixed, these are left out: {files}")
