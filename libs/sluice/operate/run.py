"""The embedded main job: sources interval by interval, then dimensions, then every view."""

import gc
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain

from sluice.declare.project import Pipeline, Project
from sluice.declare.table import Table
from sluice.delta.log.opened import exists
from sluice.delta.log.position import head
from sluice.delta.notes.intervals import deliveries
from sluice.delta.places.lake_layout import layout
from sluice.engine.advance import Run, advance_by_batch
from sluice.engine.batch_report import BatchReport
from sluice.errors import UsageError
from sluice.language.interval import Interval, parse_time, show
from sluice.language.names import INTERVALS
from sluice.limits import Limits
from sluice.operate.bring import brought
from sluice.operate.delivering import delivering
from sluice.operate.maintain import maintain
from sluice.operate.workers import Failures, Process, Worker, Workers
from sluice.spark.session import Spark

OnReport = Callable[[BatchReport], None]
News = Mapping[str, frozenset[Interval]]  # intervals by source
UPKEEP_EVERY = 32  # intervals: each leaves one or more files in its sources' tables


def run(
    spark: Spark,
    project: Project,
    pipeline: Pipeline,
    intervals: Iterable[Interval],
    on_step: OnReport = lambda _: None,
    *,
    allow_empty: bool = False,
    only: News | None = None,
    processes: Sequence[Process] = (),
) -> None:
    """Run a pipeline over `intervals`, and report every finished batch to `on_step`.

    `on_step` is called from several threads. `only`: those of the intervals that each source
    delivers, if not all. `processes`: the project's own, which help.

    Sources are ingested interval by interval. Dimensions and views follow once a round: a view
    costs a batch's overhead and the rows that changed, however many intervals brought them. Streams
    are read and dimensions loaded in the first round. All rounds look up these versions of the
    dimensions. Without intervals, there is one round.

    A failure is also reported to `on_step`. It stops only the tables that depend on its own, and is
    raised when the rest is done.
    """
    tables, every = _stored_tables(project, pipeline), tuple(intervals)
    rounds = rounds_of(every, project.limits)
    failures = Failures(project, _run_name(pipeline, every))
    pins = _of_other_pipelines(project, pipeline)
    with Workers(spark, processes) as workers:
        for nth, these in enumerate(rounds):
            failures.run_id = _run_name(pipeline, these)
            steps = _Steps(failures, every, these, on_step, nth == 0, allow_empty, pins, only)
            for _ in workers.in_order(tables, project.graph, steps.take):
                pass
            if spark.is_started:  # plans are reference cycles, which keep objects in the JVM alive
                gc.collect()
            if _is_upkeep_due(nth, rounds):
                maintain(spark, project, tables)
    failures.raise_all()


def _stored_tables(project: Project, pipeline: Pipeline) -> list[Table]:
    return [t for t in project.graph.pipeline(pipeline.name) if t.is_stored]


def rounds_of(intervals: Sequence[Interval], limits: Limits) -> list[tuple[Interval, ...]]:
    """Group the intervals into rounds; without intervals, there is one round for all the rest."""
    most = limits.round_intervals
    found = [tuple(intervals[i : i + most]) for i in range(0, len(intervals), most)]
    return found or [()]


def _is_upkeep_due(nth: int, rounds: Sequence[Sequence[Interval]]) -> bool:
    """True if a round completes another UPKEEP_EVERY intervals."""
    before, after = (sum(map(len, rounds[:n])) for n in (nth, nth + 1))
    return after // UPKEEP_EVERY > before // UPKEEP_EVERY


def _run_name(pipeline: Pipeline, intervals: Sequence[Interval]) -> str:
    at = intervals[0].start if intervals else datetime.now(UTC)
    return f"{pipeline.name}-{at:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"


