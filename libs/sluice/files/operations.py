"""Rows that are changes, and the order of rows within one delivery.

A declared `change` column contains each row's operation, in the user's words. Here the word becomes
`insert` (the row is valid from now on) or `delete` (it is not).
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from sluice.declare.declared import Change
from sluice.declare.delivered_row import FILE, REASON
from sluice.engine.query.operator import names
from sluice.files.conversion import BLOCK, ROW
from sluice.files.marks import OP, POSITION


def unknown_word(change: Change) -> Column:
    """Return the reason for a row whose word is not declared, else null."""
    known = [*change.insert, *change.update, *change.delete, *change.update_before, *change.ignore]
    word = F.col(f"`{change.column}`")
    says = F.concat(F.lit(f"column {change.column}: "), F.coalesce(word, F.lit("null")))
    unknown = word.isNull() | ~word.isin(known)
    return F.when(unknown, F.concat(says, F.lit(f" is none of {', '.join(known)}")))


def operations(rows: DataFrame, change: Change | None) -> DataFrame:
    """Add OP, and leave out ignored rows."""
    if change is None:
        return rows.withColumn(OP, F.lit("insert"))
    word = F.col(f"`{change.column}`")
    deletes = [*change.delete, *change.update_before]
    kept = rows.where(~word.isin(list(change.ignore))) if change.ignore else rows
    return kept.withColumn(OP, F.when(word.isin(deletes), "delete").otherwise("insert"))


def placed(rows: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Add POSITION: each row's place among those of its key, in the order of the files.

    Rows that have a REASON don't count.
    """
    by = Window.partitionBy(*names(key), F.isnull(REASON)).orderBy(FILE, BLOCK, ROW)
    place = F.row_number().over(by) if key else F.lit(1)
    return rows.withColumn(POSITION, place.cast("bigint")).drop(BLOCK, ROW)


def without_repeats(rows: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    """Merge rows that are equal in `columns` into one, at the last of their positions."""
    return rows.groupBy(*names(columns)).agg(F.max(POSITION).alias(POSITION))
