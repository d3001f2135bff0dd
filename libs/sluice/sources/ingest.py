"""Ingest of one interval of a source: its files replace the interval's earlier delivery.

The rows that pass the gate are compared with the earlier delivery, and only the difference is
committed. A repeat changes nothing; a correction flows down as retractions and insertions. A source
with a key (or of change rows) keeps its deliveries in an internal table. Its own table is then
advanced from them like a view.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changes.diff import diff, inserted
from sluice.declare.definition import definition_of_deliveries, meaning_of_deliveries
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.feed_size import FeedSize
from sluice.delta.log.position import Head, Pin, Position, head
from sluice.delta.log.times import may_hold
from sluice.delta.notes import intervals
from sluice.delta.places.lake import layout
from sluice.delta.reading import landing
from sluice.delta.reading.table import snapshot
from sluice.delta.writing.columns import add_columns
from sluice.engine.advance import Run, advance
from sluice.engine.committing.writing import Target, write
from sluice.engine.context import Context
from sluice.engine.judging.gating import Passed, gated
from sluice.engine.judging.quarantining import Delivered
from sluice.engine.planning.redefinition import check_definition, replaceable
from sluice.engine.query.operator import names
from sluice.engine.report import BatchReport, Clock
from sluice.engine.retries import naming_faults, tried
from sluice.errors import LostRace
from sluice.files.marks import ID, INTERVAL
from sluice.files.reading import Reading, is_of_files
from sluice.interpreter.presence import is_here, rehearse
from sluice.language.interval import Interval
from sluice.sources.delivery import Arrived, Delivery, arriving, plan_delivery, stored_rows
from sluice.sources.emptied import Emptied
from sluice.sources.evolution import grow
from sluice.sources.spec import Source
from sluice.spark.session import Spark

KEY = (INTERVAL, ID)
Arriving = Callable[[SparkSession], DataFrame]

__all__ = ["deliver", "follow", "ingest", "replace_interval"]


def ingest(
    spark: Spark, project: Project, table: Table, interval: Interval, run: Run
) -> tuple[BatchReport, ...]:
    """Deliver one interval of the grid, then bring the source up to it. Safe to repeat."""
    delivered = deliver(spark, project, table, interval, run)
    return (delivered, *follow(spark, project, table, run))


def deliver(
    spark: Spark, project: Project, table: Table, interval: Interval, run: Run
) -> BatchReport:
    """Deliver one interval of the grid. Unchanged files are not read again."""
    plan = partial(plan_delivery, project, table, interval, allow_empty=run.allow_empty)
    delivery = plan()
    before = head(layout(project).uri(delivery.stored_as))
    check_source(project, table, before)
    intervals.check_kept(table.id, delivery.noted, before)
    if delivery.is_delivered and before and not run.full_refresh:
        return unchanged(delivery.stored_as, before, delivery.interval)
    return replace_interval(spark, project, delivery, run, again=plan)


def follow(spark: Spark, project: Project, table: Table, run: Run) -> tuple[BatchReport, ...]:
    """Bring a source up to the deliveries that it keeps; do nothing for other sources."""
    assert isinstance(table.spec, Source)
    if not table.spec.keeps_deliveries:
        return ()
    return advance(spark, project, grow(project, table), run)


def check_source(project: Project, table: Table, deliveries: Head | None) -> None:
    """Raise ConfigError if the source or its deliveries were filled by another definition."""
    check_definition(table, deliveries, meaning_of_deliveries(table))
    assert isinstance(table.spec, Source)
    if deliveries is None or table.spec.key:
        check_definition(table, head(layout(project).uri(table.id)))


def replace_interval(
    spark: Spark,
    project: Project,
    delivery: Delivery,
    run: Run,
    *,
    arrived: Arriving | None = None,
    inputs: Mapping[str, Pin] | None = None,
    again: Callable[[], Delivery] | None = None,
) -> BatchReport:
    """Replace the interval's rows with those of the delivery.

    `arrived` returns the delivery's rows, if they are not in its files; `inputs`: the versions that
    they were read from. `again` returns the current delivery for a retry; without it, a retry
    uses the same one.
    """
    first = iter([delivery])

    def work() -> BatchReport:
        now = next(first, None) or (again() if again else delivery)
        at = head(layout(project).uri(now.stored_as))
        _check_topic(now, at)
        position = _position(now, at, run, inputs or {})
        with naming_faults(now.table.id):
            return _replace(spark, project, now, at, position, arrived, run)

    return tried(work)


def _replace(
    spark: Spark,
    project: Project,
    delivery: Delivery,
    at: Head | None,
    position: Position,
    arrived: Arriving | None,
    run: Run,
) -> BatchReport:
    clock, limits = Clock(), project.limits

    def work(session: SparkSession) -> BatchReport:
        return _committed(session, project, delivery, at, position, arrived, run, clock)

    def large() -> SparkSession:
        with clock.phase("session"):
            return spark.tune(small=delivery.bytes <= limits.few_tasks_bytes)

    is_at_hand = delivery.is_of_messages or (arrived is None and is_of_files(delivery.spec))
    is_small = is_at_hand and delivery.bytes <= limits.computed_here_bytes
    report, engine = spark.best(work, large, is_small=is_small)
    return replace(report, engine=engine)


def _committed(
    session: SparkSession,
    project: Project,
    delivery: Delivery,
    at: Head | None,
    position: Position,
    arrived: Arriving | None,
    run: Run,
    clock: Clock,
) -> BatchReport:
    replaces = replaceable(at, position.definition)
    before = None if replaces else at
    span = delivery.interval
    is_added = delivery.is_added
    batch = Delivered(position.run, position.batch, span.start, span.end, is_replayed=is_added)
    marks = landing.marks(delivery.files)
    with clock.phase("read"):
        found = Arrived(delivery, Reading(arrived(session))) if arrived else None
        found = found or arriving(session, delivery, before)
        delivery, reading = found.delivery, found.reading
    may_be_empty = run.allow_empty or is_added
    emptied = Emptied(delivery, lambda: _count(session, project, delivery, before), may_be_empty)
    on_conflict = delivery.spec.on_conflict
    gate = gated(project, delivery.table, reading.rows, batch, emptied.refuse, on_conflict)
    if is_here(session):
        unjudged = stored_rows(reading.rows, delivery)
        rehearse(_changelog(unjudged, _old_rows(session, project, delivery, before)))
    with clock.timed("check", gate) as passed:
        landing.check_unchanged(delivery.files, marks, delivery.table.id)
        new = stored_rows(passed.rows, delivery)
        before = before and add_columns(before, new.schema)
        target = _target(project, delivery, before, passed.verdict.rows_read)
        old = _old_rows(session, project, delivery, before)
        old = _same(old, new) if is_added and old is not None else old
        keeps = old is not None or bool(
            passed.verdict.rows_accepted or position.inputs or position.topic
        )
        target = replace(target, replaces=replaces, keeps_position=keeps)
        changelog = _changelog(new, old)
        is_counted = old is None and not delivery.spec.keeps_deliveries
        inserts = passed.verdict.rows_accepted if is_counted else None
        if keeps:
            intervals.withdraw(delivery.intervals_uri, span)
        done = write(
            session, Context.of(project), target, changelog, position, clock, inserts=inserts
        )
    is_noted_only = before is not None and done.version == before.version
    number = before.next_batch - 1 if before and is_noted_only else position.batch
    _record(delivery, passed, number)
    return replace(
        BatchReport.of(delivery.stored_as, "source", done, clock),
        batch=number,
        is_absent=bool(delivery.warnings),
        timezone=delivery.timezone,
        strategy="replace interval",
        rows_in=passed.verdict.rows_read,
        quarantined=passed.verdict.rows_quarantined,
        warnings=_all(delivery.warnings, reading.warnings, passed.verdict.warnings),
        interval=(span.start.isoformat(), span.end.isoformat()),
    )


def _same(old: DataFrame, new: DataFrame) -> DataFrame:
    """Return the old rows of the messages of new ones."""
    return old.join(new.select(ID).distinct(), ID, "left_semi").select(*names(tuple(old.columns)))


def _check_topic(delivery: Delivery, at: Head | None) -> None:
    """Raise LostRace if another run has read the topic since this delivery was planned."""
    now = at.position.topic if at and at.position else {}
    if delivery.topic and now != delivery.after:
        raise LostRace(f"{delivery.table.id}: another run has delivered these messages")


def _changelog(new: DataFrame, old: DataFrame | None) -> DataFrame:
    return inserted(new) if old is None else diff(old, new, KEY)


def _all(*warnings: Iterable[str]) -> tuple[str, ...]:
    return tuple(w for some in warnings for w in some)


def _target(project: Project, delivery: Delivery, before: Head | None, rows: int) -> Target:
    uri = layout(project).uri(delivery.stored_as)
    size = FeedSize(delivery.bytes, len(delivery.files), rows)
    return Target(uri, KEY, before, size)


def _old_rows(
    session: SparkSession, project: Project, delivery: Delivery, before: Head | None
) -> DataFrame | None:
    """Return the interval's rows; None if the table surely has none."""
    uri, span = layout(project).uri(delivery.stored_as), delivery.interval
    if before is None or not may_hold(uri, before.version, INTERVAL, span.start, span.end):
        return None
    at = F.col(INTERVAL)
    inside = (at >= F.lit(span.start)) & (at < F.lit(span.end))
    return snapshot(session, uri, before.version, project.limits).where(inside)


