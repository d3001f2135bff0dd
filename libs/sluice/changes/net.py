"""The net change between two versions of a table, as a weighted set of rows.

A row has weight +1 for each copy that was added and -1 for each that was removed. Copies added and
removed in between cancel out, and so do changes of columns that the reader does not use. This is
the Z-set of Budiu et al., "DBSP: Automatic Incremental View Maintenance", VLDB 2023.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluice.changes.feed_columns import CHANGE_TYPE, COMES

WEIGHT = "_sluice_weight"


def net(feed: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return `columns` and WEIGHT (never 0) of the changed rows. One shuffle of the feed.

    `feed` is Delta's change feed of the versions to consume. A row's old image has negative weight,
    its new image positive weight.
    """
    return summed(weighted(feed, columns), columns)


def weighted(feed: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return `columns` and WEIGHT (1 or -1) of each row of a feed, not summed."""
    comes = F.col(CHANGE_TYPE).isin(*COMES)
    return feed.select(*_quoted(columns), F.when(comes, 1).otherwise(-1).alias(WEIGHT))


def between(old: DataFrame, new: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return the net change from one state of a table to another. One shuffle of both."""
    gone = as_inserts(old, columns).withColumn(WEIGHT, -F.col(WEIGHT))
    return summed(as_inserts(new, columns).unionByName(gone), columns)


def as_inserts(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return a whole table as the change from nothing."""
    return rows.select(*_quoted(columns), F.lit(1).cast("bigint").alias(WEIGHT))


def arrivals(changes: DataFrame) -> DataFrame:
    """Return the new images, without weights. Only for changes whose rows are unique."""
    return changes.where(F.col(WEIGHT) > 0).drop(WEIGHT)


def departures(changes: DataFrame) -> DataFrame:
    """Return the old images, without weights. Only for changes whose rows are unique."""
    return changes.where(F.col(WEIGHT) < 0).drop(WEIGHT)


def summed(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Sum the weights of equal rows and drop those that cancel out. One shuffle."""
    sums = rows.groupBy(*_quoted(columns)).agg(F.sum(WEIGHT).alias(WEIGHT))
    return sums.where(F.col(WEIGHT) != 0)


def _quoted(columns: Sequence[str]) -> list[str]:
    return [f"`{c}`" for c in columns]
