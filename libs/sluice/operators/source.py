"""The rows of a source's table, given everything that was delivered.

With a key, they are the latest delivery of each key: by `sequence` if declared, then by interval,
then by position in the interval. A delete hides earlier rows. So redelivering an older interval
never overwrites a newer row, and a row removed from an interval's files brings back what it hid.
Change rows without a key are a multiset: a delete removes one equal row, whichever arrived first.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from sluice.operators.operator import Operator, Rows, names
from sluice.operators.order import last_first
from sluice.specs.declared import Declared
from sluice.specs.graph import Table

INTERVAL, INTERVAL_END, ID = "_sluice_interval", "_sluice_interval_end", "_sluice_id"
POSITION, OP = "_sluice_position", "_sluice_op"


class LatestOfKey(Operator):
    """One row per key: the last that was delivered, unless that is a delete."""

    def __init__(self, table: Table, deliveries_id: str):
        assert isinstance(table.spec, Declared)
        self.table, self.spec = table, table.spec
        self.inputs = (deliveries_id,)
        self.group = self.key = table.spec.key

    def columns(self, name: str) -> tuple[str, ...]:
        return (*self.table.columns, INTERVAL, POSITION, ID, OP)

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        return rows

    def combine(self, prepared: Rows, references: Rows) -> DataFrame:
        order = last_first((*self.spec.sequence, INTERVAL, POSITION, ID))
        over = Window.partitionBy(*names(self.key)).orderBy(*order)
        latest = prepared[self.inputs[0]].withColumn("_last", F.row_number().over(over))
        kept = latest.where((F.col("_last") == 1) & (F.col(OP) != "delete"))
        return kept.select(*names(tuple(self.table.columns)))


class Multiset(Operator):
    """Copies of each row: its inserts minus its deletes."""

    def __init__(self, table: Table, deliveries_id: str):
        self.table = table
        self.inputs = (deliveries_id,)
        self.group = tuple(table.columns)
        self.key = table.key

    def columns(self, name: str) -> tuple[str, ...]:
        return (*self.group, INTERVAL, ID, OP)

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        return rows

    def combine(self, prepared: Rows, references: Rows) -> DataFrame:
        sign = F.when(F.col(OP) == "delete", -1).otherwise(1)
        counted = prepared[self.inputs[0]].groupBy(*names(self.group)).agg(F.sum(sign).alias("_n"))
        copies = F.explode(F.sequence(F.lit(1), F.col("_n").cast("int")))
        each = counted.where("_n > 0").withColumn("_copy", copies)
        return each.select(
            *names(self.group),
            F.lit(None).cast("timestamp").alias(INTERVAL),
            identity(each, self.group, F.col("_copy")).alias(ID),
        )


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
    plain = {c: "map<" not in types[c] and "variant" not in types[c] for c in columns}
    return [F.col(f"`{c}`") if plain[c] else F.to_json(F.struct(f"`{c}`")) for c in columns]
