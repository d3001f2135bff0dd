"""News of a source: an interval that was not delivered, or whose files have changed since."""

from sluice.declare.declared import FILES
from sluice.declare.meaning.definition import definition_of_deliveries
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.opened import exists
from sluice.delta.log.position import head
from sluice.delta.notes.intervals import check_kept, deliveries
from sluice.delta.places.lake_layout import layout
from sluice.language.internal import INTERVALS
from sluice.language.interval import Interval
from sluice.read.pending import pending
from sluice.sources.landed import changed
from sluice.sources.spec import Source


def nothing_new(project: Project, table: Table, interval: Interval | None) -> str | None:
    """Return the reason why there is nothing to ingest; None if there may be something."""
    spec, pipeline = table.spec, project.pipelines[table.pipeline]
    assert isinstance(spec, Source)
    if not spec.is_by_interval:
        return None
    if interval is None:
        return "this run has no data interval, so there is nothing to ingest"
    if spec.format not in FILES or _is_interrupted(project, table, spec):
        return None
    known = {note.interval: note for note in deliveries(layout(project).uri(table.id, INTERVALS))}
    check_kept(table.id, [*known.values()], head(layout(project).uri(table.delivered_to)))
    asked = pipeline.schedule.intervals(interval.start, interval.end)
    if not known.keys() >= {*asked}:
        return None
    noted, as_now = [known[each] for each in asked], {definition_of_deliveries(table)}
    if any(changed(project, table, noted, as_now)):
        return None
    shown = interval.shown(pipeline.timezone)
    return f"{table.id} holds {shown} already, and its files are the same"


def _is_interrupted(project: Project, table: Table, spec: Source) -> bool:
    """Return whether a recorded delivery may be missing from the table, which is kept apart."""
    uri = layout(project).uri(table.id)
    return not exists(uri) or (spec.keeps_deliveries and bool(pending(project, table)))
