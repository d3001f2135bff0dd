"""The effect of a net change on the kept rows of a top-k, and with them on the visible ones.

The kept rows and the changes of each touched group are brought together once. Rows no later than
the last kept one are known in full, so they can be ranked again. Later ones belong to rows that
were not read. If too few rows remain and others may exist, the group is SHORT: it needs a refill
from the input. One pass computes both changelogs.

It is written as SQL, because Python builds a tree of columns call by call, which takes longer than
a small batch. Of a small change, only rows that can matter are handed to Spark: the feed's
shortlist, and the kept rows of its groups.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sluice.changes import CHANGE, WEIGHT, Direction, agree_in, at_or_before
from sluice.delta.log.files import table_size
from sluice.delta.reading.local import hand_as_stored, read_feed, read_where
from sluice.delta.reading.searching import SearchedVersion
from sluice.delta.reading.wanted import WantedValues, are_among, is_exact
from sluice.engine.batch import Batch
from sluice.engine.operator import names, same
from sluice.kinds.topk.operator import (
    COMPLETE,
    LAST,
    LIMIT,
    NEEDED,
    RANK,
    RankRule,
    TopKState,
    list_columns,
)

SHOWN_CHANGE, SHORT, FELL = "_sluice_shown_change", "_short", "_fell"
OLD, NEW, OLD_RANK = "_old", "_new", "_old_rank"
OLD_FLAGS = {COMPLETE: "_old_complete", NEEDED: "_old_needed"}


def rank_candidates(state: TopKState, changes: DataFrame, last: DataFrame) -> DataFrame:
    """Return the prepared changes that can matter, according to the `last_rows` of a state.

    A change after the last kept row of an incomplete group alters nothing, except by its limit. No
    shuffle if `last` can be broadcast.
    """
    is_open = last.where(f"NOT {COMPLETE}").drop(COMPLETE).alias("_kept")
    joined = changes.alias("_all").join(is_open, same("_all", "_kept", state.group), "left")
    matters = f"{LAST} IS NULL OR {at_or_before(state.ranking.order, '_all', LAST)}"
    if state.ranking.limit_is_column:
        matters += f" OR coalesce(_all.{LIMIT} > _kept.{NEEDED}, false)"
    return joined.where(matters).select("_all.*")


def best_per_group(state: TopKState, arrivals: DataFrame) -> DataFrame:
    """Return the added rows that can be kept: one more in each group than find a place.

    Only for changes that remove nothing.
    """
    if state.ranking.limit_is_column:
        return arrivals
    ranked = arrivals.selectExpr("*", f"{state.ranking.rank()} AS {RANK}")
    return ranked.where(f"{RANK} <= {state.last_kept()} + 1").drop(RANK)


def move_rows(
    state: TopKState, rows: DataFrame, changes: DataFrame, alive: Column | None = None
) -> DataFrame:
    """Return the kept rows after the prepared changes (with WEIGHT), in the form of `as_changes`.

    `rows` holds the state of every touched group; other groups in it stay. `alive`: the groups that
    remain if windows expire.
    """
    over, order = state.ranking.over(), state.ranking.order
    # The greatest limit that the group is known to have had.
    greatest = f"max(greatest(_arrived.{LIMIT}, _old_needed)) {over}"
    needed = f"CAST(greatest({greatest}, 1) AS BIGINT) AS {NEEDED}"
    paired = _pair_rows(state, rows, changes, F.expr("true") if alive is None else alive)
    known = _add_old_rank(state, paired).selectExpr(
        "*",
        f"max_by({OLD}, {OLD_RANK}) {over} AS {LAST}",
        f"coalesce(max(_old_complete) {over}, true) AS _was_whole",
        *([needed] if state.ranking.limit_is_column else []),
    )
    stands = f"_alive AND (_was_whole OR {at_or_before(order, '_arrived', LAST)})"
    standing = known.selectExpr("*", f"IF({stands}, _arrived, NULL) AS _standing")
    holds = f"_standing IS NOT NULL AND {at_or_before(order, '_standing', OLD)}"
    fell = f"_gone AND {OLD} IS NOT NULL AND NOT ({holds}) AS {FELL}"
    return as_changes(state, _trim(state, standing.selectExpr("*", fell)), rows.schema)


def refill_groups(state: TopKState, rows: DataFrame, fresh: DataFrame) -> DataFrame:
    """Return the changes from groups' kept `rows` to `fresh` ones, as `as_changes` does."""
    key = [f"`{c}`" for c in state.key]
    old = rows.selectExpr(*key, *_kept_as_old(state))
    new = fresh.selectExpr(*key, f"{_struct(state)} AS {NEW}", *state.flags)
    columns = (OLD, NEW, *state.flags, *_old_flags(state))
    paired = _merge_sides(state, old, new, *(f"first({c}, true) AS {c}" for c in columns))
    rank = f"IF({NEW} IS NULL, NULL, {state.ranking.rank(NEW, f'{NEW} IS NULL')}) AS {RANK}"
    ranked = _add_old_rank(state, paired).selectExpr("*", rank)
    found = ranked.selectExpr("*", f"false AS {SHORT}", f"false AS {FELL}")
    return as_changes(state, found, rows.schema)


