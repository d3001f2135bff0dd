"""Hidden columns of delivered rows: their position, operation and computed identity."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from sluice.declare.delivered_row import OP
from sluice.language.hidden_columns import ID

__all__ = ["OP", "POSITION", "comparable", "identified", "identity"]
POSITION = "_sluice_position"


def identity(rows: DataFrame, columns: tuple[str, ...], ordinal: Column) -> Column:
    """Return the hidden identity of a row without a key: a hash of its columns, and its ordinal."""
    return F.concat_ws("-", F.hex(F.xxhash64(*comparable(rows, columns))), ordinal.cast("string"))


def identified(rows: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    """Return `rows` of one interval with ID, the same for equal rows in any reading order."""
    values = comparable(rows, columns)
    marks = rows.withColumn("_hash", F.xxhash64(*values))
    in_order = Window.partitionBy("_hash").orderBy(*values)
    numbered = marks.withColumn("_ordinal", F.row_number().over(in_order))
    known = identity(rows, columns, F.col("_ordinal"))
    return numbered.withColumn(ID, known).drop("_hash", "_ordinal")


def comparable(rows: DataFrame, columns: tuple[str, ...]) -> list[Column]:
    """Return the columns, as JSON if Spark neither hashes nor orders their type."""
    types = dict(rows.dtypes)
    return [
        F.to_json(F.struct(f"`{c}`")) if "map<" in types[c] else F.col(f"`{c}`") for c in columns
    ]
