"""Rows of a dimension: as its source has them, as its table should have them, and their history.

A snapshot has every row. In a log of changes, the latest row of each key counts. With history,
removed rows are closed instead of deleted.

History is SCD type 2 (Kimball): valid_from, valid_to (exclusive, null while current), is_current. A
key's first version is valid from the beginning of time unless the source gives its start.
"""

from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from sluice.changes import last_first
from sluice.declare.declared import FILE, REASON
from sluice.declare.table import Table
from sluice.dimensions import Dimension
from sluice.engine.operator import names
from sluice.files.reading import OP, POSITION, Reading, operations, place_rows, unknown_word
from sluice.gate.row_rules import EVERY_ROW
from sluice.language.interval import EPOCH
from sluice.language.names import COLUMNS, CURRENT, FROM, TO

ORIGIN = "_sluice_origin"  # the file of a log's row


def judge_rows(reading: Reading, spec: Dimension, fits: str) -> Reading:
    """Add the dimension's own reasons to those of the rows read.

    Rows of a log get their ORIGIN. `fits`: SQL condition for rows that break no other rule.
    """
    rows = place_rows(reading.rows, spec.key)
    if spec.delivery == "changes":
        rows = rows.withColumn(ORIGIN, F.col(FILE))
        reasons = [unknown_word(spec.change)] if spec.change else []
    else:
        reasons = [_refuse_repeated(spec, fits)]
    reasons = [F.col(REASON), *_refuse_without_beginning(spec), *reasons]
    return Reading(rows.withColumn(REASON, F.coalesce(*reasons)), reading.warnings)


def columns_of(table: Table, spec: Dimension) -> tuple[str, ...]:
    """Return the delivered columns, all but those that a history adds."""
    own = () if not spec.history else tuple(c for c in COLUMNS if c != spec.valid_from)
    return tuple(c for c in table.columns if c not in own)


def current_rows(accepted: DataFrame, table: Table) -> DataFrame:
    """Return the current rows of a whole snapshot, or of a whole log."""
    spec = table.spec
    assert isinstance(spec, Dimension)
    if spec.delivery == "changes":
        return without_deletes(last_rows(operations(accepted, spec.change), spec), table)
    return accepted.select(*names(columns_of(table, spec)))


def last_rows(rows: DataFrame, spec: Dimension) -> DataFrame:
    """Return the last row of each key, or of each of its versions if they have a start."""
    by = Window.partitionBy(*names(spec.identity))
    nth = F.row_number().over(by.orderBy(*last_first((*spec.sequence, ORIGIN, POSITION))))
    return rows.withColumn("_last", nth).where(F.col("_last") == 1).drop("_last")


def without_deletes(rows: DataFrame, table: Table) -> DataFrame:
    """Return last rows without deletes."""
    assert isinstance(table.spec, Dimension)
    return rows.where(F.col(OP) != "delete").select(*names(columns_of(table, table.spec)))


def table_rows(
    session: SparkSession, table: Table, loaded: DataFrame, old: DataFrame | None
) -> DataFrame:
    """Return all rows that the table should have.

    `old`: the rows that it has, if it keeps a history. They may be of an earlier definition that
    had fewer columns.
    """
    spec = table.spec
    assert isinstance(spec, Dimension)
    if not spec.history:
        return loaded
    if old is None:
        fields = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in loaded.schema.fields)
        own = "valid_from TIMESTAMP, valid_to TIMESTAMP, is_current BOOLEAN"
        old = session.createDataFrame([], f"{fields}, {own}")
    now, old = datetime.now(UTC), add_columns(old, loaded)
    if spec.valid_from:
        return versions_by_column(old, loaded, spec.key, spec.valid_from, now)
    return versions_by_load(old, loaded, spec.key, now)


def _refuse_repeated(spec: Dimension, fits: str) -> Column:
    """Reject a second good row of a key; it would multiply the facts that are joined to it."""
    reason = f"another row has the same key ({', '.join(spec.identity)})"
    if fits == EVERY_ROW and spec.identity == spec.key:
        return F.when(F.col(POSITION) > 1, reason)
    counts = F.isnull(REASON) & F.expr(fits)
    by = Window.partitionBy(*names(spec.identity), counts).orderBy(POSITION)
    return F.when(counts & (F.row_number().over(by) > 1), reason)


def _refuse_without_beginning(spec: Dimension) -> list[Column]:
    if not spec.valid_from:
        return []
    unknown = f"column {spec.valid_from} is null: the start of the row's validity is unknown"
    return [F.when(F.col(f"`{spec.valid_from}`").isNull(), unknown)]


