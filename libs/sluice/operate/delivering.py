"""Tables that are delivered from outside, as commands and runs see them, whatever their kind.

Replay of rows in quarantine, after an expectation or a file was corrected.

An interval is read whole, as at its first delivery. Rows that are good now are added, rows that are
still bad stay in quarantine, and the others are unchanged. For a stream, micro-batches are read;
their files or rows are kept among its arrivals. A replay is safe to repeat and to interrupt. The
quarantine itself shows what is left to do, because it is replaced only after its interval was read.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable

from sluice.declare.project import Project
from sluice.declare.registry import kind
from sluice.declare.table import Table
from sluice.delta.intervals import NO_INTERVAL, Note, deliveries
from sluice.delta.places.lake_layout import layout
from sluice.engine import BatchReport
from sluice.engine.advance import Run
from sluice.errors import UsageError
from sluice.language.interval import Interval
from sluice.language.names import INTERVAL, INTERVALS, QUARANTINE
from sluice.read.scan import Scan
from sluice.read.snapshot import NotBuilt, Snapshot
from sluice.spark.session import Spark


@runtime_checkable
class Delivering(Protocol):
    """Kind whose rows are delivered from outside."""

    def deliver(
        self,
        spark: Spark,
        project: Project,
        table: Table,
        run: Run,
        interval: Interval | None = None,
    ) -> Iterator[BatchReport]:
        """Deliver that interval, or all that is new; report each batch when it is committed.

        A table delivered by interval needs one. `follow` is left to the caller.
        """

    def follow(
        self, spark: Spark, project: Project, table: Table, run: Run
    ) -> tuple[BatchReport, ...]:
        """Bring a table up to the deliveries that are kept beside it; do nothing without them."""

    def replay(
        self, spark: Spark, project: Project, table: Table, run: Run, intervals: Iterable[Interval]
    ) -> Iterator[BatchReport]:
        """Read intervals with quarantined rows again, even if their files have not changed.

        `follow` is left to the caller.
        """

    def rebuild(
        self, spark: Spark, project: Project, table: Table, run: Run, as_landed: bool
    ) -> tuple[BatchReport, bool] | None:
        """Read again what was delivered; return whether that ends the feed. None if it is kept."""

    def checks(self, project: Project, table: Table) -> Iterator[Callable[[], object]]:
        """Yield what raises an error if the next delivery can't succeed. Asks brokers, too."""

    def address(self, project: Project, table: Table) -> str:
        """Return the origin of the rows: a landing folder, a foreign table, or a topic.

        Raises UsageError if the environment lacks a connection.
        """

    def files_read(self, project: Project, table: Table, note: Note) -> tuple[str, ...]:
        """Return the files that a delivery has read; of another's table, its versions."""


@runtime_checkable
class Resuming(Protocol):
    """Kind whose tables may follow a place outside the lake."""

    def resume(self, project: Project, table: Table, run: Run, *, latest: bool) -> BatchReport:
        """Continue at the newest end, or the oldest, as the function `resume`."""


def delivering(table: Table) -> Delivering:
    """Return what delivers a table that is delivered from outside."""
    found = kind(table.kind)
    assert isinstance(found, Delivering)
    return found


def resume(project: Project, table: Table, run: Run, *, latest: bool) -> BatchReport:
    """Continue at the newest end, or the oldest. The gap is noted in the commit; no row changes.

    Raises UsageError if the table follows nothing, or if nothing was read yet.
    """
    if not table.spec.is_followed:
        raise UsageError(
            f"--from needs a table that follows a Kafka topic or a Delta table; {table.id} does not"
        )
    resuming = kind(table.kind)
    assert isinstance(resuming, Resuming)
    return resuming.resume(project, table, run, latest=latest)


def to_replay(
    project: Project, table: Table, start: datetime | None = None, end: datetime | None = None
) -> list[Interval]:
    """Return the intervals of [start, end) with quarantined rows; of a dimension, its one load.

    Starts no Spark. Raises UsageError for a table that has no quarantine.
    """
    if not table.is_delivered:
        raise UsageError(
            f"{table.id} is of kind {table.declared_kind}: only sources and dimensions quarantine "
            "rows"
        )
    moments = _quarantined_intervals(project, table)
    if table.spec.shares_files and NO_INTERVAL in moments:  # any interval brings the rows of none
        known = [d.interval.start for d in deliveries(layout(project).uri(table.id, INTERVALS))]
        moments = sorted({*moments, *known[-1:]} - {NO_INTERVAL})
    found = [_interval(project, table, moment) for moment in moments]
    if table.is_loaded:
        return found
    return [i for i in found if (not start or i.start >= start) and (not end or i.end <= end)]


def replay(
    spark: Spark, project: Project, table: Table, intervals: Iterable[Interval], run: Run
) -> Iterator[BatchReport]:
    """Read those intervals again, even if their files have not changed."""
    kind, every = delivering(table), tuple(intervals)
    alone = [(each,) for each in every] if table.spec.is_by_interval else [every]
    for some in alone if every else ():
        yield from kind.replay(spark, project, table, run, some)
        yield from kind.follow(spark, project, table, run)


def _quarantined_intervals(project: Project, table: Table) -> list[datetime]:
    uri = layout(project).uri(table.id, QUARANTINE)
    try:
        rows = Scan(Snapshot.open(table.name, uri)).read_unordered((INTERVAL,))
    except NotBuilt:
        return []
    return sorted({moment for page in rows for moment in page[INTERVAL].to_pylist()})


def _interval(project: Project, table: Table, start: datetime) -> Interval:
    """Return the interval as delivered; by the schedule, if its replay was interrupted."""
    if not table.spec.is_by_interval:
        return Interval(start, start + timedelta(microseconds=1))
    for known in deliveries(layout(project).uri(table.id, INTERVALS)):
        if known.interval.start == start:
            return known.interval
    return project.pipelines[table.pipeline].schedule.containing(start)