def as_changes(state: TopKState, moves: DataFrame, schema: StructType) -> DataFrame:
    """Return rows that change: the state's columns, RANK, CHANGE, SHOWN_CHANGE, SHORT and FELL.

    A row has its new values, or its old ones if it was removed.
    """
    values = [c for c in state.ranking.prepared if c not in state.key]
    shown = [c for c in state.ranking.shown.values() if c not in state.key]
    compared = moves.where(f"{OLD} IS NOT NULL OR {NEW} IS NOT NULL").select(
        "*",
        agree_in(schema, values, (OLD, NEW)).alias("_same_row"),
        agree_in(schema, shown, (OLD, NEW)).alias("_same_look"),
    )
    flags = " AND ".join(f"{flag} <=> {OLD_FLAGS[flag]}" for flag in state.flags)
    ranks = f" AND {RANK} <=> {OLD_RANK}" if state.ranking.spec.rank else ""
    was, now = (state.ranking.is_shown(*side) for side in ((OLD_RANK, OLD), (RANK, NEW)))
    kept = _change(f"{OLD} IS NOT NULL", f"{NEW} IS NOT NULL", f"_same_row AND {flags}")
    seen = _change(was, f"({NEW} IS NOT NULL AND {now})", f"_same_look{ranks}")
    pairs = [*((flag, OLD_FLAGS[flag]) for flag in state.flags), (RANK, OLD_RANK)]
    rows = compared.selectExpr(
        f"coalesce({NEW}, {OLD}) AS _row",
        *(f"IF({NEW} IS NULL, {before}, {after}) AS {after}" for after, before in pairs),
        f"{kept} AS {CHANGE}",
        f"{seen} AS {SHOWN_CHANGE}",
        SHORT,
        FELL,
    )
    changed = rows.where(f"{CHANGE} IS NOT NULL OR {SHOWN_CHANGE} IS NOT NULL OR {SHORT}")
    return changed.selectExpr("_row.*", *changed.columns[1:])


