"""Backfill of a time: the messages that bear it are read again, and replace what they gave.

What has arrived since is delivered first, as by any run: messages of that time may be among it. A
message belongs to the interval that contains its timestamp. Timestamps need not follow the offsets,
so each partition is read from its first message of that time on, up to the recorded place. Messages
that the topic no longer has keep their rows.
"""

from collections.abc import Iterator
from dataclasses import replace

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head
from sluice.delta.notes.intervals import deliveries
from sluice.engine.advance import Run, advance
from sluice.engine.report import BatchReport
from sluice.errors import HistoryLost
from sluice.language.interval import Interval
from sluice.sources.ingest import unchanged
from sluice.sources.kafka.batches import Batches
from sluice.sources.kafka.client.broker import Brokers
from sluice.sources.kafka.client.message import one_by_one
from sluice.sources.kafka.client.place import Found, Offsets, Place
from sluice.sources.kafka.ingest import arrived, ingest_topic
from sluice.sources.kafka.messages import Read
from sluice.sources.kafka.replay import judged_again
from sluice.spark.session import Spark


def backfill_topic(
    spark: Spark, project: Project, table: Table, span: Interval, run: Run
) -> tuple[BatchReport, ...]:
    """Take what has arrived, then read the earlier messages of a time again. Safe to repeat.

    Raises HistoryLost if the topic no longer has any message of that time, and DeliveriesLost if
    the notes of an earlier release lack the offsets.
    """
    source = Read.of(project, table)
    before = head(source.uri)
    place = Place.of(before)
    if before is None or place is None:
        return ingest_topic(spark, project, table, run)
    reports = [*arrived(spark, source, run), *_again(spark, source, place, span, run)]
    reports = reports or [unchanged(table.delivered_to, before, span)]
    if source.spec.keeps_deliveries:
        reports += advance(spark, project, table, run)
    return tuple(reports)


def _again(
    spark: Spark, source: Read, place: Place, span: Interval, run: Run
) -> Iterator[BatchReport]:
    """Read a time's messages before that place again; warnings are in the first report."""
    brokers = Brokers.of(source.table.id, source.topic)
    found = brokers.describe()
    place.check(found, source.table.id)
    since = brokers.since(span.start, found)
    gone = tuple(_gone(source, found, since))
    first = True
    for report in _judged(spark, source, brokers, place, since, span, run):
        yield replace(report, warnings=(*gone, *report.warnings)) if first else report
        first = False
    if gone and first:
        what = f"{source.topic.topic} has no delivered message of {span.shown()} any more"
        raise HistoryLost(
            f"{source.table.id}: {what}; {gone[0]}",
            hint="newer messages were delivered; the rows of those messages stay",
        )


def _judged(
    spark: Spark,
    source: Read,
    brokers: Brokers,
    place: Place,
    since: Offsets,
    span: Interval,
    run: Run,
) -> Iterator[BatchReport]:
    batches = Batches.of(deliveries(source.intervals_uri), place.topic_id, source.table.id)
    end = {p: offset for p, offset in place.following.items() if p in since}
    start = {p: min(since[p], offset) for p, offset in end.items()}
    for taken in brokers.read(start, end):
        chosen = [message for message in one_by_one(taken.messages) if message.moment in span]
        yield from judged_again(spark, source, batches.by_moment(chosen), run)


def _gone(source: Read, found: Found, since: Offsets) -> Iterator[str]:
    """Yield a warning of each partition that may have lost messages of the time."""
    for p, first in sorted(found.first.items()):
        if first > 0 and since[p] <= first:
            yield (
                f"{source.table.id}: partition {p} begins at offset {first} now; the rows of "
                f"older messages stay"
            )
