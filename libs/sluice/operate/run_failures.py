"""Failures of a run: each is reported and kept, and stops only the tables that depend on it.

A table that fails has a report like that of a batch, as has a table skipped because of it.
`delta.notes.failures` keeps the failure until a batch of the table succeeds.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

import pyarrow as pa

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.notes.failures import Failure, clear, keep
from sluice.delta.places.faults import store_fault
from sluice.delta.places.lake_layout import layout
from sluice.engine.batch_report import BatchReport, IntervalBounds
from sluice.errors import SeveralFailed, SluiceError, Unforeseen
from sluice.language.internal import declared
from sluice.language.interval import Interval
from sluice.operate.events import Events
from sluice.spark.starting import lasting

R = TypeVar("R")
log = logging.getLogger(__name__)


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
            yield from self.skip(table, because)
            return
        step = self.events.begin(table)
        try:
            with named(table.id):
                for report in work():
                    if isinstance(report, BatchReport):
                        self._reports[table.id].append(report)
                    step.done(report)
                    yield report
        except SluiceError as error:
            step.fail(error)
            yield self.fail(table, error, intervals, blocks=_holds(blocks))
        else:
            step.end()
            self._succeed(table)

    def fail(
        self,
        table: Table,
        error: SluiceError,
        intervals: Sequence[Interval] = (),
        *,
        blocks: bool = True,
    ) -> BatchReport:
        """Note and keep a failure; return its report, which names what was not delivered."""
        self.errors.setdefault(table.id, error)
        if blocks:
            self.blocking.add(table.id)
        self._keep(table, error, blocks)
        return BatchReport(
            table.id,
            table.kind,
            "failed",
            error=error.message,
            hint=error.hint,
            exit_code=int(error.exit_code),
            undelivered=self._undelivered(table, intervals),
            timezone=self.project.pipelines[table.pipeline].timezone,
        )

    def skip(self, table: Table, because: Iterable[str]) -> Iterator[BatchReport]:
        """Yield the report of a table that was skipped, once in a run."""
        if not any(report.outcome == "skipped" for report in self._reports[table.id]):
            report = BatchReport(table.id, table.kind, "skipped", because=tuple(sorted(because)))
            self._reports[table.id].append(report)
            yield report

    def raise_all(self) -> None:
        """Raise the only failure, or all of them together."""
        self.events.flush()
        raise_all(self.errors)

    def _undelivered(
        self, table: Table, intervals: Sequence[Interval]
    ) -> tuple[IntervalBounds, ...]:
        done = {report.interval for report in self._reports[table.id]}
        bounds = ((i.start.isoformat(), i.end.isoformat()) for i in intervals)
        return tuple(bound for bound in bounds if bound not in done)

    def _keep(self, table: Table, error: SluiceError, blocks: bool) -> None:
        """Keep the failure; a lake that can't be written must not hide the failure itself."""
        code, now = int(error.exit_code), datetime.now(UTC)
        failure = Failure(table.id, now, error.message, error.hint, code, self.run_id, blocks)
        with suppress(OSError, pa.ArrowException):
            if self.are_kept:
                keep(layout(self.project), failure)

    def _succeed(self, table: Table) -> None:
        """Forget the kept failure, unless the run only found other intervals delivered already."""
        if table.id in self.errors or not self.are_kept:
            return
        done = self._reports[table.id]
        new = {declared(r.table) for r in done if r.outcome in ("committed", "position")}
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


@contextmanager
def named(table_id: str) -> Iterator[None]:
    """Raise a SluiceError instead of an unforeseen error, whose trace goes to the log."""
    try:
        with lasting():
            yield
    except SluiceError:
        raise
    except Exception as error:
        if fault := store_fault(error):
            raise fault from error
        log.info("%s failed", table_id, exc_info=True)
        first = str(error).strip().partition("\n")[0]
        what = f"{type(error).__name__}: {first}" if first else type(error).__name__
        raise Unforeseen(
            f"{table_id}: {what}", hint="a task's log has the trace, and `--debug` shows it"
        ) from error
