"""A run: what is done for each table, in which order, and what becomes of failures.

Sources are delivered interval by interval, dimensions are loaded, views follow. A table waits for
its inputs only; `workers` chooses the thread and the process. A failure stops only the tables that
depend on the failed one: it is reported like a batch, kept in the lake until a batch of the table
succeeds, and raised when the rest is done. Commands and jobs take the same steps by themselves.
"""

import gc
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import TypeVar

import pyarrow as pa

from sluice.declare.project import Pipeline, Project
from sluice.declare.table import Table
from sluice.delta.failures import Failure, clear, keep
from sluice.delta.intervals import deliveries
from sluice.delta.log.opened import exists
from sluice.delta.log.position import head
from sluice.delta.places.lake_layout import layout
from sluice.engine import BatchReport
from sluice.engine.advance import Run, advance, advance_by_batch
from sluice.engine.retries import naming_unforeseen
from sluice.errors import HistoryLost, SeveralFailed, SluiceError, UsageError
from sluice.language.interval import Interval, parse_time, show
from sluice.language.names import INTERVALS, declared_id
from sluice.operate.delivering import delivering
from sluice.operate.events import Events
from sluice.operate.rebuild import rebuild, redefined_parts
from sluice.operate.workers import Process, Worker, Workers
from sluice.spark.session import Spark

R = TypeVar("R")
OnReport = Callable[[BatchReport], None]
News = Mapping[str, frozenset[Interval]]  # intervals by source
ROUND_INTERVALS = 16  # whose changes views read together
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
    tables = [t for t in project.graph.pipeline(pipeline.name) if t.is_stored]
    every = tuple(intervals)
    rounds = rounds_of(every)
    failures = Failures(project, _run_name(pipeline, every))
    pins = _pin_foreign_dimensions(project, pipeline)
    with Workers(spark, processes) as workers:
        for nth, these in enumerate(rounds):
            failures.run_id = _run_name(pipeline, these)
            steps = _Steps(failures, every, these, on_step, nth == 0, allow_empty, pins, only)
            for _ in workers.in_order(tables, project.graph, steps.take):
                pass
            if spark.is_started:  # plans are reference cycles, which keep objects in the JVM alive
                gc.collect()
            if _is_upkeep_due(nth, rounds):
                from sluice.operate.maintain import maintain

                maintain(spark, project, tables)
    failures.raise_all()


def rounds_of(intervals: Sequence[Interval]) -> list[tuple[Interval, ...]]:
    """Group the intervals into rounds; without intervals, there is one round for all the rest."""
    starts = range(0, len(intervals), ROUND_INTERVALS)
    found = [tuple(intervals[i : i + ROUND_INTERVALS]) for i in starts]
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

    failures: "Failures"
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
        """Take one table's step; report its failure, or that of a table before it."""
        this = Run(self.failures.run_id, self.pins, allow_empty=self.allow_empty)
        spark, attempt = worker.spark, self.failures.attempt
        step = self._ingest if table.spec.is_by_interval else self._deliver_or_advance
        if self.project.environment:
            renewed = attempt(table, lambda: renew(spark, self.project, table, this))
        else:
            renewed = iter(())
        for report in chain(renewed, step(worker, table, this)):
            self.on_step(report)

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

    def _deliver_or_advance(self, worker: Worker, table: Table, this: Run) -> Iterator[BatchReport]:
        """Advance a view; load a dimension or read a stream in the first round."""

        def work() -> Iterator[BatchReport]:
            if not table.is_delivered:
                yield from worker.do(advance_by_batch, self.project, table, this)
            elif self.is_first:
                kind = delivering(table)
                if table.is_loaded:
                    reports = worker.do(kind.deliver, self.project, table, this)
                    self.pins[table.id] = reports[-1].version or 0
                    yield from reports
                else:
                    yield from kind.deliver(worker.spark, self.project, table, this)
                yield from kind.follow(worker.spark, self.project, table, this)

        return self.failures.attempt(table, work)

    def _intervals_of(self, table: Table, intervals: Sequence[Interval]) -> list[Interval]:
        return [i for i in intervals if self.only is None or i in self.only[table.id]]


def _pin_foreign_dimensions(project: Project, pipeline: Pipeline) -> dict[str, int]:
    """Return the newest versions of dimensions that this pipeline looks up and does not load."""
    graph = project.graph
    above = {a.id: a for t in graph.pipeline(pipeline.name) for a in graph.ancestors(t.id)}
    foreign = (t for t in above.values() if t.is_loaded and t.pipeline != pipeline.name)
    heads = {t.id: head(layout(project).uri(t.id)) for t in foreign}
    return {name: at.version for name, at in heads.items() if at}


def deliver(
    spark: Spark, project: Project, table: Table, run: Run, intervals: Sequence[Interval]
) -> Iterator[BatchReport]:
    """Ingest a source interval by interval, or bring in a stream or dimension as it is now.

    For a topic, the messages of these intervals are read again. Each batch is reported when it
    is committed, whatever becomes of the next.
    """
    yield from renew(spark, project, table, run)
    kind = delivering(table)
    spans = intervals if table.spec.is_by_interval else intervals or (None,)
    for interval in spans:
        yield from kind.deliver(spark, project, table, run, interval)
        yield from kind.follow(spark, project, table, run)
    if not spans:
        yield from kind.follow(spark, project, table, run)


