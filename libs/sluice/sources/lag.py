"""Lag of a source behind its origin outside the lake: files, a topic's messages, table versions."""

from datetime import datetime

from sluice.declare.declared import FILES
from sluice.declare.meaning.definition import definition_of_deliveries
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head_as_found
from sluice.delta.notes.intervals import deliveries
from sluice.delta.places.lake_layout import layout
from sluice.language.internal import INTERVALS
from sluice.language.spans import spans
from sluice.read.pending import Outside, Unread
from sluice.sources.foreign.lag import unread_of as unread_in_table
from sluice.sources.kafka.lag import unread_of
from sluice.sources.landed import changed
from sluice.sources.spec import Source


def unread(project: Project, table: Table) -> tuple[Unread, ...]:
    """Return a topic's partitions, or a table, with what was not read; nothing of other sources."""
    spec = table.spec
    assert isinstance(spec, Source)
    if spec.delta:
        return unread_in_table(project, table, spec.of_files, spec.delta)
    return unread_of(project, table, spec, spec.kafka) if spec.kafka else ()


def outside(project: Project, table: Table, now: datetime) -> Outside:
    """Return the intervals that it does not reflect at that time; none of a stream.

    Whether an interval has changed is known only of sources that are read from files.
    """
    spec = table.spec
    assert isinstance(spec, Source)
    if not spec.is_by_interval:
        return Outside()
    noted = deliveries(layout(project).uri(table.id, INTERVALS))
    done = [span.interval for span in spans(note.interval for note in noted)]
    complete = project.pipelines[table.pipeline].complete_intervals(now)
    due = tuple(i for i in complete if not any(one.covers(i) for one in done))
    if spec.format not in FILES:
        return Outside(due)
    definitions = {definition_of_deliveries(table), _filled_by(project, table)}
    others = tuple(changed(project, table, noted, definitions))
    return Outside(
        due,
        tuple(interval for interval, files in others if files),
        tuple(interval for interval, files in others if not files),
    )


def _filled_by(project: Project, table: Table) -> str:
    """Return the definition of the newest delivery: another one is no news of files."""
    at = head_as_found(layout(project).uri(table.delivered_to))
    return at.position.definition if at and at.position else ""
