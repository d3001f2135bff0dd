"""Rows that are changes, and the order in which rows of one delivery stand.

A declared `change` column says what each row does, in the user's words; here they become `insert`
(the row stands from now on) or `delete` (it does not).
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from sluice.operators.operator import names
from sluice.operators.source import OP, POSITION
from sluice.quality.tally import FILE, REASON
from sluice.runtime.conversion import BLOCK, ROW
from sluice.specs.source import Change


def unknown_word(change: Change) -> Column:
    """The reason of a row whose word is not declared, else null."""
    known = [*change.insert, *change.update, *change.delete, *change.update_before, *change.ignore]
    word = F.col(f"`{change.column}`")
    says = F.concat(F.lit(f"column {change.column}: "), F.coalesce(word, F.lit("null")))
    unknown = word.isNull() | ~word.isin(known)
    return F.when(unknown, F.concat(says, F.lit(f" is none of {', '.join(known)}")))


def operations(rows: DataFrame, change: Change | None) -> DataFrame:
    """With OP; ignored rows are left out."""
    if change is None:
        return rows.withColumn(OP, F.lit("insert"))
    word = F.col(f"`{change.column}`")
    deletes = [*change.delete, *change.update_before]
    kept = rows.where(~word.isin(list(change.ignore))) if change.ignore else rows
    return kept.withColumn(OP, F.when(word.isin(deletes), "delete").otherwise("insert"))


def placed(rows: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """With POSITION, each row's place among those of its key in the order of the files.

    Rows that have a REASON don't count.
    """
    by = Window.partitionBy(*names(key), F.isnull(REASON)).orderBy(FILE, BLOCK, ROW)
    place = F.row_number().over(by) if key else F.lit(1)
    return rows.withColumn(POSITION, place.cast("bigint")).drop(BLOCK, ROW)


def without_repeats(rows: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    """Rows that are alike in `columns` are one, at the last of their positions."""
    return rows.groupBy(*names(columns)).agg(F.max(POSITION).alias(POSITION))
