"""A job: one step of a run as a separate process, for spark-submit and schedulers.

The last line of output is its report as JSON, which is also written to the file named by
`--report`. It contains the batches' reports, one for each table that failed or was skipped, and, on
failure, the reason with a hint. The exit code shows whether a retry can help.
"""

import argparse
import json
import logging
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sluice.declare.project import Project
from sluice.declare.sound import load_sound
from sluice.declare.table import Table
from sluice.delta.failpoint import passing
from sluice.engine.advance import Run
from sluice.engine.report import BatchReport
from sluice.errors import ExitCode, SluiceError, UsageError
from sluice.language.interval import Interval, parse_time
from sluice.operate.failures import Failures
from sluice.operate.maintain import Upkeep
from sluice.operate.sweep import Swept
from sluice.operate.verify import Verdict
from sluice.operate.workers import Workers
from sluice.spark.session import Spark
from sluice.spark.starting import lasting

Report = BatchReport | Upkeep | Swept | Verdict


@dataclass(frozen=True)
class Job:
    """Arguments of the process."""

    names: Sequence[str]
    config: Path
    run: Run
    start: str | None
    end: str | None
    keeps_failures: bool = True

    @cached_property
    def project(self) -> Project:
        """The project without broken pipelines, unless this job is about one of them."""
        sound, error = load_sound(self.config)
        if error and not all(name.partition(".")[0] in sound.pipelines for name in self.names):
            raise error
        return sound

    @cached_property
    def spark(self) -> Spark:
        return Spark(self.project.spark)

    @cached_property
    def failures(self) -> Failures:
        return Failures(self.project, self.run.id, are_kept=self.keeps_failures)

    def intervals(self, pipeline: str) -> list[Interval]:
        """Return the requested time, cut along the pipeline's schedule; empty if none was given."""
        if not self.start or not self.end:
            return []
        schedule = self.project.pipelines[pipeline].schedule
        bounds = (parse_time(bound, schedule.timezone) for bound in (self.start, self.end))
        return schedule.intervals(*bounds)

    def reports(self, step: "Step") -> Iterator[Report]:
        """Run the step of every table, inputs before the views over them.

        Failed tables, and those skipped because of them, have reports, too. The failure is raised
        when the rest is done. A time off a source's schedule is refused before any step runs.
        """
        graph = self.project.graph
        tables = [graph.table(name) for name in self.names]
        asked = {t.id: self.intervals(t.pipeline) for t in tables if _is_by_interval(t)}

        def take(spark: Spark, table: Table) -> Sequence[Report]:
            intervals = asked.get(table.id, ())
            return tuple(self.failures.attempt(table, lambda: step(self, spark, table), intervals))

        with Workers(self.spark) as workers:
            for done in workers.in_order(tables, graph, take):
                yield from done
        self.failures.raise_all()


def _is_by_interval(table: Table) -> bool:
    return table.spec.is_by_interval


Step = Callable[[Job, Spark, Table], Iterable[Report]]


def run_job(step: Step, argv: Sequence[str] | None = None, *, keeps_failures: bool = True) -> int:
    """Run the step of each requested table, report, and return the exit code.

    `keeps_failures`: the step is a batch, whose failure stands until a batch of the table succeeds.
    """
    arguments = _parser().parse_args(argv)
    _hear()
    told = _done(step, arguments, keeps_failures=keeps_failures)
    for name in arguments.names:
        passing("reporting", name)
    line = json.dumps(told, default=str)
    if arguments.report:
        Path(arguments.report).write_text(line, "utf-8")
    print(line, flush=True)
    return int(told["exit_code"])


def _hear() -> None:
    """Send Sluice's log to standard output, unless the caller has set up logging."""
    log = logging.getLogger("sluice")
    if not logging.getLogger().handlers and not log.handlers:
        log.addHandler(logging.StreamHandler(sys.stdout))
        log.setLevel(logging.INFO)


def _done(step: Step, arguments: argparse.Namespace, *, keeps_failures: bool) -> dict[str, Any]:
    reports: list[dict[str, Any]] = []
    # A stopped Spark Connect client complains of handles that the server closed with it.
    logging.getLogger("pyspark.sql.connect.logging").setLevel(logging.ERROR)
    try:
        job = _job(arguments, keeps_failures=keeps_failures)
        with lasting():
            reports.extend(asdict(report) for report in job.reports(step))
            job.spark.stop()
    except SluiceError as error:
        told = _failure(reports, error.message, error.hint, error.exit_code)
        return told | {"failed": [r["table"] for r in reports if r.get("outcome") == "failed"]}
    except Exception as error:  # noqa: BLE001 a job's last word: whatever it was, it is reported
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


def _job(arguments: argparse.Namespace, *, keeps_failures: bool) -> Job:
    run = Run(arguments.run_id, _pins(arguments.pin), arguments.full_refresh, arguments.allow_empty)
    asked = arguments.start, arguments.end
    return Job(arguments.names, arguments.config, run, *asked, keeps_failures)


def _pins(pins: Iterable[str]) -> Mapping[str, int]:
    try:
        return {name: int(version) for name, version in (pin.rsplit("=", 1) for pin in pins)}
    except ValueError:
        raise UsageError(f"--pin takes dimension=version, not {' '.join(pins)}") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("names", nargs="+", help="tables")
    parser.add_argument("--config", type=Path, default=Path("config"), help="its folder")
    parser.add_argument("--run-id", default="", help="the run that this step belongs to")
    parser.add_argument(
        "--start", help="the first instant of the data interval, local without a zone"
    )
    parser.add_argument("--end", help="the instant after its last")
    parser.add_argument("--pin", action="append", default=[], metavar="DIMENSION=VERSION")
    parser.add_argument("--full-refresh", action="store_true", help="do what is done already, too")
    parser.add_argument(
        "--allow-empty", action="store_true", help="let a delivery empty its interval"
    )
    parser.add_argument("--report", metavar="FILE", help="where to write the report, too")
    return parser
