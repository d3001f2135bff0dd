"""The embedded main job: interval by interval, sources, then dimensions, then every view."""

import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from sluice.errors import UsageError
from sluice.runtime.batch import Run, advance
from sluice.runtime.ingest import INTERVALS, ingest
from sluice.runtime.load import load
from sluice.runtime.report import BatchReport
from sluice.runtime.session import Spark
from sluice.specs.interval import Interval
from sluice.specs.project import Pipeline, Project
from sluice.specs.table import Table
from sluice.storage.intervals import deliveries
from sluice.storage.lake import layout

Step = Callable[[BatchReport], None]


def run(
    spark: Spark,
    project: Project,
    pipeline: Pipeline,
    intervals: Iterable[Interval],
    on_step: Step = lambda _: None,
) -> list[BatchReport]:
    """Run a pipeline over `intervals`; `on_step` hears of every table as it is done."""
    reports: list[BatchReport] = []
    tables = project.graph.pipeline(pipeline.name)
    for interval in intervals:
        this = Run(id=f"{pipeline.name}-{interval.start:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}")
        for report in _interval(spark, project, tables, interval, this):
            reports.append(report)
            on_step(report)
    return reports


def _interval(
    spark: Spark, project: Project, tables: Iterable[Table], interval: Interval, this: Run
) -> Iterator[BatchReport]:
    tables = list(tables)
    for table in tables:
        if table.kind == "source":
            yield from ingest(spark, project, table, interval, this)
    pins: dict[str, int] = {}
    for table in tables:
        if table.kind == "dimension":
            reports = load(spark, project, table, this)
            pins[table.id] = reports[-1].version or 0
            yield from reports
    pinned = Run(this.id, pins)
    for table in tables:
        if table.is_view:
            yield from advance(spark, project, table, pinned)


def intervals_to_run(
    project: Project,
    pipeline: Pipeline,
    start: datetime | None,
    end: datetime | None,
    now: datetime,
) -> list[Interval]:
    """The grid intervals of [start, end); without bounds, every complete one not yet delivered.

    Raises UsageError for a bound off the grid, naming the nearest that are on it.
    """
    if start is not None and end is not None:
        return pipeline.schedule.intervals(start, end)
    if start is not None or end is not None:
        raise UsageError("give both --start and --end, or neither")
    first = pipeline.start_date
    if first is None:
        raise UsageError(
            f"{pipeline.name} has no start_date", hint="declare one, or give --start and --end"
        )
    done = _delivered_by_all(project, pipeline)
    return [i for i in complete_intervals(pipeline, first, now) if i not in done]


def complete_intervals(pipeline: Pipeline, first: datetime, now: datetime) -> list[Interval]:
    """The grid intervals from `first` on that ended by `now`, and by the pipeline's end_date."""
    schedule = pipeline.schedule
    start = first if schedule.is_on_grid(first) else schedule.next_after(first)
    end = schedule.last_until(min(now, pipeline.end_date or now))
    return schedule.intervals(start, end) if start < end else []


def _delivered_by_all(project: Project, pipeline: Pipeline) -> set[Interval]:
    lake = layout(project)
    known = [
        {d.interval for d in deliveries(lake.uri(f"{pipeline.name}.{name}", INTERVALS))}
        for name in pipeline.sources
    ]
    return set.intersection(*known) if known else set()
