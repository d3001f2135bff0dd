"""Place of a source that is to continue elsewhere in its topic."""

from typing import Any

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import Head
from sluice.sources.kafka.client import Brokers
from sluice.sources.kafka.messages import MessageSource
from sluice.sources.kafka.offsets import OffsetRange

GAP = "partition {}: the messages from offset {} to {} are skipped"


def moved(
    project: Project, table: Table, before: Head, *, latest: bool
) -> tuple[dict[str, Any], list[str]]:
    """Return the place at the topic's end or beginning, and the skipped part as text."""
    source, place = MessageSource.of(project, table), OffsetRange.of(before)
    assert place
    found = Brokers.of(table.id, source.topic).describe()
    there = place.moved_to(found, latest=latest)
    return there.plain(), [GAP.format(*gap) for gap in there.gaps[len(place.gaps) :]]
