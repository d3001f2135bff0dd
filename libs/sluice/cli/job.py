"""Jobs: the steps of a run, each as a process of its own, for schedulers.

`python -m sluice.cli.jobs NAME TABLE...` runs one. A project's `jobs/NAME.py` may replace it.

The last line of output is its report as JSON; or `--report` names a file for it, and a task's log
keeps to what people read. It contains the batches' reports, one for each table that failed or was
skipped, and, on failure, the reason with a hint. The exit code shows whether a retry can help.
"""

import json
import logging
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import click

from sluice.declare.project import Project, load_sound
from sluice.declare.table import Table
from sluice.delta.places.delta_rs import store_fault
from sluice.delta.places.failpoint import passing
from sluice.engine import BatchReport
from sluice.engine.advance import Run
from sluice.errors import Differs, ExitCode, SluiceError
from sluice.language.interval import Interval
from sluice.operate.maintain import Swept, Upkeep
from sluice.operate.maintain import maintain as maintain_tables
from sluice.operate.maintain import sweep as sweep_table
from sluice.operate.preview import Previewed, previewing
from sluice.operate.rebuild import rebuild
from sluice.operate.run import Failures, bring_up, deliver, marking_refusals, requested_intervals
from sluice.operate.verify import Verification
from sluice.operate.verify import verify as verify_table
from sluice.operate.workers import Worker, Workers
from sluice.read.pending import news_of
from sluice.spark.session import Spark
from sluice.spark.starting import lasting
from sluice.terminal.options import (
    changed_option,
    check_bounds,
    config_option,
    empty_option,
    end_option,
    pin_option,
    read_pins,
    start_option,
)

Report = BatchReport | Previewed | Upkeep | Swept | Verification
SAMPLE = 3  # changed rows of each table that a preview shows


@dataclass(frozen=True)
class Job:
    """Arguments of the process."""

    names: Sequence[str]
    config: Path
    given: Run
    start: str | None
    end: str | None
    is_backfill: bool = False
    keeps_failures: bool = True
    pins: Sequence[str] = ()
    beside: Project | None = None
    is_about_news: bool = False

    @cached_property
    def project(self) -> Project:
        """The project without broken pipelines, unless this job belongs to one of them.

        In a preview, it is `beside`, whose lake is not the real one.
        """
        if self.beside:
            return self.beside
        sound, error = load_sound(self.config)
        if error and not all(name.partition(".")[0] in sound.pipelines for name in self.names):
            raise error
        return sound

    @cached_property
    def run(self) -> Run:
        """The run that the step belongs to. Raises UsageError for a pin that can't be used."""
        return replace(self.given, pins=read_pins(self.project.graph, self.pins))

    @cached_property
    def spark(self) -> Spark:
        return Spark(self.project.spark)

    @cached_property
    def failures(self) -> Failures:
        return Failures(self.project, self.run.id, are_kept=self.keeps_failures)

    @cached_property
    def asked(self) -> Mapping[str, list[Interval]]:
        """The intervals to deliver, by table; empty lists if nothing was requested."""
        tables = map(self.project.graph.table, self.names)
        return {table.id: self._intervals_of(table) for table in tables}

    def _intervals_of(self, table: Table) -> list[Interval]:
        if self.is_about_news:
            return sorted(news_of(self.project, table, datetime.now(UTC)))
        if not self.start or not self.end:
            return []
        return requested_intervals(
            self.project, table, self.start, self.end, is_backfill=self.is_backfill
        )

    def reports(self, step: "JobStep") -> Iterator[Report]:
        """Run the step of every table, inputs before the views over them.

        Failed tables, and those skipped because of them, have reports, too. The failure is raised
        when the rest is done. A time off a source's schedule is refused before any step runs.
        """
        graph, failures = self.project.graph, self.failures
        tables = [graph.table(name) for name in self.asked]

        def take(worker: Worker, table: Table) -> Sequence[Report]:
            def work() -> Iterable[Report]:
                return step(self, worker.spark, table)

            return tuple(failures.attempt(table, work, self.asked[table.id]))

        with Workers(self.spark) as workers:
            for done in workers.in_order(tables, graph, take):
                yield from done
        failures.raise_all()


JobStep = Callable[[Job, Spark, Table], Iterable[Report]]
JobBody = Callable[[Job], Iterable[Report]]


def command(step: JobStep, *, keeps_failures: bool = True) -> click.Command:
    """Return the command that runs the step of each requested table and reports what it did.

    `keeps_failures`: the step is a batch, whose failure is kept until a batch of the table
    succeeds.
    """
    work = partial(Job.reports, step=step)
    return command_of(work, step.__doc__, keeps_failures=keeps_failures)


def command_of(work: JobBody, about: str | None, *, keeps_failures: bool = True) -> click.Command:
    """Return the command that does the work of a whole job, and reports what it did."""

    @click.command(help=about)
    @click.argument("names", nargs=-1, required=True, metavar="TABLE...")
    @config_option
    @click.option("--run-id", default="", help="The run that this step belongs to.")
    @start_option
    @end_option
    @changed_option
    @pin_option
    @click.option("--full-refresh", is_flag=True, help="Repeat work that is already done.")
    @empty_option
    @click.option("--backfill", is_flag=True, help="Read a topic's messages of that time again.")
    @click.option(
        "--report",
        type=Path,
        metavar="FILE",
        help="Write the report to this file, not to standard output.",
    )
    def main(names: Sequence[str], report: Path | None, **asked: Any) -> None:
        _hear()
        done = _report_work(work, partial(_job, names, keeps_failures=keeps_failures, **asked))
        for name in names:
            passing("reporting", name)
        line = json.dumps(done, default=str)
        if report:
            report.write_text(line, "utf-8")
        else:
            print(line, flush=True)
        sys.exit(int(done["exit_code"]))

    return main


