"""Rows of a dimension: as its source has them, and as its table should have them.

A snapshot has every row. In a log of changes, the latest row of each key counts. With history,
removed rows are closed instead of deleted.
"""

from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from sluice.changes.order import last_first
from sluice.declare.delivered_row import FILE, REASON
from sluice.declare.table import Table
from sluice.dimensions import history
from sluice.dimensions.spec import Dimension
from sluice.engine.query import validity
from sluice.engine.query.operator import names
from sluice.files.marks import OP, POSITION
from sluice.files.operations import operations, placed, unknown_word
from sluice.files.reading import Reading
from sluice.gate.rules.row_rules import EVERY_ROW

ORIGIN = "_sluice_origin"  # the file of a log's row


def judged(reading: Reading, spec: Dimension, fits: str) -> Reading:
    """Add the dimension's own reasons to those of the rows read.

    Rows of a log get their ORIGIN. `fits`: SQL condition for rows that break no other rule.
    """
    rows = placed(reading.rows, spec.key)
    if spec.delivery == "changes":
        rows = rows.withColumn(ORIGIN, F.col(FILE))
        reasons = [unknown_word(spec.change)] if spec.change else []
    else:
        reasons = [_repeated(spec, fits)]
    reasons = [F.col(REASON), *_without_beginning(spec), *reasons]
    return Reading(rows.withColumn(REASON, F.coalesce(*reasons)), reading.warnings)


def columns_of(table: Table, spec: Dimension) -> tuple[str, ...]:
    """Return the delivered columns, all but those that a history adds."""
    own = () if not spec.history else tuple(c for c in validity.COLUMNS if c != spec.valid_from)
    return tuple(c for c in table.columns if c not in own)


def current(accepted: DataFrame, table: Table) -> DataFrame:
    """Return the current rows of a whole snapshot, or of a whole log."""
    spec = table.spec
    assert isinstance(spec, Dimension)
    if spec.delivery == "changes":
        return standing(last(operations(accepted, spec.change), spec), table)
    return accepted.select(*names(columns_of(table, spec)))


def last(rows: DataFrame, spec: Dimension) -> DataFrame:
    """Return the last row of each key, or of each of its versions if they have a start."""
    by = Window.partitionBy(*names(spec.identity))
    nth = F.row_number().over(by.orderBy(*last_first((*spec.sequence, ORIGIN, POSITION))))
    return rows.withColumn("_last", nth).where(F.col("_last") == 1).drop("_last")


def standing(rows: DataFrame, table: Table) -> DataFrame:
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
    now, old = datetime.now(UTC), history.completed(old, loaded)
    if spec.valid_from:
        return history.versions_by_column(old, loaded, spec.key, spec.valid_from, now)
    return history.versions_by_load(old, loaded, spec.key, now)


def _repeated(spec: Dimension, fits: str) -> Column:
    """Reject a second good row of a key; it would multiply the facts that are joined to it."""
    reason = f"another row has the same key ({', '.join(spec.identity)})"
    if fits == EVERY_ROW and spec.identity == spec.key:
        return F.when(F.col(POSITION) > 1, reason)
    counts = F.isnull(REASON) & F.expr(fits)
    by = Window.partitionBy(*names(spec.identity), counts).orderBy(POSITION)
    return F.when(counts & (F.row_number().over(by) > 1), reason)


def _without_beginning(spec: Dimension) -> list[Column]:
    if not spec.valid_from:
        return []
    unknown = f"column {spec.valid_from} is null: the start of the row's validity is unknown"
    return [F.when(F.col(f"`{spec.valid_from}`").isNull(), unknown)]