def _pair_rows(state: TopKState, rows: DataFrame, changes: DataFrame, alive: Column) -> DataFrame:
    """Return one row for each row of touched groups: OLD as kept, `_arrived` as now."""
    key = [f"`{c}`" for c in state.key]
    old = rows.selectExpr(*key, *_kept_as_old(state))
    come = f"IF({WEIGHT} > 0, {_struct(state)}, NULL) AS _come"
    new = changes.selectExpr(*key, come, f"{WEIGHT} < 0 AS _gone")
    firsts = (f"first({c}, true) AS {c}" for c in (OLD, "_come", *_old_flags(state)))
    gone = "coalesce(bool_or(_gone), false) AS _gone"
    pairs = _merge_sides(state, old, new, *firsts, gone).withColumn("_alive", alive)
    touches = "_come IS NOT NULL OR _gone OR NOT _alive"
    found = pairs.selectExpr(
        "*",
        f"coalesce(_come, IF(_gone, NULL, {OLD})) AS _arrived",
        f"max({touches}) {state.ranking.over()} AS _is_touched",
    )
    return found.where(f"_is_touched AND ({OLD} IS NOT NULL OR _arrived IS NOT NULL)")


def _merge_sides(state: TopKState, old: DataFrame, new: DataFrame, *found: str) -> DataFrame:
    """Return the old and the new rows side by side, one row for each key."""
    both = old.unionByName(new, allowMissingColumns=True)
    return both.groupBy(*names(state.key)).agg(*map(F.expr, found))


def _add_old_rank(state: TopKState, paired: DataFrame) -> DataFrame:
    rank = state.ranking.rank(OLD, f"{OLD} IS NULL")
    return paired.selectExpr("*", f"IF({OLD} IS NULL, NULL, {rank}) AS {OLD_RANK}")


def _trim(state: TopKState, standing: DataFrame) -> DataFrame:
    """Add RANK, flags and SHORT; NEW is the kept row."""
    over = state.ranking.over()
    rank = state.ranking.rank("_standing", "_standing IS NULL")
    ranked = standing.selectExpr("*", f"IF(_standing IS NULL, NULL, {rank}) AS {RANK}")
    depth = "max" if state.ranking.spec.function == "dense_rank" else "count"
    enough = f"_was_whole OR coalesce({depth}({RANK}) {over}, 0) >= {state.last_needed()}"
    return ranked.selectExpr(
        "*",
        f"_alive AND NOT ({enough}) AS {SHORT}",
        f"_was_whole AND coalesce({state.is_whole()}, true) AS {COMPLETE}",
        f"IF({RANK} <= {state.last_kept()}, _standing, NULL) AS {NEW}",
    )


def _change(was: str, now: str, is_same: str) -> str:
    """SQL for the kind of change, null if there is none."""
    return (
        f"CASE WHEN {was} AND {now} THEN IF({is_same}, NULL, 'update') "
        f"WHEN {now} THEN 'insert' WHEN {was} THEN 'delete' END"
    )


def _struct(state: TopKState) -> str:
    return f"struct({list_columns(state.ranking.prepared)})"


def _kept_as_old(state: TopKState) -> list[str]:
    return [f"{_struct(state)} AS {OLD}", *(f"{flag} AS {OLD_FLAGS[flag]}" for flag in state.flags)]


def _old_flags(state: TopKState) -> list[str]:
    return [OLD_FLAGS[flag] for flag in state.flags]


@dataclass(frozen=True)
class LocalReads:
    """Rows of the input's feed, and the kept rows of at least their groups."""

    feed: DataFrame
    state: DataFrame

    @classmethod
    def of(cls, batch: Batch[TopKState], found: "Candidates") -> "LocalReads":
        """Hand the rows over."""
        plan, session = batch.plan, batch.session
        assert plan.before is not None
        ((input_id, (_, upto)),) = plan.ranges.items()
        return cls(
            hand_as_stored(session, batch.context.lake.uri(input_id), upto, found.feed).coalesce(1),
            hand_as_stored(session, plan.uri, plan.before.version, found.state).coalesce(1),
        )


