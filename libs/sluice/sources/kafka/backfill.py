"""Backfill of a time: the messages that bear it are read again, and replace what they gave.

What has arrived since is delivered first, as by any run: messages of that time may be among it. A
message belongs to the interval that contains its timestamp. Timestamps need not follow the offsets,
so each partition is read from its first message of that time on, up to the recorded place. Messages
that the topic no longer has keep their rows.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head
from sluice.delta.notes.intervals import deliveries
from sluice.engine.advance import Run
from sluice.engine.batch_report import BatchReport
from sluice.errors import HistoryLost
from sluice.language.interval import Interval
from sluice.sources.ingest import or_unchanged
from sluice.sources.kafka.client import Brokers
from sluice.sources.kafka.ingest import arrived, ingest_topic
from sluice.sources.kafka.message import each_message
from sluice.sources.kafka.messages import MessageSource
from sluice.sources.kafka.offsets import Batches, OffsetRange, Offsets, TopicDescription
from sluice.sources.kafka.replay import judged_again
from sluice.spark.session import Spark


def backfill_topic(
    spark: Spark, project: Project, table: Table, span: Interval, run: Run
) -> Iterator[BatchReport]:
    """Take what has arrived, then read the earlier messages of a time again. Safe to repeat.

    Raises HistoryLost if the topic no longer has any message of that time, and DeliveriesLost if
    the notes of an earlier release lack the offsets.
    """
    source = MessageSource.of(project, table)
    before = head(source.kept_uri)
    offsets = OffsetRange.of(before)
    if before is None or offsets is None:
        return ingest_topic(spark, project, table, run)
    reports = chain(arrived(spark, source, run), _again(spark, source, offsets, span, run))
    return or_unchanged(project, table, reports, span)


def _again(
    spark: Spark, source: MessageSource, offsets: OffsetRange, span: Interval, run: Run
) -> Iterator[BatchReport]:
    """Read a time's messages before that place again; warnings are in the first report."""
    brokers = Brokers.of(source.table.id, source.topic)
    found = brokers.describe()
    offsets.check(found, source.table.id)
    since = brokers.since(span.start, found)
    gone = tuple(_gone(source, found, since))
    first = True
    for report in _judged(spark, source, brokers, offsets, since, span, run):
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
    source: MessageSource,
    brokers: Brokers,
    offsets: OffsetRange,
    since: Offsets,
    span: Interval,
    run: Run,
) -> Iterator[BatchReport]:
    batches = Batches.of(deliveries(source.intervals_uri), offsets.topic_id, source.table.id)
    end = {p: offset for p, offset in offsets.following.items() if p in since}
    start = {p: min(since[p], offset) for p, offset in end.items()}
    for taken in brokers.read(start, end):
        chosen = [message for message in each_message(taken.messages) if message.moment in span]
        yield from judged_again(spark, source, batches.by_moment(chosen), run)


def _gone(source: MessageSource, description: TopicDescription, since: Offsets) -> Iterator[str]:
    """Yield a warning of each partition that may have lost messages of the time."""
    for p, first in sorted(description.first.items()):
        if first > 0 and since[p] <= first:
            yield (
                f"{source.table.id}: partition {p} begins at offset {first} now; the rows of "
                f"older messages stay"
            )
