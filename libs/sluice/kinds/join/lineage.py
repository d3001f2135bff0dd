"""Rows that a join's row comes from: its pair; for a semi join, all matching rows, too."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.engine.query.lineage import Groups
from sluice.engine.query.operator import InputRows, Operator, same, union
from sluice.kinds.join.operator import SIDE, JoinedRows
from sluice.kinds.join.spec import Side


def contributing(operator: Operator, groups: Groups) -> InputRows:
    """Return the row of each visible side, and the rows that make a semi join keep it."""
    assert isinstance(operator, JoinedRows)
    found = dict[str, list[DataFrame]]()
    for which, side, table in operator.shape.both:
        own = groups.prepared[table.id].where(F.col(SIDE) == which)
        if (which, side, table) in operator.shape.sides:
            kept = _shown(operator, own, which, side, groups.rows)
        elif operator.spec.type == "semi":
            left = _left(operator, groups)
            kept = operator.opposite(own).join(left, operator.met(), "left_semi")
        else:
            continue
        found.setdefault(table.id, []).append(kept)
    return {name: union(some) for name, some in found.items()}


def _left(operator: JoinedRows, groups: Groups) -> DataFrame:
    which, side, table = operator.shape.both[0]
    own = groups.prepared[table.id].where(F.col(SIDE) == which)
    return _shown(operator, own, which, side, groups.rows).select(side.as_, *operator.group)


def _shown(
    operator: JoinedRows, own: DataFrame, which: str, side: Side, rows: DataFrame
) -> DataFrame:
    """Return a side's rows that have the keys of `rows`; rows without that side have only nulls."""
    keys = {c: out for out, (of, c) in operator.shape.keys.items() if of == which}
    given = [F.col(f"`{out}`").isNotNull() for out in keys.values()]
    present = rows.where(reduce(Column.__or__, given)) if keys else rows
    met = same("_in", "_of", operator.group)
    for column, out in keys.items():
        value = F.col(f"_in.`{side.as_}`").getField(column)
        met &= value.eqNullSafe(F.col(f"_of.`{out}`"))
    return own.alias("_in").join(present.alias("_of"), met, "left_semi")
