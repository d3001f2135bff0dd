"""Total orders: sort keys with their null order, ended by a unique key."""

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F


def by(column: Column, descending: bool, nulls_first: bool) -> Column:
    """`column` as a sort order."""
    if descending:
        return column.desc_nulls_first() if nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if nulls_first else column.asc_nulls_last()


def last_first(columns: Sequence[str]) -> list[Column]:
    """Descending, nulls last: the greatest row comes first."""
    return [by(F.col(f"`{c}`"), descending=True, nulls_first=False) for c in columns]
