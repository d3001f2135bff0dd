"""The effect of a change on a cogroup's state and view: its groups before and after, side by side.

The change's contributions are merged with the state's rows of the groups. Streams whose state can't
apply a removal are listed as broken, and recomputed from their inputs. Cost: one shuffle for the
contributions, one to join both. Each visible row is a function of one row of the state, so its
change follows from that row's alone.
"""

from collections.abc import Collection
from decimal import Decimal
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.changes import CHANGE, agree_in
from sluice.engine.operator import InputRows, Operator, names, same
from sluice.kinds.cogroup.accumulator import Accumulator
from sluice.kinds.cogroup.operator import CogroupState, delta, delta_name, has_rows, present

BROKEN = "_broken"  # the streams to recompute
WAS = "_was"  # the group's old row, null if it had none
_NOW = "_now"

_SHOWN = "_shown"


def merge_change(state: CogroupState, old: DataFrame, change: DataFrame) -> DataFrame:
    """Return the state's new columns, WAS and BROKEN, for the groups of either side."""
    types = {f.name: f.dataType for f in change.schema.fields}
    touched = [a for a in state.accumulators if delta_name(a) in types]
    absent = [a for a in state.accumulators if a not in touched]
    pairs = {a.name: a.merge(_state(a), delta(a), types[delta_name(a)]) for a in touched}
    was = F.struct(*names(state.stored)).alias(WAS)
    both = old.select("*", was).unionByName(change, allowMissingColumns=True)
    together = both.groupBy(*names(state.by)).agg(
        F.first(WAS, ignorenulls=True).alias(WAS),
        *[F.sum(f"`{c}`").cast("bigint").alias(c) for c in state.row_counts],
        *[kept.alias(name) for name, (kept, _) in pairs.items() if kept is not None],
        *[pairs[a.name][1].alias(delta_name(a)) for a in touched],
        *[F.first(_state(a), ignorenulls=True).alias(a.name) for a in absent],
    )
    settled = {
        a: a.settle(
            _state(a) if pairs[a.name][0] is not None else None, delta(a), types[delta_name(a)]
        )
        for a in touched
    }
    return together.select(
        *names((*state.by, *state.row_counts)),
        *[present(a, settled.get(a, _state(a))) for a in state.accumulators],
        WAS,
        _list_broken([a for a in touched if a.can_break]).alias(BROKEN),
    )


def mend_groups(
    state: CogroupState, broken: DataFrame, streams: Collection[str], again: DataFrame
) -> DataFrame:
    """Return broken groups, with the states of these streams taken from `again`."""
    found = broken.alias("_rows").join(
        again.alias("_again"), same("_rows", "_again", state.by), "left"
    )
    recomputed = {a.name for a in state.accumulators if a.stream in streams}
    sides = [F.col(f"{'_again' if c in recomputed else '_rows'}.`{c}`") for c in state.stored]
    return found.select(*sides, F.col(f"_rows.{WAS}"), _none().alias(BROKEN))


def changed_groups(state: CogroupState, rows: DataFrame, alive: Column | None = None) -> DataFrame:
    """Return the groups that changed, with CHANGE, and broken ones; a deleted one has its old row.

    `alive`: the groups that retention keeps.
    """
    stays = F.lit(True) if state.spec.keep_empty else state.has_any_rows()
    is_there = stays if alive is None else stays & alive
    change = (
        F.when(is_there & F.col(WAS).isNull(), "insert")
        .when(~is_there & F.col(WAS).isNotNull(), "delete")
        .when(is_there & ~agree_in(rows.schema, state.stored, (WAS, _NOW)), "update")
    )
    both = rows.withColumn(_NOW, F.struct(*names(state.stored))).withColumn(CHANGE, change)
    row = F.when(F.col(CHANGE) == "delete", F.col(WAS)).otherwise(F.col(_NOW))
    broken = F.when(is_there, F.col(BROKEN)).otherwise(_none()).alias(BROKEN)
    columns = [row.getField(c).alias(c) for c in state.stored]
    found = both.select(*columns, WAS, broken, CHANGE)
    return found.where(F.col(CHANGE).isNotNull() | (F.size(BROKEN) > 0))


def _list_broken(accumulators: list[Accumulator]) -> Column:
    """Return the streams with remaining rows whose accumulators could not apply a removal."""
    by_stream: dict[str, list[Column]] = {}
    for a in accumulators:
        by_stream.setdefault(a.stream, []).append(has_rows(a) & a.breaks(_state(a), delta(a)))
    named = [F.when(reduce(Column.__or__, any_of), s) for s, any_of in by_stream.items()]
    return F.array_compact(F.array(*named)) if named else _none()


def _none() -> Column:
    return F.array().cast("array<string>")


def _state(accumulator: Accumulator) -> Column:
    return F.col(f"`{accumulator.name}`")


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

    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        return self._show(prepared[self.inputs[0]], is_whole=True)

    def show_changes(self, groups: DataFrame) -> DataFrame:
        """Return the view's changelog, from the changed groups of its state (see `changed_groups`).

        Not for a view with `having`, whose rows may appear and disappear while their groups stay.
        """
        now = self._show(groups, passing=(WAS, CHANGE))
        visible = now.drop(WAS, CHANGE)
        was = now.select(F.struct(*names(tuple(visible.columns))).alias(_SHOWN), f"{WAS}.*", CHANGE)
        is_update = F.col(CHANGE) == "update"
        before = self._show(was, passing=(_SHOWN, CHANGE), where=is_update)
        both = before.select(F.struct(*names(tuple(visible.columns))).alias(WAS), _SHOWN, CHANGE)
        stays = agree_in(visible.schema, visible.columns, (WAS, _SHOWN))
        return both.where(~(is_update & stays)).select(f"{_SHOWN}.*", CHANGE)

    def _show(
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

        def guard(value: Column, name: str) -> Column:
            return (value if where is None else F.when(where, value)).alias(name)

        values = [guard(self._value(a, rows), a.name) for a in self.state.accumulators]
        visible = rows.select(*names(self.state.by), *values, *passing)
        selected, having = self.state.spec.select, self.state.spec.having
        visible = visible.where(having.sql) if is_whole and having else visible
        if selected is None:
            return visible
        chosen = {n: e for n, e in selected.items() if n not in self.state.by}
        columns = [guard(F.expr(e.sql), name) for name, e in chosen.items()]
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
