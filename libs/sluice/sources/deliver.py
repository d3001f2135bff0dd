"""Delivery of a source, by interval or as it arrives: what commands and runs ask of it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head
from sluice.delta.notes.intervals import Note, check_kept, deliveries
from sluice.delta.places.lake_layout import layout
from sluice.engine.advance import Run
from sluice.engine.batch_report import BatchReport
from sluice.language.internal import INTERVALS
from sluice.language.interval import Interval
from sluice.read.pending import unread
from sluice.sources.foreign.versions import range_of, shown
from sluice.sources.ingest import check_source, follow
from sluice.sources.ingest import deliver as deliver_interval
from sluice.sources.kafka.backfill import backfill_topic
from sluice.sources.kafka.connection import client_settings
from sluice.sources.kafka.formats.registry import check_registry
from sluice.sources.landed import landed
from sluice.sources.rebuild import rebuild
from sluice.sources.spec import Source
from sluice.sources.stream import ingest_stream, replay_stream
from sluice.spark.session import Spark

__all__ = ["address", "checks", "deliver", "files_read", "follow", "rebuild", "replay"]


def deliver(
    spark: Spark,
    project: Project,
    table: Table,
    run: Run,
    interval: Interval | None = None,
) -> Iterator[BatchReport]:
    """Deliver an interval, or a stream as it is now.

    For a topic, the interval's messages are read again.
    """
    if interval is None:
        yield from ingest_stream(spark, project, table, run)
    elif table.spec.is_by_interval:
        yield deliver_interval(spark, project, table, interval, run)
    else:
        yield from backfill_topic(spark, project, table, interval, run)


def replay(
    spark: Spark, project: Project, table: Table, run: Run, intervals: Iterable[Interval]
) -> Iterator[BatchReport]:
    """Read intervals whole, as at their first delivery; of a stream, its micro-batches."""
    if table.spec.is_by_interval:
        again = replace(run, full_refresh=True)
        for interval in intervals:
            yield deliver_interval(spark, project, table, interval, again)
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


def address(project: Project, table: Table) -> str:
    """Return the landing folder, the foreign table, or the topic at its first broker."""
    spec = table.spec
    assert isinstance(spec, Source)
    if spec.kafka is None:
        return project.address(spec)
    settings = client_settings(spec.kafka.connection, table.id)
    return f"kafka://{settings['bootstrap.servers'].split(',')[0]}/{spec.kafka.topic}"


def files_read(project: Project, table: Table, note: Note) -> tuple[str, ...]:
    """Return the files that a delivery has read; of another's table, its place and versions."""
    spec = table.spec
    assert isinstance(spec, Source)
    if spec.delta and (read := range_of(note.files)):
        return (f"{project.resolve(spec.delta.path)}, {shown(*read[1:])}",)
    if spec.delivery == "stream":
        return ()
    return tuple(file.shown for file in landed(project, table, note.interval)[1])


def _check_intervals(project: Project, table: Table) -> None:
    lake = layout(project)
    noted, at = deliveries(lake.uri(table.id, INTERVALS)), head(lake.uri(table.delivered_to))
    check_source(project, table, at)
    check_kept(table.id, noted, at)
