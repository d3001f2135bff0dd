"""Lag of a source behind what lies outside the lake: a topic's messages."""

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.read.pending import Unread
from sluice.sources.kafka.lag import unread_of
from sluice.sources.spec import Source


def unread(project: Project, table: Table) -> tuple[Unread, ...]:
    """Return a topic's partitions with what was not read of them; nothing of other sources."""
    spec = table.spec
    assert isinstance(spec, Source)
    return unread_of(project, table, spec, spec.kafka) if spec.kafka else ()
