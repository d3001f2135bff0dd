"""A dimension's rows: as its source has them, and as its table is to have them.

A snapshot is the whole truth; a log of changes is the latest row of each key over all of it. With
history, rows that go are closed instead of deleted.
"""

from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from sluice.operators import dimension as history
from sluice.operators.operator import names
from sluice.operators.order import last_first
from sluice.operators.source import OP, POSITION
from sluice.quality.tally import REASON
from sluice.runtime.changes import operations, placed, unknown_word
from sluice.runtime.reading import Reading
from sluice.specs.dimension import Dimension
from sluice.specs.table import Table


def judged(reading: Reading, spec: Dimension) -> Reading:
    """Rows that were read, with what the dimension itself has against them among the reasons."""
    rows = placed(reading.rows, spec.key)
    if spec.delivery == "changes":
        reason = unknown_word(spec.change) if spec.change else F.lit(None).cast("string")
    else:
        reason = _repeated(spec)
    return Reading(rows.withColumn(REASON, F.coalesce(REASON, reason)), reading.warnings)


def table_rows(
    session: SparkSession, table: Table, accepted: DataFrame, old: DataFrame | None
) -> DataFrame:
    """All rows that the table is to have; `old` are those that it has, if it keeps a history.

    They may be of an earlier definition that had fewer columns.
    """
    spec = table.spec
    assert isinstance(spec, Dimension)
    loaded = _current(accepted, table, spec)
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


def _current(rows: DataFrame, table: Table, spec: Dimension) -> DataFrame:
    own = () if not spec.history else tuple(c for c in history.COLUMNS if c != spec.valid_from)
    declared = tuple(c for c in table.columns if c not in own)
    if spec.delivery == "changes":
        by = Window.partitionBy(*names(spec.key))
        latest = F.row_number().over(by.orderBy(*last_first((*spec.sequence, POSITION))))
        rows = operations(rows, spec.change).withColumn("_last", latest)
        rows = rows.where((F.col("_last") == 1) & (F.col(OP) != "delete"))
    return rows.select(*names(declared))


def _repeated(spec: Dimension) -> Column:
    """A second row of a key, which would multiply the facts that are joined to it."""
    if not spec.valid_from:
        return F.when(F.col(POSITION) > 1, _same_key(spec.key))
    key, since = (*spec.key, spec.valid_from), F.col(f"`{spec.valid_from}`")
    by = Window.partitionBy(*names(key), F.isnull(REASON)).orderBy(POSITION)
    unknown = f"column {spec.valid_from} is null: since when the row holds is not known"
    return F.when(since.isNull(), unknown).when(F.row_number().over(by) > 1, _same_key(key))


def _same_key(key: tuple[str, ...]) -> str:
    return f"another row has the same key ({', '.join(key)})"
