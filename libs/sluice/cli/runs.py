"""Commands that bring tables up to date like DAG tasks, with Spark in this process."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial, wraps
from typing import Any
from uuid import uuid4

import click

from sluice.cli.progress import PreviewOptions, Show, Steps, preview_option, project_of, summary
from sluice.declare.project import Pipeline, Project
from sluice.declare.project import load as load_project
from sluice.declare.registry import kinds
from sluice.declare.table import Graph, Table
from sluice.engine import BatchReport
from sluice.engine.advance import Run
from sluice.engine.advance import advance as advance_view
from sluice.errors import UsageError
from sluice.language.interval import Interval, parse_time
from sluice.language.names import listing, unknown
from sluice.operate.delivering import replay as replay_intervals
from sluice.operate.delivering import to_replay
from sluice.operate.preview import downstream
from sluice.operate.rebuild import rebuild
from sluice.operate.run import (
    Failures,
    News,
    bring_up,
    deliver,
    intervals_to_run,
    marking_refusals,
    requested_intervals,
    rounds_of,
)
from sluice.operate.run import run as run_pipeline
from sluice.operate.workers import Process, forked
from sluice.spark.session import Spark, with_spark
from sluice.terminal import is_program, stopping
from sluice.terminal.options import (
    changed_option,
    check_bounds,
    config_option,
    empty_option,
    end_option,
    format_option,
    pin_option,
    read_pins,
    start_option,
    warn_of_left_out,
)
from sluice.terminal.output import Format, pluralize


@dataclass(frozen=True)
class Refresh:
    """Names of tables to bring up to date, and of those to compute again; or all views again."""

    names: list[str]
    full: list[str]
    is_all: bool


def refresh_tables(
    refresh: Refresh,
    *,
    pipeline: str | None,
    allow_empty: bool,
    preview: PreviewOptions | None,
    format_: Format,
    config: str,
) -> None:
    """Run some tables of a pipeline, or compute them again, in the order of the graph."""
    project = load_project(config)
    name = choose_pipeline(project, pipeline).name
    every = project.graph.pipeline(name)
    again = {_named(table, project.graph, name).id for table in refresh.full}
    again |= {t.id for t in every if refresh.is_all and t.spec.STEP == "advance"}
    again |= {source for source, of in project.streams.items() if refresh.is_all or again & of}
    chosen = again | {_named(table, project.graph, name).id for table in refresh.names}
    if project.datasets.intersection(table.id for table in every):
        for table in reversed(every):  # what reads from outside for them runs with them
            if refresh.is_all or table.id in chosen:
                chosen |= {table.id, *(set(table.inputs) - project.datasets)}
    this = name_run("refresh", allow_empty=allow_empty)

    def step(spark: Spark, project: Project, table: Table) -> Iterable[BatchReport]:
        if table.id in again:
            with marking_refusals():
                return rebuild(spark, project, table, this)
        if table.spec.STEP == "advance":
            return bring_up(spark, project, table, this)
        return deliver(spark, project, table, this, ())

    warn_of_left_out(project.graph)
    tables = [table for table in every if table.id in chosen]
    do(project, tables, this, step, format_, preview=preview, only=True)


def _named(name: str, graph: Graph, pipeline: str) -> Table:
    """Return a pipeline's table by its name, in any case, or as Spark names it.

    That is `catalog.database.table`. A table of another database than the spec's has the
    database's name before its own. Raises UsageError for a table of another pipeline.
    """
    parts = name.lower().replace("`", "").split(".")
    known = {table.name for table in graph.pipeline(pipeline)}
    words = (".".join(parts), "_".join(parts[-2:]), parts[-1])
    found = next((f"{pipeline}.{word}" for word in words if word in known), "")
    table = graph.table(found if found and name not in graph.tables else name)
    if table.pipeline != pipeline:
        hint = f"`sluice run {table.pipeline}` refreshes its tables"
        raise UsageError(f"{table.id} is not a table of the pipeline {pipeline}", hint=hint)
    return table


def _split(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> list[str]:
    return [name.strip() for text in given for name in text.split(",") if name.strip()]


def refresh_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--refresh`, `--full-refresh` and `--full-refresh-all` to the command of a whole run."""

    @click.option(
        "--refresh",
        multiple=True,
        callback=_split,
        metavar="TABLES",
        help="Bring only these tables up to date (comma-separated).",
    )
    @click.option(
        "--full-refresh",
        multiple=True,
        callback=_split,
        metavar="TABLES",
        help="Compute only these tables again (comma-separated).",
    )
    @click.option("--full-refresh-all", is_flag=True, help="Compute every view again.")
    @wraps(command)
    def choosing(
        refresh: list[str], full_refresh: list[str], full_refresh_all: bool, **others: Any
    ) -> Any:
        if not (refresh or full_refresh or full_refresh_all):
            return command(**others)
        if full_refresh_all and (refresh or full_refresh):
            raise UsageError("--full-refresh-all names no tables: leave out the others")
        if any([others.pop("start"), others.pop("end"), others.pop("changed")]):
            raise UsageError("intervals go with a whole run: leave --refresh out")
        return refresh_tables(Refresh(refresh, full_refresh, full_refresh_all), **others)

    return choosing


