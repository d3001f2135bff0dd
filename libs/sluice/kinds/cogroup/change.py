"""The effect of a change on a cogroup's state: its groups before and after, side by side.

The change's contributions are merged with the state's rows of the groups. Streams whose state can't
apply a removal are listed as broken, and recomputed from their inputs. Cost: one shuffle for the
contributions, one to join both.
"""

from collections.abc import Collection
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.changes.diff import CHANGE, unchanged
from sluice.changes.net import WEIGHT
from sluice.engine.query.operator import InputRows, names, same, union
from sluice.kinds.cogroup.aggregates.accumulator import Accumulator
from sluice.kinds.cogroup.operator import CogroupState, delta, delta_name, has_rows, present

BROKEN = "_broken"  # the streams to recompute
WAS = "_was"  # the group's old row, null if it had none
_NOW = "_now"


def contributed(state: CogroupState, prepared: InputRows) -> DataFrame:
    """Return the net change's contribution to each touched group's state.

    Streams of inputs that did not change have no columns in it except their row counts.
    """
    rows = state.apart(union(list(prepared.values())))
    return state.gather(rows, F.col(WEIGHT))


def merged(state: CogroupState, old: DataFrame, change: DataFrame) -> DataFrame:
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
            _state(a) if pairs[a.name][0] is not None else None,
            delta(a),
            types[delta_name(a)],
        )
        for a in touched
    }
    return together.select(
        *names((*state.by, *state.row_counts)),
        *[present(a, settled.get(a, _state(a))) for a in state.accumulators],
        WAS,
        _broken([a for a in touched if a.can_break]).alias(BROKEN),
    )


def mended(
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
        .when(is_there & ~unchanged(rows.schema, state.stored, (WAS, _NOW)), "update")
    )
    both = rows.withColumn(_NOW, F.struct(*names(state.stored))).withColumn(CHANGE, change)
    row = F.when(F.col(CHANGE) == "delete", F.col(WAS)).otherwise(F.col(_NOW))
    broken = F.when(is_there, F.col(BROKEN)).otherwise(_none()).alias(BROKEN)
    columns = [row.getField(c).alias(c) for c in state.stored]
    found = both.select(*columns, WAS, broken, CHANGE)
    return found.where(F.col(CHANGE).isNotNull() | (F.size(BROKEN) > 0))


def _broken(accumulators: list[Accumulator]) -> Column:
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
