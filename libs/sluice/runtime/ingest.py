"""Ingesting one interval of a source: its files replace what the interval delivered before.

What is left after the gate is compared with the interval's earlier delivery, and only the
difference is committed: a repeat changes nothing, a correction flows down as retractions and
insertions. A source with a key (or of change rows) keeps its deliveries in an internal table; its
own table is then advanced from them like a view.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changelog.diff import CHANGE, diff
from sluice.errors import ConfigError, LostRace, UsageError
from sluice.operators.operator import names
from sluice.operators.source import ID, INTERVAL, OP, POSITION, identified
from sluice.quality.tally import REASON
from sluice.runtime.batch import ATTEMPTS, Run, advance
from sluice.runtime.changes import operations, placed, unknown_word, without_repeats
from sluice.runtime.gating import Delivered, Passed, gated
from sluice.runtime.nodes import DELIVERIES, internal
from sluice.runtime.reading import BLOCK, ROW, read
from sluice.runtime.report import BatchReport, Clock
from sluice.runtime.session import Spark
from sluice.runtime.writing import Target, write
from sluice.specs.definition import definition
from sluice.specs.interval import Interval
from sluice.specs.project import Project
from sluice.specs.source import Source
from sluice.specs.table import Table
from sluice.storage import intervals, landing
from sluice.storage.feed_size import FeedSize
from sluice.storage.lake import layout
from sluice.storage.landing import LandedFile
from sluice.storage.position import Head, Position, head
from sluice.storage.table import snapshot

INTERVALS = "intervals"


@dataclass(frozen=True)
class Delivery:
    """One interval of one source: where it lies, what it replaces, where it goes."""

    table: Table
    spec: Source
    interval: Interval
    files: tuple[LandedFile, ...]
    fingerprint: str
    replaced: tuple[intervals.Delivery, ...]
    stored_as: str
    intervals_uri: str

    @property
    def is_delivered(self) -> bool:
        """Whether exactly these files were ingested for exactly this interval."""
        return any(
            d.interval == self.interval and d.files == self.fingerprint for d in self.replaced
        )

    @property
    def keeps_deliveries(self) -> bool:
        """Whether the source's table is computed from what was delivered."""
        return bool(self.spec.key or self.spec.change)


def ingest(
    spark: Spark, project: Project, table: Table, interval: Interval, run: Run
) -> tuple[BatchReport, ...]:
    """Deliver one interval of the grid. Safe to repeat; unchanged files are not read again."""
    delivery = plan_delivery(project, table, interval)
    reports = [_deliver(spark, project, delivery, run)]
    if delivery.keeps_deliveries:
        reports += advance(spark, project, table, run)
    return tuple(reports)


def plan_delivery(project: Project, table: Table, interval: Interval) -> Delivery:
    """What an interval's delivery would read and replace. Starts no Spark.

    Raises UsageError if the interval overlaps an earlier delivery only in part, or if the source
    declares `missing: fail` and there are no files.
    """
    spec = table.spec
    assert isinstance(spec, Source)
    lake = layout(project)
    zone = project.pipelines[table.pipeline].timezone
    path = landing.interval_path(project.resolve(spec.path), interval, zone)
    files = tuple(landing.list_files(path))
    if not files and spec.missing == "fail" and spec.format not in ("delta", "kafka"):
        raise UsageError(f"{table.id}: nothing was delivered at {path}", hint="`missing: fail`")
    uri = lake.uri(table.id, INTERVALS)
    known = intervals.replaced_by(intervals.deliveries(uri), interval, table.id)
    keeps = spec.key or spec.change
    stored_as = internal(table.id, DELIVERIES) if keeps else table.id
    print_ = landing.fingerprint(files, definition(table))
    return Delivery(table, spec, interval, files, print_, tuple(known), stored_as, uri)


def _deliver(spark: Spark, project: Project, delivery: Delivery, run: Run) -> BatchReport:
    uri = layout(project).uri(delivery.stored_as)
    before = head(uri)
    _check_definition(delivery.table, before)
    if delivery.is_delivered and before:
        return _unchanged(delivery, before)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _replace(spark, project, delivery, run, head(uri))
        except LostRace:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError


def _replace(
    spark: Spark, project: Project, delivery: Delivery, run: Run, before: Head | None
) -> BatchReport:
    clock = Clock()
    with clock.phase("session"):
        session = spark.tune(small=sum(f.size for f in delivery.files) < 64_000_000)
    position = _position(delivery, before, run)
    identity = Delivered(run.id, position.batch, delivery.interval.start, delivery.interval.end)
    parsed = _parse(session, project, delivery)
    with clock.timed("check", gated(project, delivery.table, parsed, identity)) as passed:
        new = _stored_rows(passed.rows, delivery)
        changelog = _difference(session, project, delivery, before, new)
        target = _target(project, delivery, before, passed.verdict.rows_read)
        intervals.withdraw(delivery.intervals_uri, delivery.interval)
        done = write(session, project.spark, target, changelog, position, clock)
    _record(delivery, passed, position.batch)
    return BatchReport(
        table=delivery.stored_as,
        kind="source",
        outcome="committed" if done.changed else "position",
        version=done.version,
        batch=position.batch,
        strategy="replace interval",
        rows_in=passed.verdict.rows_read,
        inserted=done.inserted,
        updated=done.updated,
        deleted=done.deleted,
        quarantined=passed.verdict.rows_quarantined,
        seconds=clock.seconds,
        warnings=(*_warnings(delivery), *passed.verdict.warnings),
        interval=(delivery.interval.start.isoformat(), delivery.interval.end.isoformat()),
    )


