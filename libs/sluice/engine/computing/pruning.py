"""Literal bounds of the touched groups, so that a scan of a large table skips files.

If a table's groups are in few files each (keys that grow with time, clustered tables), file
statistics then exclude most of it. The bounds take a small Spark job or two, which pays off only
before a large scan.
"""

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, DecimalType, IntegralType, StringType

from sluice.changes.trees import balanced
from sluice.delta.writing.merge_bounds import extremes
from sluice.language.typed.types import INTEGERS, base_name
from sluice.limits import Limits

_ORDERED = (IntegralType, DecimalType, DateType, StringType)


def bounds_of(touched: DataFrame, group: tuple[str, ...], limits: Limits) -> Column | None:
    """Return a condition on the group columns that every touched group meets; None if unknown.

    A few groups are listed one by one, so that each excludes files separately.
    """
    columns = [c for c in group if is_bounded(touched.schema[c].dataType)]
    if not columns:
        return None
    most = limits.named_groups
    few = touched.select(*[f"`{c}`" for c in columns]).distinct().limit(most + 1).collect()
    if len(few) <= most:
        return balanced(Column.__or__, [F.lit(False), *map(_exactly, few)])
    wanted = (extremes(c).alias(f"b{i}") for i, c in enumerate(columns))
    found = touched.agg(*wanted).collect()[0]
    return reduce(Column.__and__, [_within(c, found[f"b{i}"]) for i, c in enumerate(columns)])


def is_bounded(type_: DataType) -> bool:
    """True if Delta keeps statistics of the type that are exact in any time zone."""
    return isinstance(type_, _ORDERED)


def has_bounds(type_: str) -> bool:
    """True if `is_bounded` is, for a type as it is declared."""
    return base_name(type_) in (*INTEGERS, "DECIMAL", "DATE", "STRING")


def _exactly(group: Row) -> Column:
    values = group.asDict().items()
    same = [F.col(f"`{c}`").isNull() if v is None else F.col(f"`{c}`") == v for c, v in values]
    return reduce(Column.__and__, same)


def _within(name: str, bounds: Row) -> Column:
    column = F.col(f"`{name}`")
    if bounds.least is None:
        return column.isNull() if bounds.has_null else F.expr("false")
    inside = (column >= F.lit(bounds.least)) & (column <= F.lit(bounds.most))
    return inside | column.isNull() if bounds.has_null else inside


def few_of(rows: DataFrame, columns: Mapping[str, Column], most: int) -> Column | None:
    """Return a condition that the values of `rows` meet, a list per column; None unless few.

    `columns`: name in `rows` -> column to compare. Takes one small Spark job.
    """
    found = rows.select(*columns).distinct().limit(most + 1).collect()
    if len(found) > most:
        return None
    listed = {
        name: sorted({row[name] for row in found if row[name] is not None}) for name in columns
    }
    if any(len(values) == 0 for values in listed.values()):
        return F.expr("false")
    return reduce(Column.__and__, [columns[name].isin(values) for name, values in listed.items()])
