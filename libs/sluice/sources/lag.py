"""Lag of a source behind its origin outside the lake: a topic's messages, a table's versions."""

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.read.pending import Unread
from sluice.sources.foreign.lag import unread_of as unread_in_table
from sluice.sources.kafka.lag import unread_of
from sluice.sources.spec import Source


def unread(project: Project, table: Table) -> tuple[Unread, ...]:
    """Return a topic's partitions, or a table, with what was not read; nothing of other sources."""
    spec = table.spec
    assert isinstance(spec, Source)
    if spec.delta:
        return unread_in_table(project, table, spec.of_files, spec.delta)
    return unread_of(project, table, spec, spec.kafka) if spec.kafka else ()
