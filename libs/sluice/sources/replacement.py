"""Replacement of one interval's rows by those of a delivery.

The rows that pass the gate are compared with the earlier delivery, and only the difference is
committed. A repeat changes nothing; a correction flows down as retractions and insertions. A source
with a key (or of change rows) keeps its deliveries in an internal table. Its own table is then
advanced from them like a view.

A landing folder that is not mounted looks like one without files; a truncated file looks like one
without rows. So an interval with rows is emptied only on request. `--allow-empty` requests it for
one run, `missing: empty` of a source for intervals that have no files. A file without rows in the
interval's own folder is itself such a request.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changes import diff, insertions
from sluice.declare.declared import FILE, REASON
from sluice.declare.meaning import definition_of_deliveries, meaning_of_deliveries
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta import intervals
from sluice.delta.log.continuity import replaceable
from sluice.delta.log.files import FeedSize, may_hold
from sluice.delta.log.position import Head, Pins, Position, head
from sluice.delta.places.lake_layout import layout
from sluice.delta.reading import landing
from sluice.delta.reading.local import snapshot_if_few
from sluice.delta.reading.spark_reads import snapshot
from sluice.delta.writing.commit import add_columns
from sluice.delta.writing.own_commits import Committed
from sluice.engine import BatchReport
from sluice.engine.advance import Run
from sluice.engine.batch_plan import Context
from sluice.engine.committing import Target, write
from sluice.engine.forgotten import read_forgotten, withhold
from sluice.engine.judging import JudgedBatch, Passed, gate_rows
from sluice.engine.operator import names
from sluice.engine.retries import naming_faults, with_retries
from sluice.errors import DamagedFile, LostRace, QualityStop
from sluice.files.here import with_faults
from sluice.files.reading import Reading, is_of_files
from sluice.gate.gate import Gate
from sluice.gate.results import Verdict
from sluice.interpreter import is_here, rehearse
from sluice.language.interval import Interval
from sluice.language.names import FORGOTTEN, ID, INTERVAL, INTERVALS
from sluice.meter import Clock
from sluice.sources.delivery import Delivery, ReadDelivery, read_delivery, stored_rows
from sluice.spark.engine import engine_of, too_large
from sluice.spark.session import Spark

MENDING = "fix the delivery"
MOUNTING = "check the landing folder, and deliver the files again"
ALLOWED = "if it should be empty, run it with --allow-empty (in Airflow: `Allow empty` in the form)"
DECLARED = f"{ALLOWED}, or declare `missing: empty`"


@dataclass(frozen=True)
class Emptied:
    """Guard against emptying an interval; `had` counts the rows that it has, by a Spark job."""

    delivery: Delivery
    had: Callable[[], int]
    allowed: bool = False

    def refuse(self, split: DataFrame, verdict: Verdict) -> None:
        """Raise QualityStop if no row replaces those that the interval has."""
        if self.allowed or verdict.rows_accepted or self._is_declared(verdict):
            return
        if not (had := self.had()):
            return
        name = self.delivery.table.id
        interval = self.delivery.interval.format(self.delivery.timezone)
        before = f"{name}: the interval {interval} has {had:,} {'row' if had == 1 else 'rows'}"
        if verdict.rows_read:
            bad = split.where(F.col(REASON).isNotNull()).select(FILE, REASON).limit(1).toArrow()
            first = "".join(f"; e.g. in {row[FILE]}: {row[REASON]}" for row in bad.to_pylist())
            what = f"none of {verdict.rows_read:,} now delivered can be used{first}"
            hint = f"nothing was committed; {MENDING}; {ALLOWED}"
        else:
            what = f"{self._nothing()} was delivered now"
            hint = f"nothing was committed; {MOUNTING}; {DECLARED}"
        raise QualityStop(f"{before}, and {what}", hint=hint)

    def _is_declared(self, verdict: Verdict) -> bool:
        """True if the source, or a file without rows, declares that there are none."""
        has_own_files = self.delivery.spec.has_pattern and bool(self.delivery.files)
        is_said = has_own_files or self.delivery.spec.missing == "empty"
        return not verdict.rows_read and is_said

    def _nothing(self) -> str:
        files = "no row" if self.delivery.files else "no file"
        return f"{files} at {self.delivery.path}" if self.delivery.path else "no row"


KEY = (INTERVAL, ID)
ReadRows = Callable[[SparkSession], DataFrame]
Stamps = Mapping[str, object]


@dataclass(frozen=True)
class Replacement:
    """One attempt. `at`: the head of the table that the rows are kept in; `position`: the next one.

    `arrived` returns the delivery's rows, if they are not in its files.
    """

    context: Context
    delivery: Delivery
    at: Head | None
    position: Position
    run: Run
    arrived: ReadRows | None = None
    clock: Clock = field(default_factory=Clock)

    def commit(self, spark: Spark) -> BatchReport:
        """Replace the rows on the engine that suits their size. Raises LostRace."""
        report, engine = spark.best(
            self._read_and_commit,
            self.delivery.bytes,
            self.context.limits,
            clock=self.clock,
            why=self._why_not_here,
        )
        return replace(report, engine=engine)

    @property
    def engine(self) -> str:
        """The engine that `commit` would report, unless a value of the files needs Spark."""
        return engine_of(self.context.settings, self._rehearse_whole, self._why_not_here)

    @property
    def _why_not_here(self) -> str:
        """Return why Spark delivers the rows; '' if this process may."""
        spec = self.delivery.spec
        if not (spec.is_followed or (self.arrived is None and is_of_files(spec))):
            return f"the format {spec.format}"
        return too_large(self.delivery.bytes, self.context.limits.delivered_bytes)

    def _rehearse_whole(self, session: SparkSession) -> None:
        """Compute what `commit` computes, of files without rows. Raises UnsupportedLocally."""
        table, spec = self.delivery.table, self.delivery.spec
        found = read_delivery(session, self.delivery, self.before, self.context.limits)
        self._compile(session, found.reading, found.delivery)
        gate = Gate(table.id, table.expect, spec.key)
        gate.check(gate.split(found.reading.rows))

    def _compile(self, session: SparkSession, reading: Reading, delivery: Delivery) -> None:
        """Compile what follows the gate. Raises UnsupportedLocally."""
        unjudged = stored_rows(reading.rows, delivery)
        rehearse(_changelog(unjudged, self._old_rows(session, self.before)))

    @property
    def before(self) -> Head | None:
        """The head that the rows are compared with; None if the table has none to compare."""
        return None if self.replaces else self.at

    @property
    def replaces(self) -> Head | None:
        """The head of a table that has another definition and that nobody has read."""
        return replaceable(self.at, self.position.definition)

    def _read_and_commit(self, session: SparkSession) -> BatchReport:
        stamps = landing.stamps(self.delivery.files)
        with self.clock.phase("read"):
            found = (
                ReadDelivery(self.delivery, Reading(self.arrived(session)))
                if self.arrived
                else read_delivery(session, self.delivery, self.before, self.context.limits)
            )
        return replace(self, delivery=found.delivery).finish(session, found.reading, stamps)

    def finish(self, session: SparkSession, reading: Reading, stamps: Stamps) -> BatchReport:
        """Judge the rows read, and commit the difference from the earlier delivery."""
        with self.clock.timed("check", self._judge(session, reading, stamps)) as passed:
            done, batch = self._write(session, passed, reading)
        return self._record(session, done, batch, reading, passed.verdict)

    def _judge(
        self, session: SparkSession, reading: Reading, stamps: Stamps
    ) -> AbstractContextManager[Passed]:
        delivery, run, span = self.delivery, self.run, self.delivery.interval
        is_added = delivery.is_added
        batch = JudgedBatch(
            self.position.run,
            self.position.batch,
            span.start,
            span.end,
            is_replayed=is_added,
            is_absent=delivery.is_absent,
            shares_files=delivery.spec.shares_files,
        )
        emptied = Emptied(delivery, lambda: self._count(session), run.allow_empty or is_added)
        on_conflict = delivery.spec.on_conflict
        if is_here(session):
            self._compile(session, reading, delivery)

        def refuse(split: DataFrame, verdict: Verdict) -> None:
            landing.check_unchanged(delivery.files, stamps, delivery.table.id)
            emptied.refuse(split, verdict)

        rows = withhold(
            reading.rows, read_forgotten(self.context.lake.uri(delivery.table.id, FORGOTTEN))
        )
        return gate_rows(self.context, delivery.table, rows, batch, refuse, on_conflict)

    def _write(
        self, session: SparkSession, passed: Passed, reading: Reading
    ) -> tuple[Committed, int]:
        """Commit the difference; return the number of the batch that holds the rows, too."""
        delivery, position, verdict = self.delivery, self.position, passed.verdict
        new = stored_rows(passed.rows, delivery)
        before = self.before and add_columns(self.before, new.schema)
        old = self._old_rows(session, before)
        old = _rows_again(old, reading.rows) if delivery.is_added and old is not None else old
        keeps = old is not None or bool(verdict.rows_accepted or position.inputs or position.topic)
        is_counted = old is None and not delivery.spec.keeps_deliveries
        inserts = verdict.rows_accepted if is_counted else None
        size = FeedSize(delivery.bytes, len(delivery.files), verdict.rows_read)
        target = Target(self._uri, KEY, before, size, keeps_position=keeps, replaces=self.replaces)
        if keeps and not delivery.is_added:  # the offsets of a batch stay valid
            intervals.withdraw(self._notes, delivery.interval)
        changelog = _changelog(new, old)
        done = write(
            session, self.context, target, changelog, position, self.clock, inserts=inserts
        )
        is_noted_only = before is not None and done.version == before.version
        return done, before.next_batch - 1 if before and is_noted_only else position.batch

    def _record(
        self, session: SparkSession, done: Committed, batch: int, reading: Reading, verdict: Verdict
    ) -> BatchReport:
        """Note the delivery, and report it."""
        delivery, span = self.delivery, self.delivery.interval
        accepted, bad = verdict.rows_accepted, verdict.rows_quarantined - verdict.undated
        if delivery.is_added:
            accepted = self._count(session) + done.inserted - done.deleted
        counts = (accepted + bad, accepted, bad, batch)
        noted = intervals.Note(span, delivery.fingerprint, *counts)
        intervals.record(self._notes, noted)
        return replace(
            BatchReport.of(delivery.table.delivered_to, "source", done, self.clock),
            batch=batch,
            is_absent=bool(delivery.warnings),
            timezone=delivery.timezone,
            strategy="replace interval",
            rows_in=verdict.rows_read - verdict.undated,
            quarantined=bad,
            warnings=(*delivery.warnings, *reading.warnings, *verdict.warnings),
            interval=(span.start.isoformat(), span.end.isoformat()),
        )

    @property
    def _uri(self) -> str:
        return self.context.lake.uri(self.delivery.table.delivered_to)

    @property
    def _notes(self) -> str:
        return self.context.lake.uri(self.delivery.table.id, INTERVALS)

    def _old_rows(self, session: SparkSession, before: Head | None) -> DataFrame | None:
        span = self.delivery.interval
        if before is None or not may_hold(
            self._uri, before.version, INTERVAL, span.start, span.end
        ):
            return None
        limits = self.context.limits
        at = pc.field(INTERVAL)
        inside = (at >= pc.scalar(span.start)) & (at < pc.scalar(span.end))
        few = snapshot_if_few(session, self._uri, before.version, inside, limits)
        if few is not None:
            return few
        at = F.col(INTERVAL)
        inside = (at >= F.lit(span.start)) & (at < F.lit(span.end))
        return snapshot(session, self._uri, before.version, limits).where(inside)

    def _count(self, session: SparkSession) -> int:
        old = self._old_rows(session, self.before)
        return 0 if old is None else old.count()


def _rows_again(old: DataFrame, rows: DataFrame) -> DataFrame:
    """Return the old rows of the messages that came again; their IDs begin with the message's."""
    place = F.substring_index(F.col(ID), "-", 2).alias("_place")
    again = rows.select(place).distinct()
    known = old.select(*names(tuple(old.columns)), place)
    return known.join(again, "_place", "left_semi").select(*names(tuple(old.columns)))


