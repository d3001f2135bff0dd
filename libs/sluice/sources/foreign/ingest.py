"""Delivery of somebody else's table: its commits up to now, in batches of whole ones.

The first batch is the whole table. A batch is a separate interval, from the instant at which it was
read. Its commit holds the place that it reached, and the next one continues there.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.commit_range import CommitRange, WeightedFiles, commit_ranges
from sluice.delta.log.feed_size import table_size
from sluice.delta.log.foreign_table import Foreign
from sluice.delta.log.position import Head, head
from sluice.delta.notes.intervals import deliveries
from sluice.delta.notes.note_tables import delete_rows, read_rows
from sluice.delta.places.failpoint import passing
from sluice.delta.places.lake_layout import layout
from sluice.delta.reading.spark_reads import is_readable
from sluice.engine.advance import Run
from sluice.engine.batch_report import BatchReport
from sluice.errors import FeedVacuumed, InputReplaced
from sluice.language.hidden_columns import INTERVAL
from sluice.language.internal import QUARANTINE
from sluice.sources.foreign.table_source import INSTANT, TableSource
from sluice.sources.foreign.versions import VersionRange, range_of
from sluice.sources.ingest import check_source, or_unchanged
from sluice.spark.session import Spark

NOTHING = -1  # the version before the first
MOST = 2**62
AS_LANDED = "nothing was changed; `sluice rebuild {} --as-landed` reads the table as it is now"


def ingest_table(spark: Spark, project: Project, table: Table, run: Run) -> Iterator[BatchReport]:
    """Deliver the commits that are there now. Without any, nothing is committed.

    Raises HistoryLost if the table no longer has what follows the recorded place.
    """
    source = TableSource.of(project, table)
    before = head(source.kept_uri)
    check_source(project, table, before)
    return or_unchanged(project, table, _deliver(spark, source, before, run))


def replay_table(
    spark: Spark, project: Project, table: Table, moments: Collection[datetime], run: Run
) -> Iterator[BatchReport]:
    """Read the batches of those moments again. Safe to repeat.

    Raises HistoryLost if the table no longer has what one of them has read.
    """
    source = TableSource.of(project, table)
    check_source(project, table, head(source.kept_uri))
    found = source.found()
    versions = VersionRange.of(head(source.kept_uri), table.id)
    noted = {d.interval.start: d.files for d in deliveries(source.intervals_uri)}
    if versions and versions.at:
        noted.setdefault(versions.at, versions.fingerprint())
    for at in sorted(moments):
        again = _again(source, found, noted.get(at, ""), at)
        yield source.delivered(spark, found, *again, run)


def _deliver(
    spark: Spark, source: TableSource, before: Head | None, run: Run
) -> Iterator[BatchReport]:
    found = source.found()
    versions = VersionRange.of(before, source.table.id)
    if versions:
        versions.check(found, source.table.id)
        yield from _noted(spark, source, versions, found, run)
    after = dict(before.position.topic) if before and before.position else {}
    last = versions or VersionRange(found.table_id, NOTHING, NOTHING)
    bounds = source.foreign.max_rows, source.foreign.max_bytes
    some = (
        commit_ranges(found.log, versions.upto, found.version, *bounds)
        if versions
        else [_whole(found)]
    )
    for nth, span in enumerate(some):
        if not nth:
            _forget(source, versions)
        passing("read", source.table.id)
        last = last.reached(found, span, _moment(last))
        report = source.delivered(spark, found, span, last, run, after)
        yield replace(report, warnings=(*_said(source, span), *report.warnings))
        after = last.plain()


def _whole(found: Foreign) -> CommitRange:
    """Return the whole table, as if one commit had written it."""
    size = table_size(found.uri, found.version).bytes
    return CommitRange(NOTHING, found.version, (WeightedFiles(found.version, bytes=size),))


def _again(
    source: TableSource, found: Foreign, noted: str, at: datetime
) -> tuple[CommitRange, VersionRange]:
    """Return what a batch has read, by its note."""
    read = range_of(noted)
    if read is None or read[0] != found.table_id:
        raise InputReplaced(
            f"{source.table.id}: the batch of {at.isoformat()} was read from another table than "
            f"the one that is at {found.uri} now",
            hint=AS_LANDED.format(source.table.id),
        )
    _, after, upto = read
    if after == NOTHING and not is_readable(found.uri, upto):
        raise FeedVacuumed(
            f"{source.table.id}: version {upto} of {found.uri}, which the batch of "
            f"{at.isoformat()} has read, can't be read any more",
            hint=AS_LANDED.format(source.table.id),
        )
    if after == NOTHING:
        span = _whole(replace(found, version=upto))
    else:
        span = next(commit_ranges(found.log, after, upto, MOST, MOST), CommitRange(after, upto))
    return span, VersionRange(found.table_id, after, upto, at=at)


def _noted(
    spark: Spark, source: TableSource, versions: VersionRange, found: Foreign, run: Run
) -> Iterator[BatchReport]:
    """Read the last batch again if it has no note."""
    if not versions.at or read_rows(source.intervals_uri, [("interval_start", "=", versions.at)]):
        return
    span, again = _again(source, found, versions.fingerprint(), versions.at)
    yield source.delivered(spark, found, span, again, run)


def _moment(last: VersionRange) -> datetime:
    """Return now, or the instant after the batch before."""
    now = datetime.now(UTC)
    return max(now, last.at + INSTANT) if last.at else now


def _said(source: TableSource, commits: CommitRange) -> Iterator[str]:
    """Yield a warning for each commit that replaced all rows."""
    for what in commits.replaced:
        yield f"{source.table.id}: {what} of {source.uri} replaced its rows; the difference is read"


def _forget(source: TableSource, versions: VersionRange | None) -> None:
    """Delete what killed batches left in quarantine; their commits are read again."""
    uri = layout(source.project).uri(source.table.id, QUARANTINE)
    since = versions.at if versions else None
    delete_rows(uri, f"{INTERVAL} > '{since.isoformat()}'" if since else "true")