@click.command()
@click.argument("pipeline", required=False)
@start_option
@end_option
@changed_option
@empty_option
@preview_option
@format_option
@refresh_options
@config_option
def run(
    pipeline: str | None,
    start: str | None,
    end: str | None,
    changed: bool,
    allow_empty: bool,
    preview: PreviewOptions | None,
    format_: Format,
    config: str,
) -> None:
    """Run PIPELINE: its sources interval by interval, then dimensions and every view.

    PIPELINE may be left out if the project has only one.

    With many intervals, views are updated after every sixteenth.

    Without bounds, every complete interval since start_date that was not delivered yet.
    """
    project = load_project(config)
    declared = choose_pipeline(project, pipeline)
    check_bounds(start, end, changed=changed)
    tables = project.graph.pipeline(declared.name)
    warn_of_left_out(project.graph)
    if preview:
        intervals, news = _choose_intervals(project, declared, start, end, changed=changed)
        with project_of(project, tables, preview, format_) as (beside, show):
            _run_steps(beside, declared, intervals, show, format_, allow_empty, news)
        return
    from sluice.report.publish import publish

    with forked(project, tables if is_program() else ()) as processes:
        intervals, news = _choose_intervals(project, declared, start, end, changed=changed)
        show = partial(summary, format_=format_)
        try:
            _run_steps(project, declared, intervals, show, format_, allow_empty, news, processes)
        except BaseException:
            with suppress(Exception):  # a failing report must not hide why the run failed
                publish(project)
            raise
    path = publish(project)
    if format_ is Format.TABLE:
        click.echo(f"{pluralize(len(intervals), 'interval')}; quality report: {path}")


def _choose_intervals(
    project: Project, pipeline: Pipeline, start: str | None, end: str | None, *, changed: bool
) -> tuple[Sequence[Interval], News | None]:
    """Return the intervals of a run, and those by source if sources deliver different ones."""
    now = datetime.now(UTC)
    if changed:
        from sluice.read.pending import news_of

        news = {t.id: news_of(project, t, now) for t in project.graph.pipeline(pipeline.name)}
        return sorted(frozenset[Interval]().union(*news.values())), news
    first, last = (parse_time(t, pipeline.timezone) if t else None for t in (start, end))
    return intervals_to_run(project, pipeline, first, last, now), None


def _run_steps(
    project: Project,
    pipeline: Pipeline,
    intervals: Sequence[Interval],
    show: Show,
    format_: Format,
    allow_empty: bool,
    only: News | None,
    processes: Sequence[Process] = (),
) -> None:
    count = _steps(intervals, project.graph.pipeline(pipeline.name), only)
    with stopping(), Steps(count, format_ is Format.TABLE) as steps:

        def work(spark: Spark) -> None:
            run_pipeline(
                spark,
                project,
                pipeline,
                intervals,
                steps.add,
                allow_empty=allow_empty,
                only=only,
                processes=processes,
            )

        try:
            with_spark(project.spark, work)
        finally:
            steps.stop()
            show(steps.reports)


@click.command()
@click.argument("source")
@start_option
@end_option
@empty_option
@preview_option
@format_option
@config_option
def ingest(
    source: str,
    start: str | None,
    end: str | None,
    allow_empty: bool,
    preview: PreviewOptions | None,
    format_: Format,
    config: str,
) -> None:
    """Deliver the intervals of [START, END) of SOURCE; each replaces what it delivered before.

    For a stream, read all new arrivals: it takes no bounds. The same applies to a topic; with
    bounds, messages with timestamps within them are read again.
    """
    project = load_project(config)
    table = _table(project, source, "ingest")
    intervals = _intervals(project, table, start, end)
    this = name_run("ingest", allow_empty=allow_empty)
    do(
        project,
        [table],
        this,
        lambda s, p, t: deliver(s, p, t, this, intervals),
        format_,
        intervals,
        preview=preview,
    )


@click.command()
@click.argument("dimension")
@preview_option
@format_option
@config_option
def load(dimension: str, preview: PreviewOptions | None, format_: Format, config: str) -> None:
    """Bring DIMENSION to the state of its source; only rows that differ are written."""
    project = load_project(config)
    tables, this = [_table(project, dimension, "load")], name_run("load")
    do(project, tables, this, lambda s, p, t: deliver(s, p, t, this, ()), format_, preview=preview)


@click.command()
@click.argument("views", nargs=-1, required=True)
@pin_option
@preview_option
@format_option
@config_option
def advance(
    views: tuple[str, ...],
    pin: tuple[str, ...],
    preview: PreviewOptions | None,
    format_: Format,
    config: str,
) -> None:
    """Bring VIEWS up to their inputs, inputs before the views over them.

    A failure stops only the views over it.
    """
    project = load_project(config)
    this = name_run("advance", pins=read_pins(project.graph, pin))
    tables = [_view(project, name) for name in views]
    do(project, tables, this, lambda s, p, t: bring_up(s, p, t, this), format_, preview=preview)


