"""Topics as sources: their messages up to the run's start, batch by batch, each exactly once.

A batch is a separate interval, from the instant at which it was read. Its commit holds the place
that it reached in the topic, and the next one continues there. A killed batch is in no commit, so
it is read again. One killed before it was noted is also read again, without a change.

A backfill reads the messages of a time again, and they replace what they gave. What has arrived
since is delivered first, as by any run: messages of that time may be among it. Timestamps need not
follow the offsets, so each partition is read from its first message of that time on, up to the
recorded place. Messages that the topic no longer has keep their rows.

Messages that are judged again keep the moments of their batches. A replay takes them from
quarantine.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.declare.declared import OP
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta import intervals
from sluice.delta.intervals import deliveries
from sluice.delta.log.position import head
from sluice.delta.note_tables import read_rows
from sluice.delta.places.failpoint import passing
from sluice.engine import BatchReport
from sluice.engine.advance import Run
from sluice.engine.forgotten import WITHHELD
from sluice.errors import HistoryLost
from sluice.files.conversion import BLOCK, ROW
from sluice.files.reading import POSITION
from sluice.language.interval import INSTANT, Interval
from sluice.language.names import INTERVAL
from sluice.sources import Source
from sluice.sources.delivery import Delivery, next_moment, object_to_rows
from sluice.sources.kafka.client import Brokers, PolledMessages
from sluice.sources.kafka.offsets import (
    NOTHING,
    Batches,
    OffsetRange,
    Offsets,
    TopicDescription,
    fingerprint,
)
from sluice.sources.kafka.records import FormatReader, Message, arrange_messages, each_message
from sluice.sources.kafka.rows import message_of, reader_of, rows_of
from sluice.sources.origins import TopicOrigin, check_source
from sluice.sources.replacement import or_unchanged, replace_interval
from sluice.spark.session import Spark


@dataclass(frozen=True)
class TopicFeed(TopicOrigin):
    """A topic that is read; `reader`: of its messages' format."""

    reader: FormatReader

    @classmethod
    def of(cls, project: Project, table: Table) -> "TopicFeed":
        """Return the feed with its reader. Raises UsageError without the registry's connection."""
        spec = table.spec
        assert isinstance(spec, Source)
        assert spec.value
        key = () if spec.change and not spec.value.is_debezium else spec.key
        return cls(project, table, reader_of(spec.value, key, table.id))

    def read(
        self, spark: Spark, run: Run, interval: Interval | None = None
    ) -> Iterator[BatchReport]:
        """Deliver the messages that are there now, then read those of an interval again.

        Without any, nothing is committed. Raises HistoryLost if the topic no longer has what
        follows the recorded place, or any message of the interval, and DeliveriesLost if the notes
        of an earlier release lack the offsets.
        """
        reports = _read_new(spark, self, run)
        offsets = OffsetRange.of(head(self.kept_uri)) if interval else None
        if interval is None or offsets is None:
            return or_unchanged(self.project, self.table, reports)
        reports = chain(reports, _read_span(spark, self, offsets, interval, run))
        return or_unchanged(self.project, self.table, reports, interval)

    def replay(
        self, spark: Spark, run: Run, intervals: Iterable[Interval]
    ) -> Iterator[BatchReport]:
        """Judge the quarantined messages of those batches again, from the quarantine.

        Brokers are asked only for messages that were too large and no longer are. Safe to repeat: a
        message that was added already gives the same rows.
        """
        check_source(self.project, self.table, head(self.kept_uri))
        moments = sorted(interval.start for interval in intervals)
        return judge_again(spark, self, dict.fromkeys(moments, ()), run)

    def rows(self, messages: pa.Table, at: Interval, session: SparkSession) -> DataFrame:
        """Return the rows of messages that arrived at a moment, for the gate."""
        rows = rows_of(session, self.spec, messages, self.reader)
        known = object_to_rows(rows, self.spec, at)
        known = known.withColumn(POSITION, F.col(ROW)).drop(BLOCK, ROW)
        return known.drop(OP) if self.spec.change else known

    def delivery(self, moment: datetime, read: str) -> Delivery:
        """Return the delivery of a moment; `read`: the fingerprint of what its batch has read."""
        interval = Interval(moment, moment + INSTANT)
        return Delivery(self.table, self.spec, interval, self.topic.topic, fingerprint=read)


def _read_new(spark: Spark, source: TopicFeed, run: Run) -> Iterator[BatchReport]:
    """Deliver the messages that are there now, and yield a report of each batch."""
    before = head(source.kept_uri)
    check_source(source.project, source.table, before)
    brokers = Brokers.of(source.table.id, source.topic)
    found = brokers.describe()
    offsets = OffsetRange.of(before)
    if offsets:
        offsets.check(found, source.table.id)
        yield from _note_last(spark, source, brokers, offsets, found, run)
    else:
        offsets = OffsetRange.beginning(found, latest=source.topic.start == "latest")
    offsets = offsets.with_new_partitions(found)
    after = dict(before.position.topic) if before and before.position else {}
    batches = fetch_ahead(brokers.read(offsets.following, found.following))
    if not after and source.topic.start == "latest":
        batches = chain(
            [PolledMessages(dict(offsets.following))], batches
        )  # notes where the topic ended
    for nth, taken in enumerate(batches):
        if not nth:
            source.clear_quarantine(offsets.at)
        passing("read", source.table.id)
        start, following = offsets.following, taken.following
        at = next_moment(offsets.at)
        offsets = replace(offsets, start=start, following=following, at=at)
        place = offsets.to_dict()
        yield _commit_batch(spark, source, offsets, taken, after, run)
        after = place


