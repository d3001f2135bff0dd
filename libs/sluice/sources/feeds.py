"""Feeds of a source: each delivers what its origin has, and what it delivered once more.

There is one for each kind of origin. A source that keeps its deliveries then follows them.
"""

import uuid
from dataclasses import replace

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.opened import exists
from sluice.delta.log.position import head
from sluice.delta.places.lake_layout import layout
from sluice.delta.writing.commit import commit_position
from sluice.engine.advance import Run, advance
from sluice.engine.batch_report import BatchReport, Clock
from sluice.errors import UsageError
from sluice.sources.delivery import grow
from sluice.sources.files import FileFeed
from sluice.sources.origins import check_source, origin_of
from sluice.sources.spec import Source
from sluice.sources.table import TableFeed
from sluice.sources.topic import TopicFeed
from sluice.spark.session import Spark


def feed_of(project: Project, table: Table) -> FileFeed | TopicFeed | TableFeed:
    """Return the feed of the origin that a source declares.

    `read` delivers what is there now, or an interval; `replay` judges the deliveries of intervals
    again. Both yield a report of each delivery, and change nothing if repeated.
    """
    spec = table.spec
    assert isinstance(spec, Source)
    if spec.kafka:
        return TopicFeed.of(project, table)
    return TableFeed(project, table) if spec.delta else FileFeed(project, table)


def follow(spark: Spark, project: Project, table: Table, run: Run) -> tuple[BatchReport, ...]:
    """Bring a source up to the deliveries that it keeps; do nothing for other sources.

    A topic or table that has never had rows leaves nothing to wait for.
    """
    spec, kept = table.spec, layout(project).uri(table.delivered_to)
    assert isinstance(spec, Source)
    if not spec.keeps_deliveries or (spec.is_followed and not exists(kept)):
        return ()
    return advance(spark, project, grow(layout(project), table), run)


def resume(project: Project, table: Table, run: Run, *, latest: bool) -> BatchReport:
    """Continue at the newest end, or the oldest, after lost history.

    The gap is noted in the commit; no row changes. Raises UsageError if nothing was read yet.
    """
    origin = origin_of(project, table)
    before = head(origin.kept_uri)
    check_source(project, table, before)
    if before is None or before.position is None or not before.position.topic:
        raise UsageError(
            f"{table.id} has read nothing yet", hint=f"`sluice ingest {table.id}` reads the first"
        )
    place, gaps = origin.move(before, latest=latest)
    position = replace(
        before.position,
        batch=before.next_batch,
        attempt=uuid.uuid4().hex,
        kind="resume",
        run=run.id,
        topic=place,
    )
    clock = Clock()
    with clock.phase("commit"):
        done = commit_position(before, position)
    warnings = tuple(f"{table.id}: {gap}" for gap in gaps)
    report = BatchReport.of(table.delivered_to, "source", done, clock)
    return replace(report, batch=position.batch, strategy="resume", warnings=warnings)
