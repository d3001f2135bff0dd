"""Delivery of somebody else's table: its commits up to now, in batches of whole ones.

The first batch is the whole table. A batch is a separate interval, from the instant at which it was
read. Its commit holds the place that it reached, and the next one continues there.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.feed_size import table_size
from sluice.delta.log.foreign import Foreign
from sluice.delta.log.opened import exists
from sluice.delta.log.position import Head, head
from sluice.delta.log.span import Part, Span, spans
from sluice.delta.notes.arrow import delete_rows, read_rows
from sluice.delta.notes.intervals import deliveries
from sluice.delta.places.failpoint import passing
from sluice.delta.places.lake import layout
from sluice.delta.reading.table import is_readable
from sluice.engine.advance import Run, advance
from sluice.engine.report import BatchReport
from sluice.errors import FeedVacuumed, InputReplaced
from sluice.language.internal import QUARANTINE
from sluice.sources.foreign.place import Place, span_of
from sluice.sources.foreign.read import INSTANT, Read
from sluice.sources.ingest import check_source, unchanged
from sluice.spark.session import Spark

NOTHING = -1  # the version before the first
MOST = 2**62
REREAD = "nothing was changed; `sluice rebuild {} --as-landed` reads the table as it is now"


def ingest_table(spark: Spark, project: Project, table: Table, run: Run) -> tuple[BatchReport, ...]:
    """Deliver the commits that are there now. Without any, nothing is committed.

    Raises HistoryLost if the table no longer has what follows the recorded place.
    """
    source = Read.of(project, table)
    before = head(source.kept_uri)
    check_source(project, table, before)
    reports = list(_deliver(spark, source, before, run))
    if not reports and (at := head(source.kept_uri)):
        reports.append(unchanged(table.delivered_to, at))
    if exists(source.kept_uri):
        reports += advance(spark, project, table, run)
    return tuple(reports)


def replay_table(
    spark: Spark, project: Project, table: Table, moments: Collection[datetime], run: Run
) -> tuple[BatchReport, ...]:
    """Read the batches of those moments again. Safe to repeat.

    Raises HistoryLost if the table no longer has what one of them has read.
    """
    source = Read.of(project, table)
    check_source(project, table, head(source.kept_uri))
    found = source.found()
    place = Place.of(head(source.kept_uri), table.id)
    noted = {d.interval.start: d.files for d in deliveries(source.intervals_uri)}
    if place and place.at:
        noted.setdefault(place.at, place.fingerprint())
    reports = [
        source.delivered(spark, found, *_again(source, found, noted.get(at, ""), at), run)
        for at in sorted(moments)
    ]
    return (*reports, *advance(spark, project, table, run))


def _deliver(spark: Spark, source: Read, before: Head | None, run: Run) -> Iterator[BatchReport]:
    found = source.found()
    place = Place.of(before, source.table.id)
    if place:
        place.check(found, source.table.id)
        yield from _noted(spark, source, place, found, run)
    after = dict(before.position.topic) if before and before.position else {}
    last = place or Place(found.table_id, NOTHING, NOTHING)
    bounds = source.foreign.max_rows, source.foreign.max_bytes
    some = spans(found.log, place.upto, found.version, *bounds) if place else [_whole(found)]
    for nth, span in enumerate(some):
        if not nth:
            _forget(source, place)
        passing("read", source.table.id)
        last = last.reached(found, span, _moment(last))
        report = source.delivered(spark, found, span, last, run, after)
        yield replace(report, warnings=(*_said(source, span), *report.warnings))
        after = last.plain()


def _whole(found: Foreign) -> Span:
    """Return the whole table, as if one commit had written it."""
    size = table_size(found.uri, found.version).bytes
    return Span(NOTHING, found.version, (Part(found.version, bytes=size),))


def _again(source: Read, found: Foreign, noted: str, at: datetime) -> tuple[Span, Place]:
    """Return what a batch has read, by its note."""
    read = span_of(noted)
    if read is None or read[0] != found.table_id:
        raise InputReplaced(
            f"{source.table.id}: the batch of {at.isoformat()} was read from another table than "
            f"the one that is at {found.uri} now",
            hint=REREAD.format(source.table.id),
        )
    _, after, upto = read
    if after == NOTHING and not is_readable(found.uri, upto):
        raise FeedVacuumed(
            f"{source.table.id}: version {upto} of {found.uri}, which the batch of "
            f"{at.isoformat()} has read, can't be read any more",
            hint=REREAD.format(source.table.id),
        )
    if after == NOTHING:
        span = _whole(replace(found, version=upto))
    else:
        span = next(spans(found.log, after, upto, MOST, MOST), Span(after, upto))
    return span, Place(found.table_id, after, upto, at=at)


def _noted(
    spark: Spark, source: Read, place: Place, found: Foreign, run: Run
) -> Iterator[BatchReport]:
    """Read the last batch again if it has no note."""
    if not place.at or read_rows(source.intervals_uri, [("interval_start", "=", place.at)]):
        return
    span, again = _again(source, found, place.fingerprint(), place.at)
    yield source.delivered(spark, found, span, again, run)


def _moment(last: Place) -> datetime:
    """Return now, or the instant after the batch before."""
    now = datetime.now(UTC)
    return max(now, last.at + INSTANT) if last.at else now


def _said(source: Read, span: Span) -> Iterator[str]:
    """Yield a warning for each commit that replaced all rows."""
    for what in span.replaced:
        yield f"{source.table.id}: {what} of {source.uri} replaced its rows; the difference is read"


def _forget(source: Read, place: Place | None) -> None:
    """Delete what killed batches left in quarantine; their commits are read again."""
    uri = layout(source.project).uri(source.table.id, QUARANTINE)
    since = place.at if place else None
    delete_rows(uri, f"_sluice_interval > '{since.isoformat()}'" if since else "true")
