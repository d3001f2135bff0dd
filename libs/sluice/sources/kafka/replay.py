"""Replay of messages in quarantine: they are judged again as the quarantine keeps them."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head
from sluice.delta.notes.arrow import read_table
from sluice.delta.places.lake import layout
from sluice.engine.advance import Run, advance
from sluice.engine.report import BatchReport
from sluice.language.internal import QUARANTINE
from sluice.language.interval import Interval
from sluice.sources.ingest import check_source, replace_interval
from sluice.sources.kafka.broker import Brokers, Message
from sluice.sources.kafka.kept import message_of
from sluice.sources.kafka.messages import INSTANT, Read
from sluice.sources.kafka.place import Place
from sluice.spark.session import Spark


def replay_topic(
    spark: Spark, project: Project, table: Table, moments: Collection[datetime], run: Run
) -> tuple[BatchReport, ...]:
    """Judge the quarantined messages of those moments again, as the quarantine keeps them.

    Brokers are asked only for messages that were too large and are not any more. Safe to repeat: a
    message that was added already gives the same rows.
    """
    source = Read.of(project, table)
    check_source(project, table, head(source.uri))
    reports = [_replayed(spark, source, moment, run) for moment in sorted(moments)]
    if source.spec.keeps_deliveries:
        reports += advance(spark, project, table, run)
    return tuple(reports)


def _replayed(spark: Spark, source: Read, moment: datetime, run: Run) -> BatchReport:
    span = Interval(moment, moment + INSTANT)
    messages = list(_whole(source, _quarantined(source, moment)))
    size = sum(len(m.key or b"") + len(m.value or b"") for m in messages)
    delivery = replace(source.delivery(span), message_bytes=size, is_added=True)
    return replace_interval(
        spark, source.project, delivery, run, arrived=partial(source.rows, messages, span)
    )


def _whole(source: Read, messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages; those without their bytes come from the topic, if it has them and may."""
    limit, place = source.topic.max_message_bytes, Place.of(head(source.uri))
    if not place or not any(0 < m.left_out <= limit for m in messages):
        yield from messages
        return
    brokers = Brokers.of(source.table.id, source.topic)
    found = brokers.describe()
    for message in messages:
        p, offset = message.partition, message.offset
        if 0 < message.left_out <= limit and place.can_read(found, p, offset):
            taken = brokers.read({p: offset}, {p: offset + 1})
            yield from (whole for each in taken for whole in each.messages)
        else:
            yield message


def _quarantined(source: Read, moment: datetime) -> list[Message]:
    rows = read_table(layout(source.project).uri(source.table.id, QUARANTINE)).to_pylist()
    kept = {r["raw"] for r in rows if r["_sluice_interval"] == moment}
    return sorted(map(message_of, kept), key=lambda m: (m.partition, m.offset))
