"""Feeds of sources: what a source's origin has is delivered, or was delivered and is judged again.

Each kind of origin has its feed. A source that keeps its deliveries then follows them.
`deliveries_ahead` shows the next delivery, for `sluice plan`.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.intervals import deliveries
from sluice.delta.log.opened import exists
from sluice.delta.log.position import REBUILD, head
from sluice.delta.places.lake_layout import layout
from sluice.delta.writing.commit import commit_position
from sluice.engine import BatchReport
from sluice.engine.advance import Run, advance
from sluice.engine.batch_plan import Context
from sluice.engine.next_batch import NextBatch, with_marking
from sluice.engine.plan import nodes_of
from sluice.errors import UsageError
from sluice.language.interval import Interval, show, spans
from sluice.language.names import DELIVERIES, INTERVALS, internal
from sluice.meter import Clock
from sluice.read.pending import Unread
from sluice.read.status import missing
from sluice.sources import Source
from sluice.sources.delivery import grow
from sluice.sources.files import FileFeed, engine_of_delivery
from sluice.sources.origins import check_source, list_files, origin_of
from sluice.sources.replacement import KEY
from sluice.sources.table import TableFeed
from sluice.sources.topic import TopicFeed
from sluice.spark.engine import reason_for_spark
from sluice.spark.session import Spark
from sluice.terminal.output import pluralize


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


WORDS = ("missing between them", "due", "with other files now", "without files now")


def deliveries_ahead(
    project: Project, table: Table, now: datetime, redefined: Mapping[str, str]
) -> Iterator[NextBatch]:
    """Yield the next delivery: intervals, or what has arrived of a stream."""
    batch = with_marking(Context.of(project), _ingest(project, table, now, redefined), KEY)
    yield (
        _with_unread(batch, origin_of(project, table).unread()) if table.spec.is_followed else batch
    )


def _ingest(
    project: Project, table: Table, now: datetime, redefined: Mapping[str, str]
) -> NextBatch:
    known = deliveries(layout(project).uri(table.id, INTERVALS))
    zone = project.pipelines[table.pipeline].timezone
    last = f", the last one of {show(known[-1].interval.start, zone)}" if known else ""
    is_kept = known and nodes_of(table, project.graph)
    written = internal(table.id, DELIVERIES) if is_kept else table.id
    news = origin_of(project, table).outside(now)
    moved = (news.due, news.changed, news.gone)
    found = (missing(project, table, known), *(spans(some, zone) for some in moved))
    said = (
        f"; {w}: {', '.join(map(str, some))}" for w, some in zip(WORDS, found, strict=True) if some
    )
    gaps, new, changed, gone = map(tuple, found)
    reason = f"{len(known)} delivered{last}{''.join(said)}"
    is_done = table.spec.is_by_interval and known and not any(found)
    way = "nothing" if is_done else "ingest"
    step = NextBatch(written, way, reason, missing=gaps, due=new, changed=changed, gone=gone)
    if news.every and written not in redefined:
        step = _with_engine(project, table, step, sorted(news.every))
    if what := redefined.get(written):
        files = [file for d in known for file in list_files(project, table, d.interval)[1]]
        step = replace(step, next=REBUILD, reason=f"{what}; {reason}", files=len(files))
        rows, size = sum(d.rows_read for d in known), sum(file.size for file in files)
        return replace(step, rows=rows, bytes=size)
    return step


def _with_engine(
    project: Project, table: Table, step: NextBatch, some: Sequence[Interval]
) -> NextBatch:
    """Return the step with what is to be delivered, and the engine of the largest delivery."""
    landing = {interval: list_files(project, table, interval)[1] for interval in some}
    sizes = {interval: sum(file.size for file in files) for interval, files in landing.items()}
    largest = max(sizes, key=sizes.__getitem__)
    engine = engine_of_delivery(project, table, largest)
    return replace(
        step,
        reason="; ".join([step.reason, *reason_for_spark(engine)]),
        engine=engine,
        bytes=sum(sizes.values()),
        files=sum(map(len, landing.values())),
    )


def _with_unread(step: NextBatch, parts: tuple[Unread, ...]) -> NextBatch:
    """Return the step with the messages or versions that are there to be read."""
    count = sum(part.messages for part in parts)
    since = min((part.since for part in parts if part.since), default=None)
    waits = f" since {show(since)}" if since else ""
    what = parts[0].what if parts else "message"
    reason = f"{pluralize(count, what)} to read{waits}; {step.reason}"
    if step.next != "ingest":
        return replace(step, reason=reason)
    way = "ingest" if count or not parts else "nothing"
    return replace(step, next=way, reason=reason, rows=count if what == "message" else step.rows)
