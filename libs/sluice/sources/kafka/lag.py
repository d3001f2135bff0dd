"""Lag of a source behind its topic, as its brokers report it."""

from dataclasses import replace

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head
from sluice.delta.places.lake_layout import layout
from sluice.language.internal import DELIVERIES
from sluice.read.pending import Unread
from sluice.sources.kafka.client import Brokers
from sluice.sources.kafka.message import moment_of
from sluice.sources.kafka.offsets import OffsetRange
from sluice.sources.spec import Source
from sluice.sources.topic import Topic

ANSWER_S = 5.0  # a person waits for it


def unread_of(project: Project, table: Table, spec: Source, topic: Topic) -> tuple[Unread, ...]:
    """Return each partition's messages that were not read yet, at most, and the oldest one's time.

    Raises HistoryLost if they can't be read from the recorded place on.
    """
    kept_in = DELIVERIES if spec.keeps_deliveries else ""
    offsets = OffsetRange.of(head(layout(project).uri(table.id, kept_in)))
    brokers = replace(Brokers.of(table.id, topic), answer_s=ANSWER_S)
    found = brokers.describe()
    if offsets:
        offsets.check(found, table.id)
    offsets = offsets or OffsetRange.beginning(found, latest=topic.start == "latest")
    offsets = offsets.with_new_partitions(found)
    counts = offsets.lag(found)
    times = brokers.times(offsets.following, found.following) if any(counts.values()) else {}
    moments = {p: moment_of(at) for p, at in times.items()}
    return tuple(Unread(p, count, moments.get(p)) for p, count in sorted(counts.items()))
