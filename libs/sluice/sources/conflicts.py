"""Different rows of one key in one delivery, of which none is known to be later."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from sluice.declare.delivered_row import REASON
from sluice.engine.query.operator import names
from sluice.files.marks import POSITION, comparable
from sluice.gate.counting.conflicts import CONFLICT
from sluice.gate.counting.tally import visible
from sluice.sources.spec import Source


def with_conflicts(rows: DataFrame, spec: Source, fits: str) -> DataFrame:
    """Add CONFLICT to placed rows of a source with a key; it marks rows of one key that differ.

    Rows with different values of `sequence` are not in conflict. `fits`: SQL condition for rows
    that break no other rule.
    """
    counts = F.isnull(REASON) & F.expr(fits)
    same = [*names(spec.key), F.isnull(REASON), *names(spec.sequence), F.expr(fits)]
    by = Window.partitionBy(*same)
    row = F.struct(*comparable(rows, tuple(visible(rows))))
    differ = counts & ~F.min(row).over(by).eqNullSafe(F.max(row).over(by))
    is_last = F.col(POSITION) == F.max(POSITION).over(by)
    marked = rows.withColumn(CONFLICT, F.when(differ, F.when(is_last, 2).otherwise(1)).otherwise(0))
    if spec.on_conflict != "quarantine":
        return marked
    reason = f"rows with the same key ({', '.join(spec.key)}) differ"
    return marked.withColumn(REASON, F.coalesce(REASON, F.when(F.col(CONFLICT) > 0, reason)))
