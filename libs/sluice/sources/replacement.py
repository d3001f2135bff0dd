"""Replacement of one interval's rows by those of a delivery.

The rows that pass the gate are compared with the earlier delivery, and only the difference is
committed.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changes.diff import diff, inserted
from sluice.delta.log.feed_size import FeedSize
from sluice.delta.log.position import Head, Position
from sluice.delta.log.redefinition import replaceable
from sluice.delta.log.time_bounds import may_hold
from sluice.delta.notes import intervals
from sluice.delta.reading import landing
from sluice.delta.reading.local import few_rows
from sluice.delta.reading.spark_reads import snapshot
from sluice.delta.writing.fence import Committed
from sluice.delta.writing.schema_evolution import add_columns
from sluice.engine.advance import Run
from sluice.engine.batch_report import BatchReport, Clock
from sluice.engine.committing.writing import Target, write
from sluice.engine.context import Context
from sluice.engine.judging.forgotten import noted, withheld
from sluice.engine.judging.gating import Passed, gated
from sluice.engine.judging.quarantining import JudgedBatch
from sluice.engine.query.operator import names
from sluice.files.reading import Reading, is_of_files
from sluice.gate.gate import Gate
from sluice.gate.outcomes.verdict import Verdict
from sluice.interpreter.presence import is_here, rehearse
from sluice.language.hidden_columns import ID, INTERVAL
from sluice.language.internal import FORGOTTEN, INTERVALS
from sluice.sources.delivery import Arrived, Delivery, arriving, stored_rows
from sluice.sources.emptied import Emptied
from sluice.spark.rehearsing import engine_of
from sluice.spark.session import Spark

KEY = (INTERVAL, ID)
Arriving = Callable[[SparkSession], DataFrame]
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
    arrived: Arriving | None = None
    clock: Clock = field(default_factory=Clock)

    def made(self, spark: Spark) -> BatchReport:
        """Replace the rows on the engine that suits their size. Raises LostRace."""
        delivery, limits = self.delivery, self.context.limits

        def large() -> SparkSession:
            with self.clock.phase("session"):
                return spark.tune(small=delivery.bytes <= limits.few_tasks_bytes)

        size = delivery.bytes if self._is_at_hand else 0
        report, engine = spark.best(
            self._committed, large, limits, is_small=self._is_small, size=size
        )
        return replace(report, engine=engine)

    @property
    def engine(self) -> str:
        """The engine that `made` would report, unless a value of the files needs Spark."""
        return engine_of(self.context.settings, self._rehearsed, is_small=self._is_small)

    @property
    def _is_at_hand(self) -> bool:
        """True if the rows can be had without Spark."""
        spec = self.delivery.spec
        return spec.is_followed or (self.arrived is None and is_of_files(spec))

    @property
    def _is_small(self) -> bool:
        delivery, limits = self.delivery, self.context.limits
        is_of_messages = delivery.is_of_messages and delivery.topic
        most = limits.messages_here_bytes if is_of_messages else limits.computed_here_bytes
        return self._is_at_hand and delivery.bytes <= most

    def _rehearsed(self, session: SparkSession) -> None:
        """Compute what `made` computes, of files without rows. Raises NotHere."""
        table, spec = self.delivery.table, self.delivery.spec
        found = arriving(session, self.delivery, self.before, self.context.limits)
        self._compile(session, found.reading, found.delivery)
        gate = Gate(table.id, table.expect, spec.key)
        gate.check(gate.split(found.reading.rows))

    def _compile(self, session: SparkSession, reading: Reading, delivery: Delivery) -> None:
        """Compile what follows the gate. Raises NotHere."""
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

    def _committed(self, session: SparkSession) -> BatchReport:
        stamps = landing.stamps(self.delivery.files)
        with self.clock.phase("read"):
            found = (
                Arrived(self.delivery, Reading(self.arrived(session)))
                if self.arrived
                else arriving(session, self.delivery, self.before, self.context.limits)
            )
        return replace(self, delivery=found.delivery).finish(session, found.reading, stamps)

    def finish(self, session: SparkSession, reading: Reading, stamps: Stamps) -> BatchReport:
        """Judge the rows read, and commit the difference from the earlier delivery."""
        with self.clock.timed("check", self._judged(session, reading, stamps)) as passed:
            done, batch = self._written(session, passed, reading)
        return self._recorded(session, done, batch, reading, passed.verdict)

    def _judged(
        self, session: SparkSession, reading: Reading, stamps: Stamps
    ) -> AbstractContextManager[Passed]:
        """Return the gate that the rows go through."""
        delivery, run, span = self.delivery, self.run, self.delivery.interval
        is_added = delivery.is_added
        batch = JudgedBatch(
            self.position.run,
            self.position.batch,
            span.start,
            span.end,
            is_replayed=is_added,
            is_absent=delivery.is_absent,
        )
        emptied = Emptied(delivery, lambda: self._count(session), run.allow_empty or is_added)
        on_conflict = delivery.spec.on_conflict
        if is_here(session):
            self._compile(session, reading, delivery)

        def refuse(split: DataFrame, verdict: Verdict) -> None:
            landing.check_unchanged(delivery.files, stamps, delivery.table.id)
            emptied.refuse(split, verdict)

        rows = withheld(reading.rows, noted(self.context.lake.uri(delivery.table.id, FORGOTTEN)))
        return gated(self.context, delivery.table, rows, batch, refuse, on_conflict)

    def _written(
        self, session: SparkSession, passed: Passed, reading: Reading
    ) -> tuple[Committed, int]:
        """Commit the difference; return the number of the batch that holds the rows, too."""
        delivery, position, verdict = self.delivery, self.position, passed.verdict
        new = stored_rows(passed.rows, delivery)
        before = self.before and add_columns(self.before, new.schema)
        old = self._old_rows(session, before)
        old = _same(old, reading.rows) if delivery.is_added and old is not None else old
        keeps = old is not None or bool(verdict.rows_accepted or position.inputs or position.topic)
        is_counted = old is None and not delivery.spec.keeps_deliveries
        inserts = verdict.rows_accepted if is_counted else None
        target = self._target(before, verdict.rows_read, keeps)
        if keeps and not delivery.is_added:  # the offsets of a batch stay valid
            intervals.withdraw(self._notes, delivery.interval)
        changelog = _changelog(new, old)
        done = write(
            session, self.context, target, changelog, position, self.clock, inserts=inserts
        )
        is_noted_only = before is not None and done.version == before.version
        return done, before.next_batch - 1 if before and is_noted_only else position.batch

    def _target(self, before: Head | None, rows: int, keeps: bool) -> Target:
        delivery = self.delivery
        size = FeedSize(delivery.bytes, len(delivery.files), rows)
        replaces = self.replaces
        return Target(self._uri, KEY, before, size, keeps_position=keeps, replaces=replaces)

    def _recorded(
        self,
        session: SparkSession,
        done: Committed,
        batch: int,
        reading: Reading,
        verdict: Verdict,
    ) -> BatchReport:
        """Note the delivery, and report it."""
        delivery, span = self.delivery, self.delivery.interval
        accepted, bad = verdict.rows_accepted, verdict.rows_quarantined
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
            rows_in=verdict.rows_read,
            quarantined=verdict.rows_quarantined,
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
        """Return the interval's rows; None if the table surely has none."""
        span = self.delivery.interval
        if before is None or not may_hold(
            self._uri, before.version, INTERVAL, span.start, span.end
        ):
            return None
        limits = self.context.limits
        at = pc.field(INTERVAL)
        inside = (at >= pc.scalar(span.start)) & (at < pc.scalar(span.end))
        few = few_rows(session, self._uri, before.version, inside, limits)
        if few is not None:
            return few
        at = F.col(INTERVAL)
        inside = (at >= F.lit(span.start)) & (at < F.lit(span.end))
        return snapshot(session, self._uri, before.version, limits).where(inside)

    def _count(self, session: SparkSession) -> int:
        """Count the interval's rows."""
        old = self._old_rows(session, self.before)
        return 0 if old is None else old.count()


def _same(old: DataFrame, rows: DataFrame) -> DataFrame:
    """Return the old rows of the messages that came again; their IDs begin with the message's."""
    place = F.substring_index(F.col(ID), "-", 2).alias("_place")
    again = rows.select(place).distinct()
    known = old.select(*names(tuple(old.columns)), place)
    return known.join(again, "_place", "left_semi").select(*names(tuple(old.columns)))


def _changelog(new: DataFrame, old: DataFrame | None) -> DataFrame:
    return inserted(new) if old is None else diff(old, new, KEY)
