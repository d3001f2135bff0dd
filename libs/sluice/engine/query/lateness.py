"""Late rows: retention had already expired their windows. They are counted, never applied."""

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.changes.net import WEIGHT
from sluice.engine.query.operator import union

LATE = "late"


def late_of_change(prepared: Iterable[DataFrame], alive: Column) -> DataFrame:
    """Count late rows of a prepared net change; a row counts in every window it would be in.

    The result is one row with the one column LATE, which is null if there are none.
    """
    came = union(list(prepared)).where((F.col(WEIGHT) > 0) & ~alive)
    return came.agg(F.sum(WEIGHT).alias(LATE))