@click.command()
@click.argument("source")
@click.option("--start", metavar="T", help="Only intervals from here on.")
@click.option("--end", metavar="T", help="Only intervals that end by then.")
@empty_option
@format_option
@config_option
def replay(
    source: str, start: str | None, end: str | None, allow_empty: bool, format_: Format, config: str
) -> None:
    """Read the intervals of SOURCE with rows in quarantine again, after a fix.

    SOURCE may be a dimension. Views follow at their next advance.
    """
    project = load_project(config)
    table = project.graph.table(source)
    zone = project.pipelines[table.pipeline].timezone
    first, last = (parse_time(t, zone) if t else None for t in (start, end))
    intervals = to_replay(project, table, first, last)
    this = name_run("replay", allow_empty=allow_empty)
    do(project, [table], this, lambda s, p, t: replay_intervals(s, p, t, intervals, this), format_)
    if format_ is Format.TABLE and not intervals:
        click.echo(f"{table.id} has no rows in quarantine there")


def do(
    project: Project,
    tables: Sequence[Table],
    run: Run,
    step: Callable[[Spark, Project, Table], Iterable[BatchReport]],
    format_: Format,
    intervals: Sequence[Interval] = (),
    *,
    preview: PreviewOptions | None = None,
    only: bool = False,
) -> None:
    """Run the step of each table, sum up, and raise what failed. Each failure is kept.

    A preview does so beside the lake, and then updates the tables that depend on them, unless
    `only` these were asked for.
    """
    after = downstream(project, tables) if preview and not only else []
    with project_of(project, [*tables, *after], preview, format_) as (there, show):
        failures, reports = Failures(there, run.id), list[BatchReport]()

        def work(spark: Spark) -> None:
            for table in tables:
                taken = partial(step, spark, there, table)
                reports.extend(failures.attempt(table, taken, intervals))
            for view in after:
                follow = partial(advance_view, spark, there, view, run)
                reports.extend(failures.attempt(view, follow))

        try:
            with_spark(there.spark, work)
        finally:
            show(reports)
        failures.raise_all()


def _steps(intervals: Sequence[Interval], tables: Iterable[Table], only: News | None) -> int:
    """Return the number of a run's deliveries and batches, those of internal tables not counted."""
    stored = [t for t in tables if t.is_stored]
    count = Counter(t.spec.STEP for t in stored)
    rounds = rounds_of(intervals)
    each = len(intervals) * count["ingest"] if only is None else sum(map(len, only.values()))
    return each + count["load"] + len(rounds) * count["advance"]


def choose_pipeline(project: Project, name: str | None) -> Pipeline:
    """Return the pipeline of that name, or the only one. Raises UsageError."""
    if name is None and len(project.pipelines) == 1:
        return next(iter(project.pipelines.values()))
    if name is None:
        raise UsageError(f"name one of the pipelines: {listing(project.pipelines)}")
    if name not in project.pipelines:
        message, _, hint = unknown("pipeline", name, project.pipelines).partition("; ")
        raise UsageError(message, hint=hint)
    return project.pipelines[name]


def _table(project: Project, name: str, step: str) -> Table:
    """Return the table if that step of a run delivers it. Raises UsageError if not."""
    table, tables = project.graph.table(name), project.graph.tables.values()
    if step != table.spec.STEP:
        called = next(kind.name for kind in kinds() if step == kind.model.STEP)
        known = [t.id for t in tables if step == t.spec.STEP]
        raise UsageError(
            f"{table.id} is of kind {table.declared_kind}, not a {called}",
            hint=f"{called}s are: {listing(known)}",
        )
    return table


def _view(project: Project, name: str) -> Table:
    table = project.graph.table(name)
    if not table.is_view:
        raise UsageError(
            f"{table.id} is a {table.declared_kind}, not a view",
            hint="`sluice ingest` delivers sources, `sluice load` dimensions",
        )
    return table


def _intervals(
    project: Project, table: Table, start: str | None, end: str | None
) -> list[Interval]:
    is_read_as_it_comes = not table.spec.is_by_interval
    if is_read_as_it_comes and not start and not end:
        return []
    if is_read_as_it_comes and not table.spec.has_backfill:
        raise UsageError(f"{table.id} is a stream: it is read as data arrives, without bounds")
    if not start or not end:
        raise UsageError(
            f"{table.id} is delivered by interval: give --start and --end",
            hint="e.g. --start 2017-05-08 --end 2017-05-09; `sluice run` finds what is due",
        )
    return requested_intervals(project, table, start, end)


def name_run(step: str, **options: Any) -> Run:
    """Return the run of a command that takes this step; `options`: fields of a run."""
    return Run(f"{step}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid4().hex[:6]}", **options)
