"""Rows of a dimension view, made from those of its dimensions."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluice.declare.table import Table
from sluice.dimension_views.spec import DimensionView
from sluice.engine.query.operator import names


def rows(table: Table, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """Return the view's rows, given each dimension's rows by its id."""
    view = table.spec
    assert isinstance(view, DimensionView)
    named = {j.dimension: inputs[table.reference(j.dimension)] for j in view.join}
    first, *others = view.join
    found = _as_struct(named[first.dimension], first.dimension)
    for join in others:
        right = _as_struct(named[join.dimension], join.dimension)
        assert join.on is not None
        found = found.join(right, F.expr(join.on.sql), "left")
    met = found.where(view.where.sql) if view.where else found
    return met.select(*[F.expr(e.sql).alias(name) for name, e in view.select.items()])


def _as_struct(rows: DataFrame, name: str) -> DataFrame:
    return rows.select(
        F.struct(*names(tuple(rows.columns))).alias(name.rsplit(".", maxsplit=1)[-1])
    )
