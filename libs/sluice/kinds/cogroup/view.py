"""The visible rows of a cogroup: each is a function of one row of its state.

So the change of a visible row follows from that of its state's row alone.
"""

from decimal import Decimal
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.changes.diff import CHANGE, unchanged
from sluice.engine.query.operator import InputRows, Operator, names
from sluice.kinds.cogroup.aggregates.accumulator import Accumulator
from sluice.kinds.cogroup.change import WAS
from sluice.kinds.cogroup.operator import CogroupState, has_rows

_SHOWN = "_shown"


class CogroupView(Operator):
    """The visible columns, each row from one state row."""

    row_wise = True
    mirror = True

    def __init__(self, state: CogroupState, state_id: str):
        self.state = state
        self.inputs = (state_id,)
        self.key = state.key
        self.group = state.group

    @property
    def totals(self) -> tuple[str, ...]:
        return self.state.totals

    def columns(self, name: str) -> tuple[str, ...]:
        return ()

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        return rows

    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        return self._shown(prepared[self.inputs[0]], is_whole=True)

    def changed(self, groups: DataFrame) -> DataFrame:
        """Return the view's changelog, from the changed groups of its state (see `changed_groups`).

        Not for a view with `having`, whose rows may appear and disappear while their groups stay.
        """
        now = self._shown(groups, passing=(WAS, CHANGE))
        visible = now.drop(WAS, CHANGE)
        was = now.select(F.struct(*names(tuple(visible.columns))).alias(_SHOWN), f"{WAS}.*", CHANGE)
        is_update = F.col(CHANGE) == "update"
        before = self._shown(was, passing=(_SHOWN, CHANGE), where=is_update)
        both = before.select(F.struct(*names(tuple(visible.columns))).alias(WAS), _SHOWN, CHANGE)
        stays = unchanged(visible.schema, visible.columns, (WAS, _SHOWN))
        return both.where(~(is_update & stays)).select(f"{_SHOWN}.*", CHANGE)

    def _shown(
        self,
        rows: DataFrame,
        passing: tuple[str, ...] = (),
        where: Column | None = None,
        *,
        is_whole: bool = False,
    ) -> DataFrame:
        """Return the visible columns, null unless `where` holds, and the `passing` ones.

        `is_whole`: only the rows that meet `having`.
        """

        def named(value: Column, name: str) -> Column:
            return (value if where is None else F.when(where, value)).alias(name)

        values = [named(self._value(a, rows), a.name) for a in self.state.accumulators]
        visible = rows.select(*names(self.state.by), *values, *passing)
        selected, having = self.state.spec.select, self.state.spec.having
        visible = visible.where(having.sql) if is_whole and having else visible
        if selected is None:
            return visible
        chosen = {n: e for n, e in selected.items() if n not in self.state.by}
        columns = [named(F.expr(e.sql), name) for name, e in chosen.items()]
        return visible.select(*names(self.state.by), *columns, *passing)

    def _value(self, accumulator: Accumulator, rows: DataFrame) -> Column:
        """Return an aggregate's visible value: its initial one if the stream has no row."""
        name, types = accumulator.name, rows.schema
        value = accumulator.finish(F.col(f"`{name}`"), types[name].dataType)
        given = self.state.spec.streams[accumulator.stream].initial
        if name not in given:
            return value
        type_ = rows.select(value).schema[0].dataType
        return F.when(has_rows(accumulator), value).otherwise(_literal(given[name]).cast(type_))


def _literal(value: Any) -> Column:
    """Return a value of YAML; whole numbers as DECIMAL, because Java's end at BIGINT."""
    if isinstance(value, list):
        return F.array(*map(_literal, value))
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return F.lit(Decimal(value) if is_whole else value)
