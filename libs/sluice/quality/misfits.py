"""A column of which not one of many values is of its declared type: retyped, not dirty.

CSV and JSON don't say what type a column has, so a change of it is known by the rows that go
aside. A few bad rows are quarantined; if all values of a column are bad, the batch is stopped
before an interval's good rows are replaced by nothing.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluice.errors import QualityStop
from sluice.quality.verdict import Verdict
from sluice.specs.delivered_row import FILE, REASON

MANY = 20


def check_misfits(split: DataFrame, verdict: Verdict) -> None:
    """Raise QualityStop for such a column. No job unless many rows went aside and one is empty."""
    facts = verdict.facts
    empty = {c for c, nulls in facts.nulls.items() if nulls == facts.rows} if facts else set()
    if verdict.rows_quarantined < MANY or not empty:
        return
    what = F.substring_index(REASON, ": ", 1)
    found = split.where(F.col(REASON).isNotNull()).groupBy(what.alias("what"))
    told = found.agg(F.count(F.lit(1)).alias("n"), F.min(F.struct(FILE, REASON)).alias("e.g."))
    for row in told.where(f"n >= {MANY}").toArrow().to_pylist():
        if row["what"].removeprefix("column ") in empty:
            first = row["e.g."]
            raise QualityStop(
                f"{verdict.table}: {row['what']}: not one of {row['n']:,} values is of the"
                f" declared type; e.g. in {first[FILE]}: {first[REASON]}",
                hint="nothing was committed; mend what was delivered, or the source's `schema`",
            )
