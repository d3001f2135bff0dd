"""Rebuild of a source: every delivered interval is read again by the current definition.

The intervals are delivered into a separate lake, which shares nothing with the real one. Then their
rows replace the source's in one commit. If an interval's files differ from those delivered, its
past can't be read again, and the rebuild is refused before anything changes. With `as_landed`, the
present files are taken instead; missing files are still refused. A topic gives only what it still
has, so it is read again only with `as_landed`. A followed Delta table is read at its head.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from pyspark.sql import SparkSession

from sluice.declare.meaning import definition_of_deliveries, meaning_of_deliveries
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta import intervals
from sluice.delta.log.files import table_size
from sluice.delta.log.position import REBUILD, Head, Position, head, head_as_found
from sluice.delta.note_tables import take_rows
from sluice.delta.places.folders import remove
from sluice.delta.places.lake_layout import layout
from sluice.delta.reading import landing
from sluice.delta.reading.spark_reads import snapshot
from sluice.delta.writing.commit import columns_at
from sluice.engine import BatchReport
from sluice.engine.advance import Run
from sluice.engine.batch_plan import Context
from sluice.engine.committing import Swapped, Target, swap
from sluice.engine.forgotten import read_forgotten
from sluice.errors import HistoryLost, LostRace, QualityStop, UsageError
from sluice.language.interval import EPOCH, Interval
from sluice.language.names import (
    DELIVERIES,
    FORGOTTEN,
    ID,
    INTERVAL,
    INTERVALS,
    QUARANTINE,
    REBUILT,
    internal,
)
from sluice.meter import Clock
from sluice.sources import Source
from sluice.sources.delivery import plan_delivery
from sluice.sources.feeds import feed_of
from sluice.sources.origins import origin_of, path_of
from sluice.sources.replacement import replace_interval
from sluice.spark.engine import too_large
from sluice.spark.session import Spark

T = TypeVar("T")


def rebuild(
    spark: Spark, project: Project, table: Table, run: Run, as_landed: bool
) -> tuple[BatchReport, bool] | None:
    """Read all that was delivered again, into the table of the source's deliveries.

    Returns the report, and whether that table's feed can't be read across the change; None if the
    deliveries are kept and fit. Raises HistoryLost if the past can't be read again, LostRace if
    something was delivered meanwhile.
    """
    if not as_landed and _can_be_recomputed(project, table):
        return None
    clock, spec = Clock(), table.spec
    assert isinstance(spec, Source)
    before = head_as_found(layout(project).uri(table.delivered_to))
    if spec.is_followed:
        origin_of(project, table).check_rebuild(as_landed=as_landed)
        with _lake_beside(project, table) as beside:
            with clock.phase("read"):
                tuple(feed_of(beside, table).read(spark, run))
            return _swap_in(spark, project, beside, table, run, clock, before)
    with clock.phase("plan"):
        delivered = _list_delivered(spark, project, table, spec)
        _check_files(project, table, spec, delivered, as_landed=as_landed)
    with _lake_beside(project, table) as beside, clock.phase("read"):
        for interval in [d.interval for d in delivered]:
            planned = plan_delivery(beside, table, interval, allow_empty=run.allow_empty)
            replace_interval(spark, beside, planned, run)
        zone = project.pipelines[table.pipeline].timezone
        _check_rows(beside, table, spec, delivered, zone=zone, as_landed=as_landed)
        if not run.allow_empty:
            _check_usable(beside, table, delivered, zone)
        return _swap_in(spark, project, beside, table, run, clock, before)


def _can_be_recomputed(project: Project, table: Table) -> bool:
    """True if all deliveries are kept and are of the current definition."""
    deliveries = head_as_found(layout(project).uri(table.id, DELIVERIES))
    spec = table.spec
    assert isinstance(spec, Source)
    if deliveries is None or deliveries.position is None or not spec.keeps_deliveries:
        return False
    return (
        deliveries.position.definition == definition_of_deliveries(table)
        and intervals.newest_batch(_read_notes(project, table)) < deliveries.next_batch
    )


def _swap_in(
    spark: Spark,
    project: Project,
    beside: Project,
    table: Table,
    run: Run,
    clock: Clock,
    before: Head | None,
) -> tuple[BatchReport, bool]:
    """Replace the rows that the table had `before` by those read into a lake beside it.

    Raises LostRace if the table has other rows now, because those were not read again.
    """
    name = table.delivered_to
    uri, new = layout(project).uri(name), head(layout(beside).uri(name))
    if new is None:
        raise UsageError(f"{table.id}: nothing was delivered yet, so there is nothing to rebuild")
    here, there = (layout(p).uri(table.id, FORGOTTEN) for p in (project, beside))
    if len(read_forgotten(here)) != len(read_forgotten(there)):
        raise LostRace(f"{table.id}: rows were forgotten while its files were read again")
    if head_as_found(uri) != before:
        raise LostRace(
            f"{table.id}: another writer committed while its files were read again",
            hint="nothing was changed; run it again",
        )
    noted = intervals.newest_batch(_read_notes(project, table))
    position = Position(
        batch=max(noted + 1, before.next_batch if before else 1),
        attempt=uuid.uuid4().hex,
        kind=REBUILD,
        definition=definition_of_deliveries(table),
        meaning=meaning_of_deliveries(table),
        run=run.id,
        topic=new.position.topic if new.position else {},
    )
    target = Target(uri, (INTERVAL, ID), before, table_size(new.uri, new.version))
    take_rows(*(layout(p).uri(table.id, QUARANTINE) for p in (project, beside)))

    def work(session: SparkSession) -> Swapped:
        rows = snapshot(session, new.uri, new.version, project.limits)
        return swap(session, Context.of(project), target, rows, position, clock)

    done, engine = _by_size(spark, project, [new, before], work)
    read = _note(project, beside, table, position.batch)
    if name == table.id:
        remove(layout(project).uri(table.id, DELIVERIES))  # of a key that is no longer declared
    report = BatchReport.of(name, "source", done.done, clock)
    report = replace(report, batch=position.batch, strategy="read again", rows_in=read)
    return replace(report, engine=engine), done.ends_feed


def _by_size(
    spark: Spark, project: Project, heads: Iterable[Head | None], work: Callable[[SparkSession], T]
) -> tuple[T, str]:
    """Do work on the rows of these tables in this process if they are small, otherwise in Spark."""
    size = sum(table_size(at.uri, at.version).bytes for at in heads if at)
    why = too_large(size, project.limits.delivered_bytes)
    return spark.best(work, size, project.limits, why=why)


def _list_delivered(
    spark: Spark, project: Project, table: Table, spec: Source
) -> list[intervals.Note]:
    """Return what was delivered; interrupted deliveries get their interval from the schedule."""
    if spec.delivery == "stream":
        raise HistoryLost(
            f"{table.id} is read only once, as it arrives, so it can't be read again",
            hint="revert the change; or declare the changed source under another name",
        )
    lake, schedule = layout(project), project.pipelines[table.pipeline].schedule
    known = intervals.deliveries(lake.uri(table.id, INTERVALS))
    starts = {d.interval.start for d in known}
    heads = [at for at in _heads(project, table) if INTERVAL in columns_at(at).names][:1]

    def noted_in_rows(session: SparkSession) -> set[datetime]:
        tables = (snapshot(session, at.uri, at.version, project.limits) for at in heads)
        found = (t.selectExpr(f"unix_micros({INTERVAL}) AS at").distinct() for t in tables)
        micros = [row.at for rows in found for row in rows.dropna().collect()]
        return {EPOCH + timedelta(microseconds=at) for at in micros}

    for start in _by_size(spark, project, heads, noted_in_rows)[0] - starts:
        known.append(intervals.Note(schedule.containing(start), "", 0, 0, 0))
    return sorted(known, key=lambda d: d.interval.start)


def _check_files(
    project: Project,
    table: Table,
    spec: Source,
    delivered: list[intervals.Note],
    *,
    as_landed: bool,
) -> None:
    """Raise HistoryLost unless every interval's files are still the delivered ones.

    With `as_landed`, it is enough that they exist.
    """
    if spec.shares_files:
        return
    made = {h.position.definition for h in _heads(project, table) if h.position}
    zone = project.pipelines[table.pipeline].timezone
    changed = []
    for delivery in delivered:
        path = path_of(project, table, delivery.interval)
        files = landing.list_delivered(path, table.id)
        prints = {landing.fingerprint(files, d) for d in made | {definition_of_deliveries(table)}}
        are_taken = as_landed and (files or not delivery.rows_read)
        if delivery.files and delivery.files not in prints and not are_taken:
            changed.append(delivery.interval)
    if changed:
        what = "gone" if as_landed else "not those that were delivered"
        raise _lost(table, f"the files of {_show(changed, zone)} are {what}", as_landed=as_landed)


def _check_rows(
    beside: Project,
    table: Table,
    spec: Source,
    delivered: list[intervals.Note],
    *,
    zone: str,
    as_landed: bool,
) -> None:
    """Raise HistoryLost if fewer rows of an interval were read than were delivered.

    This replaces `_check_files` if intervals share their files. With `as_landed`, one row is
    enough.
    """
    if not spec.shares_files:
        return
    read = {d.interval: d.rows_read for d in _read_notes(beside, table)}
    least = {d.interval: min(d.rows_read, 1) if as_landed else d.rows_read for d in delivered}
    if fewer := [interval for interval, rows in least.items() if read[interval] < rows]:
        what = "had rows, and none" if as_landed else "had more rows than"
        raise _lost(table, f"{_show(fewer, zone)} {what} can be read now", as_landed=as_landed)


def _check_usable(
    beside: Project, table: Table, delivered: list[intervals.Note], zone: str
) -> None:
    """Raise QualityStop if an interval that had usable rows now has only unusable ones."""
    read = {d.interval: d.rows_read for d in _read_notes(beside, table) if not d.rows_accepted}
    had = {d.interval: d.rows_accepted for d in delivered if d.rows_accepted}
    if emptied := [interval for interval in had if read.get(interval)]:
        counts = f"{sum(had[i] for i in emptied):,} and {sum(read[i] for i in emptied):,}"
        raise QualityStop(
            f"{table.id} can't be rebuilt: {_show(emptied, zone)} had rows, and of those that are "
            f"read now none can be used ({counts} rows)",
            hint="nothing was changed; fix the files or the source's `schema`; if these intervals "
            "should be empty, run it with --allow-empty",
        )


def _lost(table: Table, why: str, *, as_landed: bool) -> HistoryLost:
    corrected = (
        "; or, if they were corrected, take them as they are by "
        f"`sluice rebuild {table.id} --as-landed`"
    )
    return HistoryLost(
        f"{table.id} can't be rebuilt: {why}",
        hint=f"restore the files{'' if as_landed else corrected}. Nothing was changed",
    )


def _show(spans: list[Interval], zone: str, most: int = 3) -> str:
    shown = ", ".join(span.format(zone) for span in spans[:most])
    return shown if len(spans) <= most else f"{shown} and {len(spans) - most} more"


def _heads(project: Project, table: Table) -> list[Head]:
    """Return the heads of the deliveries, if there are any, and of the source's own table."""
    names = (internal(table.id, DELIVERIES), table.id)
    found = (head_as_found(layout(project).uri(name)) for name in names)
    return [h for h in found if h is not None]


@contextmanager
def _lake_beside(project: Project, table: Table) -> Iterator[Project]:
    """Yield the project with a separate empty lake, which is removed afterwards."""
    root = f"{layout(project).root}/{REBUILT}/{table.id}"
    remove(root)
    beside = project.model_copy(update={"lake": root})
    take_rows(*(layout(p).uri(table.id, FORGOTTEN) for p in (beside, project)))
    try:
        yield beside
    finally:
        remove(root)


def _note(project: Project, beside: Project, table: Table, batch: int) -> int:
    """Note the deliveries as they were read now, and return the number of their rows."""
    noted = _read_notes(beside, table)
    if table.spec.is_followed:
        intervals.withdraw_all(layout(project).uri(table.id, INTERVALS))
    for delivery in noted:
        intervals.record(layout(project).uri(table.id, INTERVALS), replace(delivery, batch=batch))
    return sum(d.rows_read for d in noted)


def _read_notes(project: Project, table: Table) -> list[intervals.Note]:
    return intervals.deliveries(layout(project).uri(table.id, INTERVALS))
