"""The difference between old and new rows: the minimal changelog.

Every batch ends here, so a rerun emits nothing and rows whose values stay the same appear nowhere.
"""

from collections.abc import Collection, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import MapType

CHANGE = "_sluice_change"


def diff(
    old: DataFrame, new: DataFrame, key: Sequence[str], *, ignore: Collection[str] = ()
) -> DataFrame:
    """The columns of `new` and CHANGE: insert, update or delete (the old row).

    `key` identifies a row on either side; null is a value like any other, and so is NaN. Columns
    in `ignore` don't make a row different. One shuffle of both sides together.
    """
    columns = new.columns
    sides = _side(old.select(*_named(columns)), "old").unionByName(_side(new, "new"))
    pairs = sides.groupBy(*[F.col(f"`{c}`") for c in key]).agg(
        *[F.first(F.when(F.col("_side") == s, F.col("_row")), True).alias(s) for s in _SIDES]
    )
    compared = [c for c in columns if c not in ignore and c not in key]
    change = (
        F.when(F.col("old").isNull(), "insert")
        .when(F.col("new").isNull(), "delete")
        .when(~_same(new, compared), "update")
    )
    changed = pairs.withColumn(CHANGE, change).where(F.col(CHANGE).isNotNull())
    row = F.coalesce(F.col("new"), F.col("old"))
    return changed.select(*[row.getField(c).alias(c) for c in columns], CHANGE)


_SIDES = ("old", "new")


def _side(rows: DataFrame, side: str) -> DataFrame:
    columns = rows.columns
    return rows.select("*", F.struct(*_named(columns)).alias("_row"), F.lit(side).alias("_side"))


def _named(columns: Sequence[str]) -> list[Column]:
    return [F.col(f"`{c}`") for c in columns]


def _same(rows: DataFrame, columns: Sequence[str]) -> Column:
    maps = {f.name for f in rows.schema.fields if isinstance(f.dataType, MapType)}
    same = F.lit(True)
    for name in columns:
        old, new = (F.col(side).getField(name) for side in _SIDES)
        if name in maps:
            old, new = (F.array_sort(F.map_entries(image)) for image in (old, new))
        same = same & old.eqNullSafe(new)
    return same
