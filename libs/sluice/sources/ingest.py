"""Ingest of one interval of a source: its files replace the interval's earlier delivery.

A repeat changes nothing; a correction flows down as retractions and insertions. A source with a key
(or of change rows) keeps its deliveries in an internal table. Its own table is then advanced from
them like a view.
"""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from sluice.declare.meaning.definition import definition_of_deliveries, meaning_of_deliveries
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.opened import exists
from sluice.delta.log.position import Head, Pins, Position, head
from sluice.delta.log.redefinition import check_definition
from sluice.delta.notes import intervals
from sluice.delta.places.lake_layout import layout
from sluice.engine.advance import Run, advance
from sluice.engine.batch_report import BatchReport
from sluice.engine.context import Context
from sluice.engine.retries import naming_faults, tried
from sluice.errors import ConfigError, DamagedFile, LostRace
from sluice.files.damage import with_faults
from sluice.language.internal import DELIVERIES, internal
from sluice.language.interval import Interval
from sluice.sources.delivery import Delivery, plan_delivery
from sluice.sources.evolution import grow
from sluice.sources.replacement import Arriving, Replacement
from sluice.sources.spec import Source, is_foreign, is_topic
from sluice.spark.session import Spark

__all__ = ["deliver", "engine_of_delivery", "follow", "or_unchanged", "replace_interval"]


def deliver(
    spark: Spark, project: Project, table: Table, interval: Interval, run: Run
) -> BatchReport:
    """Deliver one interval of the grid. Safe to repeat: unchanged files are not read again."""
    plan = partial(plan_delivery, project, table, interval, allow_empty=run.allow_empty)
    delivery = plan()
    before = head(layout(project).uri(table.delivered_to))
    check_source(project, table, before)
    intervals.check_kept(table.id, delivery.noted, before)
    if delivery.is_delivered and before and not run.full_refresh:
        return unchanged(table.delivered_to, before, delivery.interval)
    return replace_interval(spark, project, delivery, run, again=plan)


def engine_of_delivery(project: Project, table: Table, interval: Interval) -> str:
    """Return the engine that delivers an interval's files, in the words of the report."""
    delivery = plan_delivery(project, table, interval, allow_empty=True)
    context, run = Context.of(project), Run()
    at = head(context.lake.uri(table.delivered_to))
    return Replacement(context, delivery, at, _position(delivery, at, run, {}), run).engine


def follow(spark: Spark, project: Project, table: Table, run: Run) -> tuple[BatchReport, ...]:
    """Bring a source up to the deliveries that it keeps; do nothing for other sources.

    A topic or table that has never had rows leaves nothing to wait for.
    """
    spec, kept = table.spec, layout(project).uri(table.delivered_to)
    assert isinstance(spec, Source)
    if not spec.keeps_deliveries or (spec.is_followed and not exists(kept)):
        return ()
    return advance(spark, project, grow(layout(project), table), run)


def check_source(project: Project, table: Table, deliveries: Head | None) -> None:
    """Raise ConfigError if the source or its deliveries were filled by another definition."""
    check_definition(table, deliveries, meaning_of_deliveries(table))
    assert isinstance(table.spec, Source)
    is_apart = deliveries is None or table.spec.keeps_deliveries
    visible = head(layout(project).uri(table.id)) if is_apart else deliveries
    if deliveries is None or table.spec.key:
        check_definition(table, visible)
    if _came_another_way(table, table.spec, deliveries, visible):
        raise ConfigError(
            [f"{table.id} has rows that arrived in a different way than the configuration says"],
            hint=f"run `sluice rebuild {table.id} --as-landed`: it takes today's rows"
            if is_foreign(table)
            else "revert the change; or declare the changed source under another name",
        )


def _came_another_way(
    table: Table, spec: Source, deliveries: Head | None, visible: Head | None
) -> bool:
    """Return whether the rows are of files and the source follows a Delta table, or the reverse.

    Rows that deliveries are kept of are computed from these; others were delivered into the table.
    """
    now = visible.position if visible and visible.is_filled else None
    if now and (internal(table.id, DELIVERIES) in now.inputs) != spec.keeps_deliveries:
        return True
    last = deliveries.position if deliveries and deliveries.is_filled else None
    if last is None or is_topic(table):
        return False
    return is_foreign(table) != ("table" in last.topic)


def replace_interval(
    spark: Spark,
    project: Project,
    delivery: Delivery,
    run: Run,
    *,
    arrived: Arriving | None = None,
    inputs: Pins | None = None,
    again: Callable[[], Delivery] | None = None,
) -> BatchReport:
    """Replace the interval's rows with those of the delivery.

    `arrived` returns the delivery's rows, if they are not in its files; `inputs`: the versions that
    they were read from. `again` returns the current delivery for a retry; without it, a retry
    uses the same one.
    """
    context, first = Context.of(project), iter([delivery])

    def work() -> BatchReport:
        now = next(first, None) or (again() if again else delivery)
        at = head(context.lake.uri(now.table.delivered_to))
        _check_topic(now, at)
        position = _position(now, at, run, inputs or {})
        made = Replacement(context, now, at, position, run, arrived)
        try:
            with naming_faults(now.table.id):
                return made.made(spark)
        except DamagedFile:
            if (files := with_faults(now.spec, now.files)) == now.files:
                raise
        with naming_faults(now.table.id):  # the other files are delivered
            return replace(made, delivery=replace(now, files=files)).made(spark)

    return tried(work)


def _check_topic(delivery: Delivery, at: Head | None) -> None:
    """Raise LostRace if another run has read on since this delivery was planned."""
    now = at.position.topic if at and at.position else {}
    if delivery.topic and now != delivery.after:
        raise LostRace(f"{delivery.table.id}: another run has delivered this")


def _position(delivery: Delivery, before: Head | None, run: Run, inputs: Pins) -> Position:
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


def or_unchanged(
    project: Project,
    table: Table,
    reports: Iterator[BatchReport],
    interval: Interval | None = None,
    warnings: tuple[str, ...] = (),
) -> Iterator[BatchReport]:
    """Yield the reports, the first with those warnings; one of no change if there are none."""
    first = next(reports, None)
    if first is None:
        at = head(layout(project).uri(table.delivered_to))
        first = unchanged(table.delivered_to, at, interval) if at or warnings else None
    if first:
        yield replace(first, warnings=(*warnings, *first.warnings))
    yield from reports


def unchanged(table_id: str, before: Head | None, interval: Interval | None = None) -> BatchReport:
    """Return the report of a delivery that the table holds already."""
    return BatchReport(
        table=table_id,
        kind="source",
        outcome="unchanged",
        version=before.version if before else None,
        batch=before.position.batch if before and before.position else None,
        interval=(interval.start.isoformat(), interval.end.isoformat()) if interval else None,
    )
