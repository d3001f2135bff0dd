"""Judgement of rows before they are committed: their expectations, and the quarantine.

The gate's results are stored, bad rows go to quarantine, good ones are passed on. The quarantine is
committed before the table that the rows were meant for. Every row that was read is therefore in at
least one of the two. Rows that come from the quarantine are committed first.

The quarantine table has every rejected row, whole, with its reason: a row that parsed as JSON, any
other as its text. Each gives one row here, so read = accepted + quarantined. An interval's rows are
replaced whole, so a later delivery without bad rows leaves none here. This process writes few rows,
Spark many; then both are counted.

A misfit is a column in which no value has the declared type, so its type has changed. CSV and JSON
don't declare types, so only rows that go to quarantine reveal a change. A few bad rows are
quarantined. If all values of a column are bad, the batch is stopped, to keep an interval's good
rows.
"""

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changes import CHANGE
from sluice.declare.declared import FILE, REASON, UNDATED, Declared
from sluice.declare.stores import takes_spark
from sluice.declare.table import Table
from sluice.delta.intervals import IS_UNDATED, NO_INTERVAL
from sluice.delta.note_tables import (
    append_rows,
    count_rows,
    create_empty,
    delete_rows,
    replace_rows,
)
from sluice.delta.places.failpoint import passing
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.writing.merge import replace_where
from sluice.engine.batch_plan import ChangelogRows, Context, as_rows
from sluice.engine.operator import Maintained
from sluice.errors import QualityStop
from sluice.gate import anomalies, history
from sluice.gate.gate import ACCEPTED, REASONS, Gate, accepted_rows, whole
from sluice.gate.results import Verdict
from sluice.language.interval import Interval
from sluice.language.names import INTERVAL, QUARANTINE

SCHEMA = (
    f"{INTERVAL} TIMESTAMP, reason STRING, expectation STRING, raw STRING, file STRING,"
    " batch BIGINT, run STRING, quarantined_at TIMESTAMP"
)
MANY = 20


@dataclass(frozen=True)
class Passed:
    """Accepted rows, cached, and what the gate found."""

    rows: DataFrame
    verdict: Verdict


Refusal = Callable[[DataFrame, Verdict], None]


@dataclass(frozen=True)
class JudgedBatch:
    """Batch under check, as results and quarantine name it.

    `is_added`: its quarantined rows join those of earlier batches instead of replacing them.
    `is_replayed`: its rows come from the quarantine, which keeps them until the good ones are
    committed. `is_absent`: it has no files, as its source declares, so its count is not unusual.
    `shares_files`: its files hold other intervals, too, and it brings their UNDATED rows.
    """

    run: str
    number: int
    start: datetime | None
    end: datetime | None
    is_added: bool = False
    is_replayed: bool = False
    is_absent: bool = False
    shares_files: bool = False

    @property
    def within(self) -> str:
        """SQL condition for its rows in quarantine."""
        start, end = (time or NO_INTERVAL for time in (self.start, self.end))
        last = f"< '{end.isoformat()}'" if self.end else f"<= '{end.isoformat()}'"
        own = f" AND batch = {self.number}" if self.is_added else ""
        undated = f" OR {IS_UNDATED}" if self.shares_files else ""
        return f"({INTERVAL} >= '{start.isoformat()}' AND {INTERVAL} {last}{own}){undated}"


@contextmanager
def gate_rows(
    context: Context,
    table: Table,
    parsed: DataFrame,
    batch: JudgedBatch,
    refuse: Refusal = lambda _split, _verdict: None,
    on_conflict: str = "last",
) -> Iterator[Passed]:
    """Yield the rows that pass, for as long as the context is open.

    Raises QualityStop if an expectation marked `stop` fails, or if rows are in conflict and
    `on_conflict` is `fail`. It also raises what `refuse` raises. Nothing is quarantined or
    committed then; only the results are kept.
    """
    assert isinstance(table.spec, Declared)
    gate = Gate(table.id, table.expect, table.spec.key)
    split = gate.split(parsed).persist()
    try:
        verdict = gate.check(split)
        keep_results(context.lake, verdict, batch)
        verdict.enforce()
        check_misfits(split, verdict)
        refuse(split, verdict)
        name = _name_delivery(context, table, batch)
        conflicting = _conflicting(name, verdict, on_conflict)
        if not batch.is_replayed:
            put_in_quarantine(context, table, split, verdict, batch)
        found = anomalies.warnings(
            context.lake,
            verdict,
            run=batch.run,
            batch=batch.number,
            checked_at=datetime.now(UTC),
            interval_start=batch.start,
            is_absent=batch.is_absent,
        )
        unusual = [f"{name}: {what}" for what in found]
        named = replace(verdict, delivery=name, unusual=(*conflicting, *unusual))
        yield Passed(accepted_rows(split), named)
        if batch.is_replayed:
            put_in_quarantine(context, table, split, verdict, batch)
    finally:
        split.unpersist()


def _name_delivery(context: Context, table: Table, batch: JudgedBatch) -> str:
    """Return the table's name with the interval that is delivered."""
    if batch.start is None or batch.end is None:
        return table.id
    interval = Interval(start=batch.start, end=batch.end)
    return f"{table.id} {interval.format(context.timezones[table.pipeline])}"


def _conflicting(name: str, verdict: Verdict, on_conflict: str) -> tuple[str, ...]:
    """Return a warning about differing rows of one key. Raises QualityStop if that is a failure."""
    if verdict.conflicts is None:
        return ()
    if on_conflict == "fail":
        raise verdict.conflicts.stop(name)
    return (verdict.conflicts.warning(name, on_conflict),)