def _hear() -> None:
    """Send Sluice's log to standard output, unless the caller has set up logging."""
    log = logging.getLogger("sluice")
    if not logging.getLogger().handlers and not log.handlers:
        log.addHandler(logging.StreamHandler(sys.stdout))
        log.setLevel(logging.INFO)


def _report_work(work: JobBody, begin: Callable[[], Job]) -> dict[str, Any]:
    reports: list[dict[str, Any]] = []
    # A stopped Spark Connect client complains of handles that the server closed with it.
    logging.getLogger("pyspark.sql.connect.logging").setLevel(logging.ERROR)
    try:
        job = begin()
        with lasting():
            reports.extend(asdict(report) for report in work(job))
            job.spark.stop()
    except SluiceError as error:
        failure = _failure(reports, error.message, error.hint, error.exit_code)
        return failure | {"failed": [r["table"] for r in reports if r.get("outcome") == "failed"]}
    except Exception as error:  # noqa: BLE001 a job's last word: whatever it was, it is reported
        if fault := store_fault(error):
            return _failure(reports, fault.message, fault.hint, ExitCode(fault.exit_code))
        traceback.print_exc()
        first = str(error).strip().partition("\n")[0]
        what = f"{type(error).__name__}: {first}" if first else type(error).__name__
        return _failure(reports, what, "the trace is in the log", ExitCode.RETRY)
    return {"reports": reports, "exit_code": int(ExitCode.OK)}


def _failure(
    reports: list[dict[str, Any]], error: str, hint: str, exit_code: ExitCode
) -> dict[str, Any]:
    print(f"error: {error}\nhint: {hint}" if hint else f"error: {error}", file=sys.stderr)
    return {"reports": reports, "error": error, "hint": hint, "exit_code": int(exit_code)}


def _job(  # noqa: PLR0913 - the job's options
    names: Sequence[str],
    config: str,
    run_id: str,
    start: str | None,
    end: str | None,
    pin: Sequence[str],
    *,
    changed: bool,
    full_refresh: bool,
    allow_empty: bool,
    backfill: bool,
    keeps_failures: bool,
) -> Job:
    check_bounds(start, end, changed=changed)
    given = Run(run_id, full_refresh=full_refresh, allow_empty=allow_empty)
    return Job(
        names, Path(config), given, start, end, backfill, keeps_failures, pin, is_about_news=changed
    )


def ingest(job: Job, spark: Spark, table: Table) -> Iterator[BatchReport]:
    """Deliver to each table: intervals to a source, its present state to a dimension."""
    return deliver(spark, job.project, table, job.run, job.asked[table.id])


def load(job: Job, spark: Spark, table: Table) -> Iterator[BatchReport]:
    """Bring dimensions to the state of their sources."""
    return deliver(spark, job.project, table, job.run, ())


def advance(job: Job, spark: Spark, table: Table) -> tuple[BatchReport, ...]:
    """Bring views, and the internal tables behind them, up to their inputs.

    A full refresh rebuilds them.
    """
    if job.run.full_refresh:
        with marking_refusals():
            return rebuild(spark, job.project, table, job.run)
    return bring_up(spark, job.project, table, job.run)


def preview(job: Job) -> Iterator[Previewed]:
    """Show what a run would do, in a lake beside the real one. Commits nothing.

    The tables are taken in that order, each by the step that a run takes. A failing step is shown,
    and then raised.
    """

    def step(job: Job, spark: Spark, table: Table) -> Iterable[BatchReport]:
        return (advance if table.is_view else ingest)(job, spark, table)

    tables = [job.project.graph.table(name) for name in job.names]
    with previewing(job.project, tables) as beside:
        there, done = replace(job, beside=beside.project), list[Report]()
        try:
            done.extend(there.reports(step))
        finally:
            there.spark.stop()
            reports = (report for report in done if isinstance(report, BatchReport))
            yield from beside.results(reports, SAMPLE)


def maintain(job: Job, spark: Spark, table: Table) -> list[Upkeep]:
    """Maintain tables and the internal tables behind them, without changing a visible row."""
    return maintain_tables(spark, job.project, [table])


def sweep(job: Job, spark: Spark, table: Table) -> list[Swept]:
    """Check the expectations of whole tables. Unmet ones are reported but don't fail the job."""
    return [sweep_table(spark, job.project, table, job.run.id)]


def verify(job: Job, spark: Spark, table: Table) -> Iterator[Verification]:
    """Compare tables with a recompute at the versions that they reflect.

    Raises Differs at the first faulty one.
    """
    for verdict in verify_table(spark, job.project, table):
        if not verdict.is_equal:
            what = (
                f"{verdict.table} differs from its query at version {verdict.version}: "
                f"{verdict.missing} rows missing, {verdict.extra} extra, {verdict.different} wrong"
            )
            raise Differs(what, hint=FAULTY.format("them", table.id))
        if verdict.faults:
            what = f"{verdict.table} at version {verdict.version}: {verdict.faults[0]}"
            raise Differs(what, hint=FAULTY.format("all", table.id))
        yield verdict


FAULTY = "`sluice verify {1}` shows {0}; keep that, then `sluice rebuild {1}`"
JOBS: Mapping[str, click.Command] = {
    "ingest": command(ingest),
    "load": command(load),
    "advance": command(advance),
    "preview": command_of(preview, preview.__doc__, keeps_failures=False),
    "maintain": command(maintain, keeps_failures=False),
    "sweep": command(sweep, keeps_failures=False),
    "verify": command(verify, keeps_failures=False),
}
