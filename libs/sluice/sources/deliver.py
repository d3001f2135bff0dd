"""Delivery of a source, by interval or as it arrives: what commands and runs ask of it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head
from sluice.delta.notes.intervals import check_kept, deliveries
from sluice.delta.places.lake import layout
from sluice.engine.advance import Run
from sluice.engine.report import BatchReport
from sluice.language.internal import INTERVALS
from sluice.language.interval import Interval
from sluice.read.pending import unread
from sluice.sources.ingest import check_source, follow, ingest
from sluice.sources.ingest import deliver as deliver_interval
from sluice.sources.kafka.backfill import backfill_topic
from sluice.sources.kafka.formats.registry import check_registry
from sluice.sources.rebuild import rebuild
from sluice.sources.spec import Source
from sluice.sources.stream import ingest_stream, replay_stream
from sluice.spark.session import Spark

__all__ = ["checks", "deliver", "follow", "rebuild", "replay"]


def deliver(
    spark: Spark,
    project: Project,
    table: Table,
    run: Run,
    intervals: Sequence[Interval] = (),
    follows: bool = True,
) -> Iterator[BatchReport]:
    """Ingest interval by interval, or a stream as it is now.

    Of a topic, intervals are those whose messages are read again.
    """
    if not table.spec.is_by_interval and not intervals:
        yield from ingest_stream(spark, project, table, run)
    for interval in intervals:
        if not table.spec.is_by_interval:
            yield from backfill_topic(spark, project, table, interval, run)
        elif follows:
            yield from ingest(spark, project, table, interval, run)
        else:
            yield deliver_interval(spark, project, table, interval, run)


def replay(
    spark: Spark, project: Project, table: Table, run: Run, intervals: Iterable[Interval]
) -> Iterator[BatchReport]:
    """Read intervals whole, as at their first delivery; of a stream, its micro-batches."""
    if table.spec.is_by_interval:
        again = replace(run, full_refresh=True)
        yield from deliver(spark, project, table, again, tuple(intervals))
    else:
        yield from replay_stream(spark, project, table, [i.start for i in intervals], run)


def checks(project: Project, table: Table) -> Iterator[Callable[[], object]]:
    """Check the notes of intervals, or whether a topic or another's table can be read on."""
    spec = table.spec
    assert isinstance(spec, Source)
    if spec.is_by_interval:
        yield partial(_check_intervals, project, table)
    if spec.is_followed:
        yield partial(unread, project, table)
    if spec.value and spec.value.registry:
        yield partial(check_registry, spec.value, table.id)


def _check_intervals(project: Project, table: Table) -> None:
    lake = layout(project)
    noted, at = deliveries(lake.uri(table.id, INTERVALS)), head(lake.uri(table.delivered_to))
    check_source(project, table, at)
    check_kept(table.id, noted, at)