@dataclass
class _Steps:
    """Steps of one round, with what they hand to each other.

    A source that fails at an interval keeps the earlier ones, and the views follow these.
    """

    failures: Failures
    every: Sequence[Interval]
    intervals: Sequence[Interval]
    on_step: OnReport
    is_first: bool = True
    allow_empty: bool = False
    pins: dict[str, int] = field(default_factory=dict)
    only: News | None = None

    @property
    def project(self) -> Project:
        return self.failures.project

    def take(self, worker: Worker, table: Table) -> None:
        """Run one table's step; report its failure, or that of a table before it."""
        this = Run(self.failures.run_id, self.pins, allow_empty=self.allow_empty)
        taken = self._ingest if table.spec.is_by_interval else self._attempt
        for report in chain(self._brought(worker, table, this), taken(worker, table, this)):
            self.on_step(report)

    def _brought(self, worker: Worker, table: Table, this: Run) -> Iterator[BatchReport]:
        if self.project.environment:
            yield from self.failures.attempt(
                table, lambda: brought(worker.spark, self.project, table, this)
            )

    def _attempt(self, worker: Worker, table: Table, this: Run) -> Iterator[BatchReport]:
        return self.failures.attempt(table, lambda: self._step(worker, table, this))

    def _step(self, worker: Worker, table: Table, this: Run) -> Iterator[BatchReport]:
        if not table.is_delivered:
            yield from worker.do(advance_by_batch, self.project, table, this)
        elif self.is_first:
            kind = delivering(table)
            if table.is_loaded:
                yield from self._load(worker, table, this)
            else:
                yield from kind.deliver(worker.spark, self.project, table, this)
            yield from kind.follow(worker.spark, self.project, table, this)

    def _ingest(self, worker: Worker, table: Table, this: Run) -> Iterator[BatchReport]:
        uri, kind = layout(self.project).uri(table.delivered_to), delivering(table)

        def work() -> Iterator[BatchReport]:
            for interval in self._intervals_of(table, self.intervals):
                yield from worker.do(kind.deliver, self.project, table, this, interval)

        if table.id not in self.failures.errors:
            asked, blocks = self._intervals_of(table, self.every), lambda: not exists(uri)
            yield from self.failures.attempt(table, work, asked, blocks=blocks)
        yield from self.failures.attempt(
            table, lambda: worker.do(kind.follow, self.project, table, this)
        )

    def _intervals_of(self, table: Table, intervals: Sequence[Interval]) -> list[Interval]:
        """Return those of the intervals that the source delivers."""
        return [i for i in intervals if self.only is None or i in self.only[table.id]]

    def _load(self, worker: Worker, table: Table, this: Run) -> tuple[BatchReport, ...]:
        reports = worker.do(delivering(table).deliver, self.project, table, this)
        self.pins[table.id] = reports[-1].version or 0
        return reports


def _of_other_pipelines(project: Project, pipeline: Pipeline) -> dict[str, int]:
    """Return the newest versions of dimensions that this pipeline looks up and does not load."""
    graph = project.graph
    above = {a.id: a for t in graph.pipeline(pipeline.name) for a in graph.ancestors(t.id)}
    foreign = (t for t in above.values() if t.is_loaded and t.pipeline != pipeline.name)
    heads = {t.id: head(layout(project).uri(t.id)) for t in foreign}
    return {name: at.version for name, at in heads.items() if at}


def intervals_to_run(
    project: Project,
    pipeline: Pipeline,
    start: datetime | None,
    end: datetime | None,
    now: datetime,
) -> list[Interval]:
    """Return the grid intervals of [start, end); without bounds, all complete undelivered ones.

    Raises UsageError for a bound off the grid, with the nearest ones on it. Also raises it for one
    before the pipeline's start_date or after its end_date.
    """
    if start is not None and end is not None:
        _check_dates(pipeline, start, end)
        return pipeline.schedule.intervals(start, end)
    if start is not None or end is not None:
        raise UsageError("give both --start and --end, or neither")
    if not any(source.is_by_interval for source in pipeline.sources.values()):
        return []
    if pipeline.start_date is None:
        raise UsageError(
            f"{pipeline.name} has no start_date", hint="declare one, or give --start and --end"
        )
    done = _delivered_by_all(project, pipeline)
    return [i for i in pipeline.complete_intervals(now) if i not in done]


def requested_intervals(
    project: Project, table: Table, start: str, end: str, *, is_backfill: bool = True
) -> list[Interval]:
    """Return the requested time, cut along the schedule of a source by interval.

    A topic's time is not cut, and only a backfill requests one. A requested interval must lie
    between the pipeline's dates; the interval of a run need not.
    """
    pipeline = project.pipelines[table.pipeline]
    first, last = (parse_time(bound, pipeline.schedule.timezone) for bound in (start, end))
    if not table.spec.is_by_interval:
        return [Interval(first, last)] if is_backfill and table.spec.has_backfill else []
    intervals = pipeline.schedule.intervals(first, last)
    if is_backfill:
        _check_dates(pipeline, first, last)
    return intervals


def _check_dates(pipeline: Pipeline, start: datetime, end: datetime) -> None:
    """Raise UsageError for bounds before the pipeline's start_date or after its end_date."""
    first, last, zone = pipeline.start_date, pipeline.end_date, pipeline.timezone
    if first is not None and start < first:
        raise UsageError(
            f"{pipeline.name} starts at {show(first, zone)}, after {show(start, zone)}",
            hint="begin there, or declare an earlier start_date",
        )
    if last is not None and end > last:
        raise UsageError(
            f"{pipeline.name} ends at {show(last, zone)}, before {show(end, zone)}",
            hint="end there, or declare a later end_date",
        )


def _delivered_by_all(project: Project, pipeline: Pipeline) -> set[Interval]:
    lake = layout(project)
    known = [
        {d.interval for d in deliveries(lake.uri(f"{pipeline.name}.{name}", INTERVALS))}
        for name, source in pipeline.sources.items()
        if source.is_by_interval
    ]
    return set.intersection(*known) if known else set()
