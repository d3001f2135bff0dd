"""Literal bounds of a changelog's keys, which let a MERGE skip files before it reads anything.

Only whole numbers have bounds, because their statistics are exact from every writer.
"""

from collections.abc import Sequence

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType

from sluice.delta.log.opened import opened
from sluice.delta.log.position import Head
from sluice.delta.reading.clusters import KeyBounds, clusters


def arrow_bounds(
    table: DeltaTable, rows: pa.Table, key: Sequence[str], quote: str = '"'
) -> list[str]:
    """Return bounds like `spark_bounds`, for rows in this process; `quote` encloses names."""
    filed = set(table.metadata().partition_columns)
    found = []
    for name in key:
        column = rows.column(name)
        if not pa.types.is_integer(column.type) or column.null_count or not len(column):
            continue
        values = column.unique().to_pylist() if name in filed else None
        found.append(_bound(f"t.{quote}{name}{quote}", clusters(column), values))
    return found


def spark_bounds(before: Head, rows: DataFrame, key: Sequence[str]) -> list[str]:
    """Return literal conditions that every row of the table with a key of the changelog meets.

    With them a MERGE skips files and partitions before it reads anything. One Spark job.
    """
    table = opened(before.uri, before.version)
    filed = set(table.metadata().partition_columns)
    whole = [c for c in key if isinstance(rows.schema[c].dataType, IntegralType)]
    wanted = [
        extremes(c, *([F.collect_set(f"`{c}`").alias("values")] if c in filed else [])).alias(c)
        for c in whole
    ]
    found = rows.agg(*wanted).collect()[0].asDict(recursive=True) if wanted else {}
    return [
        _bound(f"t.`{name}`", [(b["least"], b["most"])], b.get("values"))
        for name, b in found.items()
        if not b["has_null"]
    ]


def extremes(column: str, *more: Column) -> Column:
    """Return a column's least and greatest value, and `has_null`, as one struct of a query."""
    has_null = F.bool_or(F.col(f"`{column}`").isNull()).alias("has_null")
    least, most = F.min(f"`{column}`").alias("least"), F.max(f"`{column}`").alias("most")
    return F.struct(least, most, has_null, *more)


def _bound(column: str, spans: Sequence[KeyBounds], values: Sequence[int] | None) -> str:
    if values is not None:
        return f"{column} IN ({', '.join(map(str, sorted(values)))})"
    within = (f"({column} >= {least} AND {column} <= {most})" for least, most in spans)
    return f"({' OR '.join(within)})"
