"""Delivery of a topic: its messages up to the run's start, batch by batch, each exactly once.

A batch is a separate interval, from the instant at which it was read. Its commit holds the place
that it reached in the topic, and the next one continues there. A killed batch is in no commit, so
it is read again. One killed before it was noted is also read again, without a change.
"""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head
from sluice.delta.notes.note_tables import delete_rows, read_rows
from sluice.delta.places.failpoint import passing
from sluice.delta.places.lake_layout import layout
from sluice.engine.advance import Run
from sluice.engine.batch_report import BatchReport
from sluice.language.hidden_columns import INTERVAL
from sluice.language.internal import QUARANTINE
from sluice.sources.ingest import check_source, or_unchanged, replace_interval
from sluice.sources.kafka.client import Brokers, PolledMessages
from sluice.sources.kafka.message import each_message
from sluice.sources.kafka.messages import MessageSource
from sluice.sources.kafka.offsets import INSTANT, OffsetRange, TopicDescription, fingerprint
from sluice.sources.kafka.replay import judged_again
from sluice.spark.session import Spark


def ingest_topic(spark: Spark, project: Project, table: Table, run: Run) -> Iterator[BatchReport]:
    """Deliver the messages that are there now. Without any, nothing is committed.

    Raises HistoryLost if the topic no longer has what follows the recorded place.
    """
    return or_unchanged(project, table, arrived(spark, MessageSource.of(project, table), run))


def arrived(spark: Spark, source: MessageSource, run: Run) -> Iterator[BatchReport]:
    """Deliver the messages that are there now, and yield a report of each batch."""
    before = head(source.kept_uri)
    check_source(source.project, source.table, before)
    brokers = Brokers.of(source.table.id, source.topic)
    found = brokers.describe()
    offsets = OffsetRange.of(before)
    if offsets:
        offsets.check(found, source.table.id)
        yield from _noted(spark, source, brokers, offsets, found, run)
    else:
        offsets = OffsetRange.beginning(found, latest=source.topic.start == "latest")
    offsets = offsets.with_new_partitions(found)
    after = dict(before.position.topic) if before and before.position else {}
    batches = fetched_ahead(brokers.read(offsets.following, found.following))
    if not after and source.topic.start == "latest":
        batches = chain(
            [PolledMessages(dict(offsets.following))], batches
        )  # notes where the topic ended
    for nth, taken in enumerate(batches):
        if not nth:
            _forget(source, offsets)
        passing("read", source.table.id)
        offsets = _reached(offsets, taken)
        plain = offsets.plain()
        yield _delivered(spark, source, offsets, taken, after, run)
        after = plain


def _noted(
    spark: Spark,
    source: MessageSource,
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
    yield from judged_again(spark, source, {offsets.at: again}, run)


def _reached(offsets: OffsetRange, polled: PolledMessages) -> OffsetRange:
    """Return the place after a batch; its moment is later than that of the batch before."""
    earliest = offsets.at + INSTANT if offsets.at else datetime.min.replace(tzinfo=UTC)
    at = max(datetime.now(UTC), earliest)
    return replace(offsets, start=offsets.following, following=polled.following, at=at)


def _delivered(
    spark: Spark,
    source: MessageSource,
    offsets: OffsetRange,
    polled: PolledMessages,
    after: dict[str, object],
    run: Run,
) -> BatchReport:
    assert offsets.at
    plain = offsets.plain()
    delivery = source.delivery(offsets.at, fingerprint(plain))
    delivery = replace(delivery, topic=plain, after=after, message_bytes=polled.bytes)
    rows = partial(source.rows, polled.messages, delivery.interval)
    return replace_interval(spark, source.project, delivery, run, arrived=rows)


def _forget(source: MessageSource, offsets: OffsetRange) -> None:
    """Delete what killed batches left in quarantine; their messages are read again."""
    uri = layout(source.project).uri(source.table.id, QUARANTINE)
    delete_rows(uri, f"{INTERVAL} > '{offsets.at.isoformat()}'" if offsets.at else "true")


def fetched_ahead(batches: Generator[PolledMessages]) -> Iterator[PolledMessages]:
    """Yield batches in order; one more is fetched meanwhile, and never a second.

    What the brokers refuse is raised in the batch's turn, after the batches before it.
    """
    with closing(batches), ThreadPoolExecutor(1, "sluice-fetch") as pool:
        following = pool.submit(next, batches, None)
        while taken := following.result():
            following = pool.submit(next, batches, None)
            yield taken
