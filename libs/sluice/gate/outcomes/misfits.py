"""Misfits: columns in which no value has the declared type, so their type has changed.

CSV and JSON don't declare a column's type, so only rows that go to quarantine reveal a change of
it. A few bad rows are quarantined. If all values of a column are bad, the batch is stopped, to keep
an interval's good rows.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluice.declare.delivered_row import FILE, REASON
from sluice.errors import QualityStop
from sluice.gate.outcomes.verdict import Verdict

MANY = 20


def check_misfits(split: DataFrame, verdict: Verdict) -> None:
    """Raise QualityStop for such a column.

    Starts no job unless many rows are quarantined and a column is empty.
    """
    counted = verdict.counts
    empty = {c for c, n in counted.nulls.items() if n == counted.rows} if counted else set()
    if verdict.rows_quarantined < MANY or not empty:
        return
    what = F.substring_index(REASON, ": ", 1)
    found = split.where(F.col(REASON).isNotNull()).groupBy(what.alias("what"))
    counts = found.agg(F.count(F.lit(1)).alias("n"), F.min(F.struct(FILE, REASON)).alias("e.g."))
    for row in counts.where(f"n >= {MANY}").toArrow().to_pylist():
        if row["what"].removeprefix("column ") in empty:
            first = row["e.g."]
            raise QualityStop(
                f"{verdict.table}: {row['what']}: not one of {row['n']:,} values is of the"
                f" declared type; e.g. in {first[FILE]}: {first[REASON]}",
                hint="nothing was committed; fix the delivery or the source's `schema`",
            )