def _parse(session: SparkSession, project: Project, delivery: Delivery) -> DataFrame:
    spec = delivery.spec
    rows = read(session, _resolved(spec, project), delivery.files)
    if spec.time and not landing.has_placeholder(spec.path):
        rows = rows.where(_of_interval(spec.time, delivery.interval))
    reasons = [F.col(REASON), *_time_reasons(spec, delivery.interval)]
    if spec.change:
        reasons.append(unknown_word(spec.change))
    judged = rows.withColumn(REASON, F.coalesce(*reasons))
    if not delivery.keeps_deliveries:
        return judged.drop(BLOCK, ROW)
    return placed(judged, spec.key)


def _resolved(spec: Source, project: Project) -> Source:
    return spec.model_copy(update={"path": project.resolve(spec.path)}) if spec.path else spec


def _of_interval(time: str, interval: Interval) -> Column:
    at = F.col(f"`{time}`").cast("timestamp")
    return at.isNull() | ((at >= F.lit(interval.start)) & (at < F.lit(interval.end)))


def _time_reasons(spec: Source, interval: Interval) -> list[Column]:
    if not spec.time:
        return []
    at = F.col(f"`{spec.time}`").cast("timestamp")
    latest = spec.max_ahead.after(interval.end)
    ahead = F.when(
        at > F.lit(latest),
        f"column {spec.time} is more than {spec.max_ahead} ahead of the interval",
    )
    if landing.has_placeholder(spec.path):
        return [ahead]
    return [ahead, F.when(at.isNull(), f"column {spec.time} is null, so it is in no interval")]


def _stored_rows(rows: DataFrame, delivery: Delivery) -> DataFrame:
    """Accepted rows as they are stored: with their interval and identity."""
    spec, columns = delivery.spec, tuple(delivery.table.columns)
    if delivery.keeps_deliveries:
        rows = operations(rows, spec.change)
        columns = (*columns, OP)
        if spec.key:
            rows = without_repeats(rows, columns)
    known = (*columns, POSITION) if delivery.keeps_deliveries else columns
    interval = F.lit(delivery.interval.start).cast("timestamp").alias(INTERVAL)
    return identified(rows.select(*names(known)), columns).select(*names(known), ID, interval)


def _target(project: Project, delivery: Delivery, before: Head | None, rows: int) -> Target:
    uri = layout(project).uri(delivery.stored_as)
    size = FeedSize(sum(f.size for f in delivery.files), len(delivery.files), rows)
    return Target(uri, (INTERVAL, ID), before, size)


def _difference(
    session: SparkSession,
    project: Project,
    delivery: Delivery,
    before: Head | None,
    new: DataFrame,
) -> DataFrame:
    if before is None:
        return new.withColumn(CHANGE, F.lit("insert"))
    uri = layout(project).uri(delivery.stored_as)
    inside = (F.col(INTERVAL) >= F.lit(delivery.interval.start)) & (
        F.col(INTERVAL) < F.lit(delivery.interval.end)
    )
    old = snapshot(session, uri, before.version).where(inside)
    return diff(old, new, (INTERVAL, ID))


def _position(delivery: Delivery, before: Head | None, run: Run) -> Position:
    return Position(
        batch=before.next_batch if before else 1,
        attempt=uuid.uuid4().hex,
        kind="ingest",
        definition=definition(delivery.table),
        run=run.id,
    )


def _record(delivery: Delivery, passed: Passed, batch: int) -> None:
    verdict = passed.verdict
    intervals.record(
        delivery.intervals_uri,
        intervals.Delivery(
            delivery.interval,
            delivery.fingerprint,
            verdict.rows_read,
            verdict.rows_accepted,
            verdict.rows_quarantined,
            batch,
        ),
    )


def _warnings(delivery: Delivery) -> Sequence[str]:
    if delivery.files or delivery.spec.format in ("delta", "kafka"):
        return ()
    start = delivery.interval.start.isoformat()
    return (f"{delivery.table.id}: nothing was delivered for {start}; the interval has no rows",)


def _check_definition(table: Table, before: Head | None) -> None:
    built_by = before.position.definition if before and before.position else ""
    if built_by and built_by != definition(table):
        raise ConfigError(
            [f"{table.id} was ingested by another definition than the configuration has now"],
            hint=f"run `sluice rebuild {table.id}`, or take the change back",
        )


def _unchanged(delivery: Delivery, before: Head) -> BatchReport:
    return BatchReport(
        table=delivery.stored_as,
        kind="source",
        outcome="unchanged",
        version=before.version,
        batch=before.position.batch if before.position else None,
    )