def bring_up(spark: Spark, project: Project, table: Table, run: Run) -> tuple[BatchReport, ...]:
    """Bring a view up to its inputs; in an environment, by its current definition."""
    return (*renew(spark, project, table, run), *advance(spark, project, table, run))


def renew(spark: Spark, project: Project, table: Table, run: Run) -> Iterable[BatchReport]:
    """Rebuild a table of another definition before its step in an environment.

    In the lake itself, only a user asks for that.
    """
    if project.environment and redefined_parts(project, table):
        return rebuild(spark, project, table, run)
    return ()


@contextmanager
def marking_refusals() -> Iterator[None]:
    """Mark a refusal of what a user has asked for as one that is not kept: no batch has failed."""
    try:
        yield
    except (UsageError, HistoryLost) as error:
        error.is_kept = False
        raise


@dataclass
class Failures:
    """Failures of one run. Several threads may report to it, each about its own table.

    `are_kept`: they are failures of batches, kept until a batch of the table succeeds.
    """

    project: Project
    run_id: str = ""
    are_kept: bool = True
    errors: dict[str, SluiceError] = field(default_factory=dict)
    blocking: set[str] = field(default_factory=set)
    _reports: defaultdict[str, list[BatchReport]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self.events = Events(self.project, self.are_kept)

    def attempt(
        self,
        table: Table,
        work: Callable[[], Iterable[R]],
        intervals: Sequence[Interval] = (),
        *,
        blocks: Callable[[], bool] = lambda: True,
    ) -> Iterator[R | BatchReport]:
        """Yield the reports of `work` for a table, and one more if it fails or is skipped.

        Does nothing for a table that an earlier failure has blocked. `intervals`: those that the
        run should deliver. `blocks`: whether a failure stops this table and those that depend on
        it.
        """
        if table.id in self.blocking:
            return
        above = {t.id for t in self.project.graph.ancestors(table.id)}
        if because := above & self.blocking:
            yield from self._skip(table, because)
            return
        step = self.events.begin(table)
        try:
            with naming_unforeseen(table.id):
                for report in work():
                    if isinstance(report, BatchReport):
                        self._reports[table.id].append(report)
                    step.complete(report)
                    yield report
        except SluiceError as error:
            step.fail(error)
            yield self._fail(table, error, intervals, blocks=_holds(blocks))
        else:
            step.end()
            self._forget_failure(table)

    def _fail(
        self, table: Table, error: SluiceError, intervals: Sequence[Interval], *, blocks: bool
    ) -> BatchReport:
        """Note and keep a failure; return its report, which names what was not delivered.

        A lake that can't be written must not hide the failure itself.
        """
        self.errors.setdefault(table.id, error)
        if blocks:
            self.blocking.add(table.id)
        code, now = int(error.exit_code), datetime.now(UTC)
        if self.are_kept and error.is_kept:
            kept = Failure(table.id, now, error.message, error.hint, code, self.run_id, blocks)
            with suppress(OSError, pa.ArrowException):
                keep(layout(self.project), kept)
        delivered = {report.interval for report in self._reports[table.id]}
        bounds = ((i.start.isoformat(), i.end.isoformat()) for i in intervals)
        return BatchReport(
            table.id,
            table.declared_kind,
            "failed",
            error=error.message,
            hint=error.hint,
            exit_code=code,
            undelivered=tuple(bound for bound in bounds if bound not in delivered),
            timezone=self.project.pipelines[table.pipeline].timezone,
        )

    def _skip(self, table: Table, because: Iterable[str]) -> Iterator[BatchReport]:
        """Yield the report of a table that was skipped, once in a run."""
        if not any(report.outcome == "skipped" for report in self._reports[table.id]):
            report = BatchReport(
                table.id, table.declared_kind, "skipped", because=tuple(sorted(because))
            )
            self._reports[table.id].append(report)
            yield report

    def raise_all(self) -> None:
        """Raise the only failure, or all of them together, when the lineage events are sent."""
        self.events.flush()
        raise_all(self.errors)

    def _forget_failure(self, table: Table) -> None:
        """Forget the kept failure, unless the run only found other intervals delivered already."""
        if table.id in self.errors or not self.are_kept:
            return
        done = self._reports[table.id]
        new = {declared_id(r.table) for r in done if r.outcome in ("committed", "position")}
        if not any(r.interval or r.outcome == "waiting" for r in done):
            new.add(table.id)
        with suppress(OSError, pa.ArrowException):
            for name in new:
                clear(layout(self.project), name)


def _holds(blocks: Callable[[], bool]) -> bool:
    """Return the value of `blocks`; true if the lake can't be read, as when its store is down."""
    try:
        return blocks()
    except (OSError, pa.ArrowException):
        return True


def raise_all(errors: Mapping[str, SluiceError]) -> None:
    """Raise the only error, or all of them together; nothing if there is none.

    An error that does not name its table is raised with that name.
    """
    if len(errors) > 1:
        raise SeveralFailed(errors) from next(iter(errors.values()))
    for table, error in errors.items():
        if table not in str(error):
            error.message = f"{table}: {error.message}"
        raise error


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
    noted = [
        {d.interval for d in deliveries(layout(project).uri(f"{pipeline.name}.{name}", INTERVALS))}
        for name, source in pipeline.sources.items()
        if source.is_by_interval
    ]
    delivered = set.intersection(*noted)
    return [i for i in pipeline.complete_intervals(now) if i not in delivered]


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
