"""The rows of a source's table, given everything that was delivered.

With a key, they are the latest delivery of each key: by `sequence` if declared, then by interval,
then by position in the interval. A delete hides earlier rows. So redelivering an older interval
never overwrites a newer row, and a row removed from an interval's files brings back what it hid.
Change rows without a key are a multiset: a delete removes one equal row, whichever arrived first.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from sluice.changes import last_first
from sluice.declare.declared import Declared
from sluice.declare.meaning import definition
from sluice.declare.table import Table
from sluice.engine.batch import Batch
from sluice.engine.operator import InputRows, Operator, names
from sluice.engine.plan import Node
from sluice.engine.tracing import Groups
from sluice.engine.upkeep import Kept
from sluice.files.reading import OP, POSITION, identity
from sluice.language.names import DELIVERIES, ID, INTERVAL, internal
from sluice.sources import Source


class LatestOfKey(Operator):
    """One row per key: the last that was delivered, unless that is a delete."""

    def __init__(self, table: Table, deliveries_id: str):
        assert isinstance(table.spec, Declared)
        self.table, self.spec = table, table.spec
        self.inputs = (deliveries_id,)
        self.group = self.key = table.spec.key

    def columns(self, name: str) -> tuple[str, ...]:
        return (*self.table.columns, INTERVAL, POSITION, ID, OP)

    def map_to_group(self, name: str) -> Sequence[Mapping[str, str]]:
        return [{column: column for column in self.group}]

    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        return self.latest(prepared[self.inputs[0]]).select(*names(tuple(self.table.columns)))

    def latest(self, deliveries: DataFrame) -> DataFrame:
        """Return the delivered row that is valid for each key, unless that is a delete."""
        order = last_first((*self.spec.sequence, INTERVAL, POSITION, ID))
        over = Window.partitionBy(*names(self.key)).orderBy(*order)
        ranked = deliveries.withColumn("_last", F.row_number().over(over))
        return ranked.where((F.col("_last") == 1) & (F.col(OP) != "delete"))


class Multiset(Operator):
    """Copies of each row: its inserts minus its deletes."""

    def __init__(self, table: Table, deliveries_id: str):
        self.table = table
        self.inputs = (deliveries_id,)
        self.group = tuple(table.columns)
        self.key = table.key

    def columns(self, name: str) -> tuple[str, ...]:
        return (*self.group, INTERVAL, ID, OP)

    def map_to_group(self, name: str) -> Sequence[Mapping[str, str]]:
        return [{column: column for column in self.group}]

    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        sign = F.when(F.col(OP) == "delete", -1).otherwise(1)
        counted = prepared[self.inputs[0]].groupBy(*names(self.group)).agg(F.sum(sign).alias("_n"))
        copies = F.explode(F.sequence(F.lit(1), F.col("_n").cast("int")))
        each = counted.where("_n > 0").withColumn("_copy", copies)
        return each.select(
            *names(self.group),
            F.lit(None).cast("timestamp").alias(INTERVAL),
            identity(each, self.group, F.col("_copy")).alias(ID),
        )


def nodes(table: Table) -> tuple[Node, ...]:
    """Return the source itself; nothing if its rows are stored as delivered."""
    spec = table.spec
    assert isinstance(spec, Source)
    if not spec.keeps_deliveries:
        return ()
    deliveries = internal(table.id, DELIVERIES)
    rows = LatestOfKey(table, deliveries) if spec.key else Multiset(table, deliveries)
    return (Node(table.id, table, rows, definition(table), Batch, Kept),)


def trace_rows(operator: Operator, groups: Groups) -> InputRows:
    """Return the delivered row that is valid for each key, or all of a counted row."""
    if not isinstance(operator, LatestOfKey):
        return groups.prepared
    return {name: operator.latest(found) for name, found in groups.prepared.items()}