def _note_last(
    spark: Spark,
    source: TopicFeed,
    brokers: Brokers,
    offsets: OffsetRange,
    description: TopicDescription,
    run: Run,
) -> Iterator[BatchReport]:
    """Read the last batch again if it has no note."""
    if not offsets.at or offsets.start == offsets.following:
        return
    if read_rows(source.intervals_uri, [("interval_start", "=", offsets.at)]):
        return
    start = {p: max(offset, description.first[p]) for p, offset in offsets.start.items()}
    taken = brokers.read(start, offsets.following)
    again = [message for each in taken for message in each_message(each.messages)]
    yield from judge_again(spark, source, {offsets.at: again}, run)


def _commit_batch(
    spark: Spark,
    source: TopicFeed,
    offsets: OffsetRange,
    polled: PolledMessages,
    after: dict[str, object],
    run: Run,
) -> BatchReport:
    assert offsets.at
    place = offsets.to_dict()
    delivery = source.delivery(offsets.at, fingerprint(place))
    delivery = replace(delivery, topic=place, after=after, message_bytes=polled.bytes)
    rows = partial(source.rows, polled.messages, delivery.interval)
    return replace_interval(spark, source.project, delivery, run, arrived=rows)


def fetch_ahead(batches: Generator[PolledMessages]) -> Iterator[PolledMessages]:
    """Yield batches in order; one more is fetched meanwhile, and never a second.

    What the brokers refuse is raised in the batch's turn, after the batches before it.
    """
    with closing(batches), ThreadPoolExecutor(1, "sluice-fetch") as pool:
        following = pool.submit(next, batches, None)
        while taken := following.result():
            following = pool.submit(next, batches, None)
            yield taken


def _read_span(
    spark: Spark, source: TopicFeed, offsets: OffsetRange, span: Interval, run: Run
) -> Iterator[BatchReport]:
    """Read a time's messages before that place again; warnings are in the first report."""
    brokers = Brokers.of(source.table.id, source.topic)
    found = brokers.describe()
    offsets.check(found, source.table.id)
    since = brokers.since(span.start, found)
    gone = tuple(_warn_of_lost(source, found, since))
    first = True
    for report in _judge_span(spark, source, brokers, offsets, since, span, run):
        yield replace(report, warnings=(*gone, *report.warnings)) if first else report
        first = False
    if gone and first:
        what = f"{source.topic.topic} has no delivered message of {span.format()} any more"
        raise HistoryLost(
            f"{source.table.id}: {what}; {gone[0]}",
            hint="newer messages were delivered; the rows of those messages stay",
        )


def _judge_span(
    spark: Spark,
    source: TopicFeed,
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
        yield from judge_again(spark, source, batches.by_moment(chosen), run)


def _warn_of_lost(
    source: TopicFeed, description: TopicDescription, since: Offsets
) -> Iterator[str]:
    """Yield a warning of each partition that may have lost messages of the time."""
    for p, first in sorted(description.first.items()):
        if first > 0 and since[p] <= first:
            yield (
                f"{source.table.id}: partition {p} begins at offset {first} now; the rows of "
                f"older messages stay"
            )


def judge_again(
    spark: Spark, source: TopicFeed, messages: Mapping[datetime, Sequence[Message]], run: Run
) -> Iterator[BatchReport]:
    """Judge messages of some moments, and those that these have in quarantine; yield the reports.

    The rows that the messages gave before are replaced. Safe to repeat.
    """
    noted = intervals.deliveries(source.intervals_uri)
    offsets = OffsetRange.of(head(source.kept_uri))
    read = {offsets.at: fingerprint(offsets.to_dict())} if offsets and offsets.at else {}
    read |= {d.interval.start: d.files for d in noted}
    for moment, given in messages.items():
        rows = read_rows(source.quarantine_uri, [(INTERVAL, "=", moment)])
        bad = [message_of(raw) for raw in {r["raw"] for r in rows if r["reason"] != WITHHELD}]
        every = {m[:2]: m for m in (*_complete(source, bad), *given)}
        known = [every[at] for at in sorted(every)]
        size = sum(len(m.key or b"") + len(m.value or b"") for m in known)
        delivery = source.delivery(moment, read.get(moment, NOTHING))
        delivery = replace(delivery, message_bytes=size, is_added=True)
        arrived = partial(source.rows, arrange_messages(known), delivery.interval)
        yield replace_interval(spark, source.project, delivery, run, arrived=arrived)


def _complete(source: TopicFeed, messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages.

    One kept without its bytes is read from the topic again, if that still has it and its size is
    allowed now.
    """
    limit, place = source.topic.max_message_bytes, OffsetRange.of(head(source.kept_uri))
    if not place or not any(0 < m.left_out <= limit for m in messages):
        yield from messages
        return
    brokers = Brokers.of(source.table.id, source.topic)
    found = brokers.describe()
    for message in messages:
        p, offset = message.partition, message.offset
        if 0 < message.left_out <= limit and place.can_read(found, p, offset):
            taken = brokers.read({p: offset}, {p: offset + 1})
            yield from (whole for each in taken for whole in each_message(each.messages))
        else:
            yield message