LAST = "_last"  # the first moment after a key's whole history
BEGINNING = datetime(1, 1, 1, tzinfo=UTC)


def versions_by_load(
    old: DataFrame, loaded: DataFrame, key: tuple[str, ...], at: datetime
) -> DataFrame:
    """Return the history after a snapshot that was loaded at `at`.

    A row that differs from its key's current version closes it and begins a new one. A key missing
    from the snapshot is closed; one that returns begins a new version. All these times are later
    than the key's history, even if the clock was set back.
    """
    values = tuple(loaded.columns)
    now = F.lit(at).cast("timestamp")
    current = old.where(F.col(CURRENT))
    unchanged = _matching(current, loaded, values, "left_semi")
    until = F.greatest(now, _after(F.col(FROM)))
    closed = _anti(current, loaded, values).withColumn(TO, until).withColumn(CURRENT, F.lit(False))
    last = F.max(_after(F.greatest(FROM, F.coalesce(TO, FROM)))).alias(LAST)
    known = old.groupBy(*names(key)).agg(last)
    fresh = _anti(loaded, current, values)
    micros = (BEGINNING - EPOCH) // timedelta(
        microseconds=1
    )  # a literal would be of Java's calendar
    begun = [
        (_matching(fresh, known, key, "inner").select("_l.*", LAST), F.greatest(now, LAST)),
        (_anti(fresh, known, key), F.timestamp_micros(F.lit(micros))),
    ]
    result = old.where(~F.col(CURRENT)).unionByName(unchanged).unionByName(closed)
    for rows, start in begun:
        opened = rows.withColumn(FROM, start).withColumn(TO, F.lit(None).cast("timestamp"))
        opened = opened.drop(LAST)
        result = result.unionByName(opened.withColumn(CURRENT, F.lit(True)))
    return result


def _after(moment: Column) -> Column:
    """Return the next moment: by numbers, because small batches know no literal intervals."""
    return F.timestamp_micros(F.unix_micros(moment) + 1)


def versions_by_column(
    old: DataFrame, loaded: DataFrame, key: tuple[str, ...], column: str, at: datetime
) -> DataFrame:
    """Return the history after a snapshot with the start of each row's validity in `column`.

    Versions may arrive late and in any order: each is valid until the next of its key. A key
    missing from the snapshot is closed at `at`.
    """
    stated = loaded.withColumn(FROM, F.col(f"`{column}`").cast("timestamp"))
    identity = (*key, FROM)
    kept = _anti(old, stated, identity)
    gone = _anti(kept.select(*names(key)).distinct(), loaded, key).withColumn("_gone", F.lit(True))
    versions = kept.drop(TO, CURRENT).unionByName(stated)
    closed_before = kept.where(~F.col(CURRENT) & F.col(TO).isNotNull()).select(
        *names(identity), F.col(TO).alias("_was")
    )
    in_order = Window.partitionBy(*names(key)).orderBy(FROM)
    following = versions.withColumn("_next", F.lead(FROM).over(in_order))
    joined = following.join(gone, list(key), "left").join(closed_before, list(identity), "left")
    until = F.coalesce(F.col("_next"), F.when(F.col("_gone"), F.coalesce("_was", F.lit(at))))
    return (
        joined.withColumn(TO, until.cast("timestamp"))
        .withColumn(CURRENT, F.col(TO).isNull())
        .drop("_next", "_gone", "_was")
    )


def add_columns(old: DataFrame, loaded: DataFrame) -> DataFrame:
    """Return a history with all columns of `loaded`, some of which it lacks.

    An added column is not an event in the history. A current version that agrees with the snapshot
    in all shared columns gets the others from there. Closed versions have null.
    """
    shared = [c for c in loaded.columns if c in old.columns]
    added = [c for c in loaded.columns if c not in old.columns]
    if not added:
        return old
    left, right = old.alias("_l"), loaded.alias("_r")
    agrees = F.col(f"_l.{CURRENT}")
    for name in shared:
        agrees = agrees & F.col(f"_l.`{name}`").eqNullSafe(F.col(f"_r.`{name}`"))
    new = [F.col(f"_r.`{name}`") for name in added]
    return left.join(right, agrees, "left").select("_l.*", *new)


def _anti(rows: DataFrame, others: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    return _matching(rows, others, columns, "left_anti")


def _matching(rows: DataFrame, others: DataFrame, columns: tuple[str, ...], how: str) -> DataFrame:
    left, right = rows.alias("_l"), others.alias("_r")
    condition = F.lit(True)
    for name in columns:
        condition = condition & F.col(f"_l.`{name}`").eqNullSafe(F.col(f"_r.`{name}`"))
    return left.join(right, condition, how)
