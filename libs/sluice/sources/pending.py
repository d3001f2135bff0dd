"""News of a source: an interval whose files differ from those of its last delivery."""

from sluice.declare.declared import FILES
from sluice.declare.meaning.definition import definition_of_deliveries
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.opened import exists
from sluice.delta.log.position import head
from sluice.delta.notes import intervals
from sluice.delta.places.lake_layout import layout
from sluice.delta.reading import landing
from sluice.language.internal import DELIVERIES, INTERVALS
from sluice.language.interval import Interval
from sluice.read.pending import pending
from sluice.sources.spec import Source


def nothing_new(project: Project, table: Table, interval: Interval | None) -> str | None:
    """Return the reason why there is nothing to ingest; None if there may be something."""
    spec = table.spec
    assert isinstance(spec, Source)
    if not spec.is_by_interval:
        return None
    if interval is None:
        return "this run has no data interval, so there is nothing to ingest"
    if spec.format not in FILES or _is_interrupted(project, table, spec):
        return None
    pipeline = project.pipelines[table.pipeline]
    known = intervals.deliveries(layout(project).uri(table.id, INTERVALS))
    kept_in = DELIVERIES if spec.keeps_deliveries else ""
    intervals.check_kept(table.id, known, head(layout(project).uri(table.id, kept_in)))
    delivered = {d.interval: d.files for d in known}
    for each in pipeline.schedule.intervals(interval.start, interval.end):
        path = project.resolve(landing.interval_path(spec.path, each, pipeline.timezone))
        files = landing.delivered(path, table.id)
        if delivered.get(each) != landing.fingerprint(files, definition_of_deliveries(table)):
            return None
    shown = interval.shown(pipeline.timezone)
    return f"{table.id} holds {shown} already, and its files are the same"


def _is_interrupted(project: Project, table: Table, spec: Source) -> bool:
    """Return whether a recorded delivery may be missing from the table, which is kept apart."""
    uri = layout(project).uri(table.id)
    return not exists(uri) or (spec.keeps_deliveries and bool(pending(project, table)))
