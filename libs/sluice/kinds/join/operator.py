"""Join: two tables on equal values, as SQL joins them; null equals nothing.

Both sides drive the result. The groups are the values that rows of either side have or had; both
sides' rows of a touched group are joined again at the batch's versions, and the difference is the
change. There is no algebra of deltas, so both sides may change in one batch.
"""

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.declare.table import Table
from sluice.engine.operator import Operator, Rows, names, passed_on, union
from sluice.kinds.join.shape import PRESENT, Shape
from sluice.kinds.join.spec import EquiJoin

SIDE = "_sluice_side"
HOW = {"semi": "left_semi", "anti": "left_anti", "full": "full_outer"}


class JoinedRows(Operator):
    """Pairs of rows, rows without a match, or rows by whether they have one."""

    def __init__(self, view: Table, left: Table, right: Table):
        assert isinstance(view.spec, EquiJoin)
        self.view, self.spec = view, view.spec
        self.shape = Shape(view.spec, left, right)
        self.inputs = view.inputs
        self.group, self.key = self.shape.on, view.key

    def columns(self, name: str) -> tuple[str, ...]:
        sides = [(side, table) for _, side, table in self.shape.both if table.id == name]
        return tuple(sorted(set().union(*(self.shape.reads(*side) for side in sides))))

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        """Return rows with the values to share, their side, and a struct of their columns."""
        more = names(tuple(passed_on(rows, self.columns(name))))
        found = []
        for nth, (which, side, table) in enumerate(self.shape.both):
            if table.id == name:
                own = F.struct(*names(tuple(sorted(self.shape.reads(side, table)))))
                whole = rows.select(own.alias(side.as_), *more)
                on = [self._shared(i, pair[nth].sql) for i, pair in enumerate(self.shape.pairs)]
                found.append(whole.select("*", *on, F.lit(which).alias(SIDE)))
        return union(found)

    def combine(self, prepared: Rows, references: Rows) -> DataFrame:
        left, right = (self._side(prepared, which) for which in ("left", "right"))
        right = right.withColumnsRenamed({c: f"{c}r" for c in self.group})
        met = [F.col(c) == F.col(f"{c}r") for c in self.group]
        met += [F.expr(self.spec.where.sql)] if self.spec.where else []
        joined = left.join(
            right, reduce(Column.__and__, met), HOW.get(self.spec.type, self.spec.type)
        )
        return joined.select(*[column.alias(name) for name, column in self._outputs().items()])

    def _side(self, prepared: Rows, which: str) -> DataFrame:
        ((_, side, table),) = (s for s in self.shape.both if s[0] == which)
        rows = prepared[table.id].where(F.col(SIDE) == which)
        return rows.select(side.as_, *self.group)

    def _shared(self, i: int, sql: str) -> Column:
        name = self.group[i]
        type_ = self.view.hidden[name]
        value = F.expr(sql)
        return (value.cast(type_) if type_ else value).alias(name)

    def _outputs(self) -> dict[str, Column]:
        shown = {name: F.expr(e.sql) for name, e in self.shape.shown.items()}
        aliases = {which: side.as_ for which, side, _ in self.shape.both}
        keys = {
            name: F.col(aliases[which]).getField(column)
            for name, (which, column) in self.shape.keys.items()
            if name not in shown
        }
        has_right = self.spec.type in ("right", "full")
        on = {
            c: F.coalesce(F.col(c), F.col(f"{c}r")) if has_right else F.col(c) for c in self.group
        }
        return {**shown, **keys, **on, **self._present(aliases)}

    def _present(self, aliases: Mapping[str, str]) -> dict[str, Column]:
        if self.spec.type != "full":
            return {}
        left, right = (F.col(aliases[which]).isNotNull() for which in ("left", "right"))
        return {PRESENT: left.cast("int") + right.cast("int") * 2}