def _changelog(new: DataFrame, old: DataFrame | None) -> DataFrame:
    return insertions(new) if old is None else diff(old, new, KEY)


def replace_interval(
    spark: Spark,
    project: Project,
    delivery: Delivery,
    run: Run,
    *,
    arrived: ReadRows | None = None,
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
        reached = at.position.topic if at and at.position else {}
        if now.topic and reached != now.after:
            raise LostRace(f"{now.table.id}: another run has delivered this")
        position = next_position(now, at, run, inputs or {})
        made = Replacement(context, now, at, position, run, arrived)
        try:
            with naming_faults(now.table.id):
                return made.commit(spark)
        except DamagedFile:
            if (files := with_faults(now.spec, now.files)) == now.files:
                raise
        with naming_faults(now.table.id):  # the other files are delivered
            return replace(made, delivery=replace(now, files=files)).commit(spark)

    return with_retries(work)


def next_position(delivery: Delivery, before: Head | None, run: Run, inputs: Pins) -> Position:
    """Return the position after a delivery to a table whose head is `before`."""
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
        first = report_unchanged(table.delivered_to, at, interval) if at or warnings else None
    if first:
        yield replace(first, warnings=(*warnings, *first.warnings))
    yield from reports


def report_unchanged(
    table_id: str, before: Head | None, interval: Interval | None = None
) -> BatchReport:
    """Return the report of a delivery that the table holds already."""
    bounds = (interval.start.isoformat(), interval.end.isoformat()) if interval else None
    return replace(BatchReport.unchanged(table_id, "source", before), interval=bounds)