@dataclass(frozen=True)
class Checked:
    """Changelog of a view, and the warnings of its expectations."""

    changelog: ChangelogRows
    warnings: tuple[str, ...]


@contextmanager
def check_changelog(
    session: SparkSession,
    lake: LakeLayout,
    node: Maintained,
    changelog: ChangelogRows,
    batch: JudgedBatch,
) -> Iterator[Checked]:
    """Yield a view's changelog whose new rows met the expectations, while the context is open.

    Raises QualityStop if an expectation marked `stop` fails; nothing is committed then.
    """
    if not node.expectations:
        yield Checked(changelog, ())
        return
    rows = as_rows(session, changelog)
    cached = rows.persist()
    try:
        verdict = judge(node, cached)
        keep_results(lake, verdict, batch)
        verdict.enforce()
        yield Checked(changelog if rows is not changelog else cached, verdict.warnings)
    finally:
        cached.unpersist()


def judge(node: Maintained, changelog: DataFrame) -> Verdict:
    """Return the verdict of the expectations on a changelog's new rows."""
    gate = Gate(node.id, node.expectations)
    return gate.check(gate.split(changelog.where(F.col(CHANGE) != "delete").drop(CHANGE)))


def keep_results(lake: LakeLayout, verdict: Verdict, batch: JudgedBatch) -> None:
    """Add the outcomes of one check to the history of the lake."""
    rows = history.rows(
        verdict,
        run=batch.run,
        batch=batch.number,
        checked_at=datetime.now(UTC),
        interval_start=batch.start,
    )
    append_rows(f"{lake.root}/{history.TABLE}", rows)


def quarantine_rows(
    split: DataFrame,
    *,
    interval_start: dt.datetime,
    batch: int,
    run: str,
    quarantined_at: dt.datetime,
) -> DataFrame:
    """Return a split batch's rows for the quarantine (see `gate`), in SCHEMA; times are aware."""
    start = _timestamp(interval_start)
    if UNDATED in split.columns:
        start = F.when(F.col(UNDATED), _timestamp(NO_INTERVAL)).otherwise(start)
    columns = [
        start.alias(INTERVAL),
        _join_reasons("reason").alias("reason"),
        _join_reasons("expectation").alias("expectation"),
        F.expr(whole(split)).alias("raw"),
        F.expr(FILE if FILE in split.columns else "CAST(NULL AS STRING)").alias("file"),
        F.lit(batch).cast("bigint").alias("batch"),
        F.lit(run).alias("run"),
        _timestamp(quarantined_at).alias("quarantined_at"),
    ]
    return split.filter(f"NOT ({ACCEPTED})").select(*columns)


def _timestamp(time: dt.datetime) -> Column:
    """Return an instant, independent of the session's time zone."""
    micros = round(time.timestamp() * 1_000_000)
    return F.expr(f"timestamp_micros({micros}L)")


def _join_reasons(field: str) -> Column:
    """Return all of a row's reasons; null without the field (a reader's reason has no rule)."""
    return F.expr(f"nullif(array_join({REASONS}.{field}, '; '), '')")


def put_in_quarantine(
    context: Context, table: Table, split: DataFrame, verdict: Verdict, batch: JudgedBatch
) -> None:
    """Replace the quarantine of a delivery, and check that no row of the delivery is missing."""
    uri = context.lake.uri(table.id, QUARANTINE)
    if not verdict.rows_quarantined:
        delete_rows(uri, batch.within)
        passing("quarantined", table.id)
        return
    bad = quarantine_rows(
        split,
        interval_start=batch.start or NO_INTERVAL,
        batch=batch.number,
        run=batch.run,
        quarantined_at=datetime.now(UTC),
    )
    is_small = verdict.bytes_quarantined <= context.limits.collected_bytes
    if is_small or not takes_spark(uri):
        replace_rows(uri, bad.toArrow(), batch.within)
    else:
        create_empty(uri, bad.limit(0).toArrow().schema)
        replace_where(uri, bad, batch.within)
    passing("quarantined", table.id)
    _check_balance(verdict, count_rows(uri, batch.within))


def _check_balance(verdict: Verdict, quarantined: int) -> None:
    """Raise AssertionError unless rows read = rows accepted + rows in quarantine."""
    if verdict.rows_read != verdict.rows_accepted + quarantined:
        raise AssertionError(
            f"{verdict.table}: {verdict.rows_read} rows read are not {verdict.rows_accepted}"
            f" accepted and {quarantined} quarantined"
        )


def check_misfits(split: DataFrame, verdict: Verdict) -> None:
    """Raise QualityStop for a column in which no value has the declared type.

    Starts no job unless many rows are quarantined and a column is empty.
    """
    counted = verdict.counts
    empty = {c for c, n in counted.nulls.items() if n == counted.rows} if counted else set()
    if verdict.rows_quarantined < MANY or not empty:
        return
    what = F.substring_index(REASON, ": ", 1)
    found = split.where(F.col(REASON).isNotNull()).groupBy(what.alias("what"))
    counts = found.agg(F.count(F.lit(1)).alias("n"), F.min(F.struct(FILE, REASON)).alias("e.g."))
    for row in counts.where(f"n >= {MANY}").toArrow().to_pylist():
        if row["what"].removeprefix("column ") in empty:
            first = row["e.g."]
            raise QualityStop(
                f"{verdict.table}: {row['what']}: not one of {row['n']:,} values is of the"
                f" declared type; e.g. in {first[FILE]}: {first[REASON]}",
                hint="nothing was committed; fix the delivery or the source's `schema`",
            )
