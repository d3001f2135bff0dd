"""Dimensions: the rows of a snapshot, and their history.

History is SCD type 2 (Kimball): valid_from, valid_to (exclusive, null while current), is_current. A
key's first version is valid from the beginning of time unless the source gives its start.
"""

from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from sluice.engine.query.operator import names
from sluice.engine.query.validity import CURRENT, FROM, TO
from sluice.language.wall_clock import EPOCH

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
    unchanged = _semi(current, loaded, values)
    until = F.greatest(now, _after(F.col(FROM)))
    closed = _anti(current, loaded, values).withColumn(TO, until).withColumn(CURRENT, F.lit(False))
    last = F.max(_after(F.greatest(FROM, F.coalesce(TO, FROM)))).alias(LAST)
    known = old.groupBy(*names(key)).agg(last)
    fresh = _anti(loaded, current, values)
    begun = [
        (_matching(fresh, known, key, "inner").select("_l.*", LAST), F.greatest(now, LAST)),
        (_anti(fresh, known, key), F.timestamp_micros(F.lit(_micros(BEGINNING)))),
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


def _micros(moment: datetime) -> int:
    """Return microseconds since the epoch; a literal time would use Java's different calendar."""
    return (moment - EPOCH) // timedelta(microseconds=1)


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


def completed(old: DataFrame, loaded: DataFrame) -> DataFrame:
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


def _semi(rows: DataFrame, others: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    return _matching(rows, others, columns, "left_semi")


def _anti(rows: DataFrame, others: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    return _matching(rows, others, columns, "left_anti")


def _matching(rows: DataFrame, others: DataFrame, columns: tuple[str, ...], how: str) -> DataFrame:
    left, right = rows.alias("_l"), others.alias("_r")
    condition = F.lit(True)
    for name in columns:
        condition = condition & F.col(f"_l.`{name}`").eqNullSafe(F.col(f"_r.`{name}`"))
    return left.join(right, condition, how)
