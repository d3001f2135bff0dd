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
from sluice.delta.log.opened import exists
from sluice.delta.log.position import head
from sluice.delta.notes.arrow import delete_rows, read_rows
from sluice.delta.places.failpoint import passing
from sluice.delta.places.lake import layout
from sluice.engine.advance import Run, advance
from sluice.engine.report import BatchReport
from sluice.language.internal import QUARANTINE
from sluice.sources.ingest import check_source, replace_interval, unchanged
from sluice.sources.kafka.batches import INSTANT, fingerprint
from sluice.sources.kafka.client.broker import Brokers, Taken
from sluice.sources.kafka.client.message import one_by_one
from sluice.sources.kafka.client.place import Found, Place
from sluice.sources.kafka.messages import Read
from sluice.sources.kafka.replay import judged_again
from sluice.spark.session import Spark


def ingest_topic(spark: Spark, project: Project, table: Table, run: Run) -> tuple[BatchReport, ...]:
    """Deliver the messages that are there now. Without any, nothing is committed.

    Raises HistoryLost if the topic no longer has what follows the recorded place.
    """
    source = Read.of(project, table)
    reports = list(arrived(spark, source, run))
    if not reports and (at := head(source.uri)):
        reports.append(unchanged(table.delivered_to, at))
    if source.spec.keeps_deliveries and exists(source.uri):
        reports += advance(spark, project, table, run)
    return tuple(reports)


def arrived(spark: Spark, source: Read, run: Run) -> Iterator[BatchReport]:
    """Deliver the messages that are there now, and yield a report of each batch."""
    before = head(source.uri)
    check_source(source.project, source.table, before)
    brokers = Brokers.of(source.table.id, source.topic)
    found = brokers.describe()
    place = Place.of(before)
    if place:
        place.check(found, source.table.id)
        yield from _noted(spark, source, brokers, place, found, run)
    else:
        place = Place.beginning(found, latest=source.topic.start == "latest")
    place = place.with_new_partitions(found)
    after = dict(before.position.topic) if before and before.position else {}
    batches = fetched_ahead(brokers.read(place.following, found.following))
    if not after and source.topic.start == "latest":
        batches = chain([Taken(dict(place.following))], batches)  # notes where the topic ended
    for nth, taken in enumerate(batches):
        if not nth:
            _forget(source, place)
        passing("read", source.table.id)
        place = _reached(place, taken)
        plain = place.plain()
        yield _delivered(spark, source, place, taken, after, run)
        after = plain


def _noted(
    spark: Spark, source: Read, brokers: Brokers, place: Place, found: Found, run: Run
) -> Iterator[BatchReport]:
    """Read the last batch again if it has no note."""
    if not place.at or place.start == place.following:
        return
    if read_rows(source.intervals_uri, [("interval_start", "=", place.at)]):
        return
    start = {p: max(offset, found.first[p]) for p, offset in place.start.items()}
    taken = brokers.read(start, place.following)
    again = [message for each in taken for message in one_by_one(each.messages)]
    yield from judged_again(spark, source, {place.at: again}, run)


def _reached(place: Place, taken: Taken) -> Place:
    """Return the place after a batch; its moment is later than that of the batch before."""
    earliest = place.at + INSTANT if place.at else datetime.min.replace(tzinfo=UTC)
    at = max(datetime.now(UTC), earliest)
    return replace(place, start=place.following, following=taken.following, at=at)


def _delivered(
    spark: Spark, source: Read, place: Place, taken: Taken, after: dict[str, object], run: Run
) -> BatchReport:
    assert place.at
    plain = place.plain()
    delivery = source.delivery(place.at, fingerprint(plain))
    delivery = replace(delivery, topic=plain, after=after, message_bytes=taken.bytes)
    rows = partial(source.rows, taken.messages, delivery.interval)
    return replace_interval(spark, source.project, delivery, run, arrived=rows)


def _forget(source: Read, place: Place) -> None:
    """Delete what killed batches left in quarantine; their messages are read again."""
    uri = layout(source.project).uri(source.table.id, QUARANTINE)
    delete_rows(uri, f"_sluice_interval > '{place.at.isoformat()}'" if place.at else "true")


def fetched_ahead(batches: Generator[Taken]) -> Iterator[Taken]:
    """Yield batches in order; one more is fetched meanwhile, and never a second.

    What the brokers refuse is raised in the batch's turn, after the batches before it.
    """
    with closing(batches), ThreadPoolExecutor(1, "sluice-fetch") as pool:
        following = pool.submit(next, batches, None)
        while taken := following.result():
            following = pool.submit(next, batches, None)
            yield taken