@dataclass(frozen=True)
class Candidates:
    """Rows of the input's feed that can matter, and the kept rows of at least their groups."""

    feed: pa.Table
    state: pa.Table

    @classmethod
    def of(cls, batch: Batch[TopKState]) -> "Candidates | None":
        """Read the rows; return None if there is too much to read."""
        plan = batch.plan
        assert plan.before is not None
        ((input_id, (after, upto)),) = plan.ranges.items()
        uri = batch.context.lake.uri(input_id)
        kept = table_size(plan.uri, plan.before.version).bytes
        limits, size = batch.context.limits, plan.size.bytes
        if size > limits.collected_bytes:
            return None
        is_small = max(size, kept) <= limits.read_here_bytes
        feed = read_feed(uri, after, upto)
        short = Shortlist.of(batch.operator.ranking, feed.schema)
        if short is None:
            return cls(feed, read_where(plan.uri, plan.before.version)) if is_small else None
        searched = SearchedVersion(plan.uri, plan.before.version, limits)
        state = searched.find_at_most([short.groups(feed)], limits.reread_rows)
        if state is None:
            return None
        feed = short.keep_candidates(feed, state)
        if not is_small and feed.num_rows > limits.handed_rows:
            return None
        return cls(feed, state.filter(are_among(state, [short.groups(feed)])))


_ROW, _WORST, _MISSING = "_row", "_worst", "_missing"


@dataclass(frozen=True)
class Shortlist:
    """Columns that decide which rows of a small change can matter, before Spark sees a row.

    Like file statistics, it leaves out only what surely can't matter: a row whose first sort key
    comes after those of all rows that its group keeps. If the group or that key is not a plain
    column of an exact type, everything is passed on. Spark decides on the rest.

    `group`: columns of the state -> columns of the input. `column` holds the first sort key.
    """

    group: Mapping[str, str]
    column: str
    first: Direction

    @classmethod
    def of(cls, ranking: RankRule, feed: pa.Schema) -> "Shortlist | None":
        """Return the shortlist of a declaration; None if it can't have one."""
        spec = ranking.spec
        group = {p.name: p.expression.plain_column for p in spec.partition_by}
        columns = [*group.values(), spec.order_by[0].expression.plain_column]
        plain = [c for c in columns if c in feed.names and is_exact(feed.field(c).type)]
        if spec.window or ranking.limit_is_column or not group or len(plain) < len(columns):
            return None
        *by, column = [str(name) for name in plain]
        return cls(dict(zip(group, by, strict=True)), column, ranking.order[0])

    def keep_candidates(self, feed: pa.Table, state: pa.Table) -> pa.Table:
        """Return the feed's rows that can matter, given the state's rows of all their groups."""
        numbered = feed.select(list(dict.fromkeys([*self.group.values(), self.column])))
        numbered = numbered.append_column(_ROW, pa.array(np.arange(feed.num_rows)))
        left, right = list(self.group.values()), list(self.group)
        joined = numbered.join(self._worst(state), left, right, "left outer")
        key, worst = joined[self.column], joined[_WORST]
        is_behind = pc.less(key, worst) if self.first.descending else pc.greater(key, worst)
        stays = pc.invert(pc.fill_null(is_behind, False))
        return feed.take(joined.filter(stays)[_ROW])

    def groups(self, feed: pa.Table) -> WantedValues:
        """Return the groups of the feed's rows, as values of the state's columns."""
        found = {name: pc.unique(feed[column]) for name, column in self.group.items()}
        return {name: pa.chunked_array([values]) for name, values in found.items()}

    def _worst(self, state: pa.Table) -> pa.Table:
        """Return the last first key of each group that is incomplete and has no null key."""
        rows = state.filter(pc.invert(state[COMPLETE])).select([*self.group, self.first.column])
        function = "min" if self.first.descending else "max"
        column = self.first.column
        nulls = rows.append_column(_MISSING, pc.is_null(rows[column]))
        found = nulls.group_by(list(self.group)).aggregate([(column, function), (_MISSING, "any")])
        sure = found.filter(pc.invert(found[f"{_MISSING}_any"]))
        return sure.select([*self.group, f"{column}_{function}"]).rename_columns(
            [*self.group, _WORST]
        )
