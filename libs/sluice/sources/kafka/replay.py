"""Messages of earlier batches, judged again; they keep the moments of their batches.

A replay takes them from quarantine. Messages that are read from the topic again replace their
earlier rows.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head
from sluice.delta.notes import intervals
from sluice.delta.notes.note_tables import read_rows
from sluice.delta.places.lake_layout import layout
from sluice.engine.advance import Run
from sluice.engine.batch_report import BatchReport
from sluice.engine.judging.forgotten import REASON_GIVEN as FORGOTTEN
from sluice.language.hidden_columns import INTERVAL
from sluice.language.internal import QUARANTINE
from sluice.sources.ingest import check_source, replace_interval
from sluice.sources.kafka.client import Brokers
from sluice.sources.kafka.decoding import message_of
from sluice.sources.kafka.message import Message, arrange_messages, each_message
from sluice.sources.kafka.messages import MessageSource
from sluice.sources.kafka.offsets import NOTHING, OffsetRange, fingerprint
from sluice.spark.session import Spark


def replay_topic(
    spark: Spark, project: Project, table: Table, moments: Collection[datetime], run: Run
) -> Iterator[BatchReport]:
    """Judge the quarantined messages of those moments again, from the quarantine.

    Brokers are asked only for messages that were too large and no longer are. Safe to repeat: a
    message that was added already gives the same rows.
    """
    source = MessageSource.of(project, table)
    check_source(project, table, head(source.kept_uri))
    return judged_again(spark, source, dict.fromkeys(sorted(moments), ()), run)


def judged_again(
    spark: Spark, source: MessageSource, messages: Mapping[datetime, Sequence[Message]], run: Run
) -> Iterator[BatchReport]:
    """Judge messages of some moments, and those that these have in quarantine; yield the reports.

    The rows that the messages gave before are replaced. Safe to repeat.
    """
    noted = intervals.deliveries(source.intervals_uri)
    offsets = OffsetRange.of(head(source.kept_uri))
    read = {offsets.at: fingerprint(offsets.plain())} if offsets and offsets.at else {}
    read |= {d.interval.start: d.files for d in noted}
    for moment, given in messages.items():
        every = {m[:2]: m for m in (*_whole(source, _quarantined(source, moment)), *given)}
        known = [every[at] for at in sorted(every)]
        size = sum(len(m.key or b"") + len(m.value or b"") for m in known)
        delivery = source.delivery(moment, read.get(moment, NOTHING))
        delivery = replace(delivery, message_bytes=size, is_added=True)
        arrived = partial(source.rows, arrange_messages(known), delivery.interval)
        yield replace_interval(spark, source.project, delivery, run, arrived=arrived)


def _whole(source: MessageSource, messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages; those without their bytes come from the topic, if it has them and may."""
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


def _quarantined(source: MessageSource, moment: datetime) -> list[Message]:
    uri = layout(source.project).uri(source.table.id, QUARANTINE)
    rows = read_rows(uri, [(INTERVAL, "=", moment)])
    return list(map(message_of, {row["raw"] for row in rows if row["reason"] != FORGOTTEN}))
