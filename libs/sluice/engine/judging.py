"""Judgement of rows before they are committed: expectations, the quarantine, forgotten subjects.

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

A forgotten subject is one whose rows were removed from a source; its later rows are withheld.
`<source>__forgotten` notes each by a salted hash of some columns' values, never by the values. So
anybody who knows a value can check it, and short numbers can be guessed. The note is made first:
from then on, no delivery restores the subject's rows.
"""

import datetime as dt
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from sluice.changes import CHANGE
from sluice.declare.declared import FILE, KEPT, RAW, REASON, UNDATED, Declared
from sluice.declare.stores import takes_spark
from sluice.declare.table import Table
from sluice.delta.intervals import IS_UNDATED, NO_INTERVAL
from sluice.delta.note_tables import (
    append_rows,
    count_rows,
    create_empty,
    delete_rows,
    read_rows,
    replace_rows,
)
from sluice.delta.places.failpoint import passing
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.reading.spark_reads import replace_where
from sluice.engine.batch_plan import ChangelogRows, Context, as_rows
from sluice.engine.operator import Maintained
from sluice.errors import QualityStop
from sluice.gate import anomalies, history
from sluice.gate.counts import CONFLICT
from sluice.gate.gate import ACCEPTED, REASONS, Gate, accepted_rows, visible, whole
from sluice.gate.results import Verdict
from sluice.gate.sql import as_json
from sluice.language.interval import Interval
from sluice.language.names import INTERVAL, QUARANTINE

REASON_GIVEN = "the row's subject was forgotten"
_TIME = pa.timestamp("us", "UTC")
_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("salt", pa.string()),
        ("hashes", pa.list_(pa.string())),
        ("begun_at", _TIME),
        ("ended_at", _TIME),
        ("receipt", pa.string()),
    ]
)


@dataclass(frozen=True)
class Forgotten:
    """One note: subjects that were forgotten together. `ended_at`: None while that goes on.

    `receipt`: what has been done so far, as JSON.
    """

    id: str
    columns: tuple[str, ...]
    salt: str
    hashes: tuple[str, ...]
    begun_at: datetime
    ended_at: datetime | None = None
    receipt: str = "[]"

    @classmethod
    def of(cls, session: SparkSession, subjects: pa.Table) -> "Forgotten":
        """Return a new note of subjects, given by the columns that name them."""
        salt, columns = uuid.uuid4().hex, tuple(subjects.column_names)
        hashes = tuple(sorted(set(hashes_of(session, subjects, salt))))
        return cls(uuid.uuid4().hex[:12], columns, salt, hashes, datetime.now(UTC))

    def is_of(self, session: SparkSession, subjects: pa.Table) -> bool:
        """True if it notes exactly these subjects."""
        if tuple(subjects.column_names) != self.columns:
            return False
        return set(hashes_of(session, subjects, self.salt)) == set(self.hashes)

    def has(self, session: Any, subjects: pa.Table) -> bool:
        """True if it notes each of these subjects, given by its own columns."""
        return set(hashes_of(session, subjects, self.salt)) <= set(self.hashes)

    @property
    def marks(self) -> Column:
        """Return the condition for rows of its subjects."""
        named = {name: "`.`".join(name.split(".")) for name in self.columns}
        return _hash(named, self.salt).isin(list(self.hashes))


def hashes_of(session: SparkSession, subjects: pa.Table, salt: str) -> list[str]:
    """Return the hash of each subject."""
    rows = session.createDataFrame(subjects)
    whole = _hash({name: name for name in subjects.column_names}, salt)
    found = rows.select(whole.alias("hash")).toArrow()
    return [str(value) for value in found["hash"].to_pylist()]


def _hash(columns: Mapping[str, str], salt: str) -> Column:
    """Return the hash of values by their names; `columns`: where each is, without outer quotes."""
    parts = (f"'{name}', `{place}`" for name, place in columns.items())
    whole = as_json(f"named_struct({', '.join(parts)})")
    return F.sha2(F.concat(F.lit(salt), F.expr(whole)), 256)


def read_notes(uri: str) -> list[Forgotten]:
    """Return the notes at `uri`, the oldest first; none if nothing was forgotten."""
    lists = ("columns", "hashes")
    rows = sorted(read_rows(uri), key=lambda row: row["begun_at"])
    return [Forgotten(**{**row, **{name: tuple(row[name]) for name in lists}}) for row in rows]


def keep(uri: str, note: Forgotten) -> None:
    """Replace a note's earlier state."""
    rows = pa.Table.from_pylist([asdict(note)], schema=_SCHEMA)
    replace_rows(uri, rows, f"id = '{note.id}'")


def with_line(note: Forgotten, line: dict[str, Any]) -> Forgotten:
    """Return the note with another line in its receipt.

    An earlier attempt may have done the same at that place: its count is added. Its line stays if
    there was nothing more to do.
    """
    lines = json.loads(note.receipt)
    earlier = next((one for one in lines if _place(one) == _place(line)), None)
    if earlier and earlier["count"]:
        count = earlier["count"] + (line["count"] or 0)
        line = {**(line if line["count"] else earlier), "count": count}
    others = [one for one in lines if one is not earlier]
    return replace(note, receipt=json.dumps([*others, line]))


def _place(line: dict[str, Any]) -> tuple[Any, Any]:
    return line["place"], line["what"]


def withheld(rows: DataFrame, forgotten: Iterable[Forgotten]) -> DataFrame:
    """Give a reason to delivered rows of forgotten subjects, and remove their values."""
    for note in forgotten:
        if all(_has_path(rows.schema, name) for name in note.columns):
            rows = _without_values(rows, note.marks)
    return rows


def _has_path(schema: StructType, path: str) -> bool:
    type_: DataType = schema
    for name in path.split("."):
        if not isinstance(type_, StructType) or name not in type_.names:
            return False
        type_ = type_[name].dataType
    return True


def _without_values(rows: DataFrame, is_forgotten: Column) -> DataFrame:
    marked = rows.withColumn("_sluice_forgotten", F.coalesce(is_forgotten, F.lit(False)))
    emptied = {*visible(rows), RAW, KEPT} & set(rows.columns)
    types, mark = dict(rows.dtypes), F.col("_sluice_forgotten")
    shown = []
    for name in rows.columns:
        value = F.col(f"`{name}`")
        if name in emptied:
            value = F.when(~mark, value).otherwise(F.lit(None).cast(types[name]))
        elif name == REASON:
            value = F.when(mark, REASON_GIVEN).otherwise(value)
        elif name == CONFLICT:
            value = F.when(mark, 0).otherwise(value)
        shown.append(value.alias(name))
    return marked.select(*shown)


SCHEMA = (
    f"{INTERVAL} TIMESTAMP, reason STRING, expectation STRING, raw STRING, file STRING,"
    " batch BIGINT, run STRING, quarantined_at TIMESTAMP"
)


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


@dataclass(frozen=True)
class Checked:
    """Changelog of a view, and the warnings of its expectations."""

    changelog: ChangelogRows
    warnings: tuple[str, ...]


@contextmanager
def checked(
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


MANY = 20


def check_misfits(split: DataFrame, verdict: Verdict) -> None:
    """Raise QualityStop for such a column.

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


@dataclass(frozen=True)
class Passed:
    """Accepted rows, cached, and what the gate found."""

    rows: DataFrame
    verdict: Verdict


Refusal = Callable[[DataFrame, Verdict], None]


@contextmanager
def gated(
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
