"""Replay of rows in quarantine, after an expectation or a file was corrected.

An interval is read whole, as at its first delivery. Rows that are good now are added, rows that are
still bad stay in quarantine, and the others are unchanged. For a stream, micro-batches are read;
their files or rows are kept among its arrivals. A replay is safe to repeat and to interrupt. The
quarantine itself shows what is left to do, because it is replaced only after its interval was read.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.notes.intervals import deliveries
from sluice.delta.places.lake_layout import layout
from sluice.engine.advance import Run
from sluice.engine.batch_report import BatchReport
from sluice.errors import UsageError
from sluice.language.hidden_columns import INTERVAL
from sluice.language.internal import INTERVALS, QUARANTINE
from sluice.language.interval import Interval
from sluice.operate.delivering import delivering
from sluice.read.stored.scan import Scan
from sluice.read.stored.snapshot import NotBuilt, Snapshot
from sluice.spark.session import Spark


def to_replay(
    project: Project, table: Table, start: datetime | None = None, end: datetime | None = None
) -> list[Interval]:
    """Return the intervals of [start, end) with quarantined rows; of a dimension, its one load.

    Starts no Spark. Raises UsageError for a table that has no quarantine.
    """
    if not table.is_delivered:
        raise UsageError(
            f"{table.id} is of kind {table.kind}: only sources and dimensions quarantine rows"
        )
    found = [_interval(project, table, moment) for moment in _quarantined(project, table)]
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


def _quarantined(project: Project, table: Table) -> list[datetime]:
    uri = layout(project).uri(table.id, QUARANTINE)
    try:
        rows = Scan(Snapshot.open(table.name, uri)).unordered((INTERVAL,))
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
