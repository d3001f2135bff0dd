"""News outside the lake: intervals whose files a source does not reflect. Starts no Spark.

An interval is due if it ended and was not delivered. It has changed if its files differ from the
delivered ones, and is gone if it has no more files.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial

from sluice.declare.declared import FILES, Declared
from sluice.declare.meaning.definition import definition_of_deliveries
from sluice.declare.project import Pipeline, Project
from sluice.declare.table import Table
from sluice.delta.log.position import head_as_found
from sluice.delta.notes.intervals import deliveries
from sluice.delta.places.lake import layout
from sluice.delta.reading import landing
from sluice.language.internal import INTERVALS
from sluice.language.interval import Interval
from sluice.language.spans import spans
from sluice.operate.run import complete_intervals


@dataclass(frozen=True)
class Outside:
    """Intervals of one source that a run would deliver, in order."""

    due: tuple[Interval, ...] = ()
    changed: tuple[Interval, ...] = ()
    gone: tuple[Interval, ...] = ()

    @property
    def every(self) -> frozenset[Interval]:
        return frozenset((*self.due, *self.changed, *self.gone))


def outside(project: Project, table: Table, now: datetime) -> Outside:
    """Return the news of a source at that time; none for one that isn't delivered by interval.

    Whether an interval has changed is known only of sources that are read from files.
    """
    spec, pipeline = table.spec, project.pipelines[table.pipeline]
    if not isinstance(spec, Declared) or not spec.is_by_interval:
        return Outside()
    known = deliveries(layout(project).uri(table.id, INTERVALS))
    complete = complete_intervals(pipeline, pipeline.start_date, now) if pipeline.start_date else ()
    done = [span.interval for span in spans(d.interval for d in known)]
    due = tuple(i for i in complete if not any(one.covers(i) for one in done))
    if spec.format not in FILES:
        return Outside(due)
    listed = cache(partial(landing.delivered, reader=table.id))
    read = [(d, listed(_path(project, pipeline, spec, d.interval))) for d in known]
    definitions = {definition_of_deliveries(table), _filled_by(project, table)}
    others = [
        (delivery, files)
        for delivery, files in read
        if delivery.files not in {landing.fingerprint(files, d) for d in definitions}
    ]
    return Outside(
        due,
        tuple(d.interval for d, files in others if files),
        tuple(d.interval for d, files in others if not files),
    )


def news_of_sources(
    project: Project, pipeline: Pipeline, now: datetime
) -> dict[str, frozenset[Interval]]:
    """Return the intervals in which each source of the pipeline has news."""
    sources = (t for t in project.graph.pipeline(pipeline.name) if t.is_source)
    return {t.id: outside(project, t, now).every for t in sources}


def _path(project: Project, pipeline: Pipeline, spec: Declared, interval: Interval) -> str:
    return project.resolve(landing.interval_path(spec.path, interval, pipeline.timezone))


def _filled_by(project: Project, table: Table) -> str:
    """Return the definition of the newest delivery; a different one does not mean new files."""
    at = head_as_found(layout(project).uri(table.delivered_to))
    return at.position.definition if at and at.position else ""