def _count(session: SparkSession, project: Project, delivery: Delivery, before: Head | None) -> int:
    """Count the interval's rows."""
    old = _old_rows(session, project, delivery, before)
    return 0 if old is None else old.count()


def _position(
    delivery: Delivery, before: Head | None, run: Run, inputs: Mapping[str, Pin]
) -> Position:
    return Position(
        batch=before.next_batch if before else 1,
        attempt=uuid.uuid4().hex,
        kind="ingest",
        definition=definition_of_deliveries(delivery.table),
        meaning=meaning_of_deliveries(delivery.table),
        inputs=inputs,
        frontier={name: pin.version for name, pin in inputs.items()},
        run=run.id,
        topic=delivery.topic or (before.position.topic if before and before.position else {}),
    )


def _record(delivery: Delivery, passed: Passed, batch: int) -> None:
    verdict = passed.verdict
    counts = (verdict.rows_read, verdict.rows_accepted, verdict.rows_quarantined)
    noted = intervals.Delivery(delivery.interval, delivery.fingerprint, *counts, batch)
    intervals.record(delivery.intervals_uri, noted)


def unchanged(table_id: str, before: Head, interval: Interval | None = None) -> BatchReport:
    """Return the report of a delivery that the table holds already."""
    return BatchReport(
        table=table_id,
        kind="source",
        outcome="unchanged",
        version=before.version,
        batch=before.position.batch if before.position else None,
        interval=(interval.start.isoformat(), interval.end.isoformat()) if interval else None,
    )
