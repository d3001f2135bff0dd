"""Rows that came for windows that a retention has taken already: counted, never applied."""

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.changelog.net import WEIGHT
from sluice.operators.operator import union

LATE = "late"


def late_of_change(prepared: Iterable[DataFrame], alive: Column) -> DataFrame:
    """Count late rows of a prepared net change; a row counts in every window it would be in.

    One row with the one column LATE, which is null where there are none.
    """
    came = union(list(prepared)).where((F.col(WEIGHT) > 0) & ~alive)
    return came.agg(F.sum(WEIGHT).alias(LATE))
