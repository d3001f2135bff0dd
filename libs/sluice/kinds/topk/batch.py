"""A batch of a top-k's state: the effect of the change on the kept rows.

Only the feed and the kept rows are read. The input itself is read again only for groups that have
lost more rows than their headroom, and only the files that may hold them. The same pass computes
the changelog of the view over the state.
"""

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluice.changes import CHANGE, WEIGHT, sum_weights, weigh
from sluice.declare.meaning import definition
from sluice.declare.table import Graph, Table
from sluice.delta.log.files import FeedSize, table_size
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.reading import spark_reads as delta
from sluice.delta.reading.local import hand_as_stored
from sluice.engine.batch import Batch, Reread, same_names
from sluice.engine.batch_plan import BatchPlan, BatchResult, ChangelogRows, Context, Strategy, Way
from sluice.engine.operator import names, within
from sluice.engine.plan import Node
from sluice.engine.rows import Held, Here, InSpark, is_given, is_true
from sluice.engine.upkeep import Kept
from sluice.kinds.topk.change import (
    FELL,
    SHORT,
    SHOWN_CHANGE,
    Candidates,
    LocalReads,
    best_per_group,
    move_rows,
    rank_candidates,
    refill_groups,
)
from sluice.kinds.topk.operator import LIMIT, TopKState, TopKView
from sluice.language.names import STATE, internal

GROUPS_NAMED = 5
FULL_BYTES = 8_000_000  # of a feed; above it all of the input is read,
FULL_SHARE = 0.5  # if the feed has so much of its bytes


class TopKBatch(Batch[TopKState]):
    """One batch of a top-k's state."""

    @classmethod
    def way(cls, plan: BatchPlan, lake: LakeLayout) -> Way:
        state, ranges = plan.node.operator, plan.ranges.items()
        assert isinstance(state, TopKState)
        whole = sum((table_size(lake.uri(i), upto) for i, (_, upto) in ranges), FeedSize())
        grows = plan.growing == plan.ranges.keys()
        return choose_strategy(state, plan.size, whole, only_inserts=grows)

    @classmethod
    def rereads(cls, context: Context, plan: BatchPlan) -> tuple[Reread, ...]:
        """Return the kept rows of groups that may change, and what a refill may need."""
        state = plan.node.operator
        assert isinstance(state, TopKState)
        (input_id,) = state.inputs
        if plan.strategy == TopKStrategy.FULL:
            every = (input_id, plan.node.id)
            return tuple(Reread(table, None, TopKBatch.candidate_groups) for table in every)
        kept = Reread(plan.node.id, same_names(state.group) or None, TopKBatch.candidate_groups)
        if plan.strategy == TopKStrategy.APPEND and not state.ranking.limit_is_column:
            return (kept,)
        named = state.map_to_group(input_id)
        return kept, Reread(input_id, named, TopKBatch.candidate_groups, is_sure=False)

    def result(self) -> BatchResult:
        if self.plan.strategy == Strategy.BUILD or self.has_fallen:
            return replace(super().result(), warnings=self._without_limit(self.snapshots()))
        is_full = self.plan.strategy == TopKStrategy.FULL
        return self._recompute() if is_full else self._move()

    @property
    def is_whole(self) -> bool:
        return self.plan.strategy == TopKStrategy.FULL or super().is_whole

    def recompute_table(self, rows: DataFrame) -> DataFrame:
        """Return the expected rows; the state may keep more than it must, depending on its past."""
        return self.keep_living(self.operator.acceptable(self.snapshots(), rows))

    def _move(self) -> BatchResult:
        found = self._candidates
        local = LocalReads.of(self, found) if found else None
        came = self._prepare(local.feed if local else self._feed())
        changes = self._changes(came, local.state if local else None)
        if not local:
            changes = self.hold(changes)
        rows = local.state if local else self.current_of(self._groups(changes))
        moved = move_rows(self.operator, rows, changes, self.alive)
        moves = Here.of(moved) if local else self._few_or_many(moved)
        strategy = self._strategy(moves)
        short = moves.where(is_true(SHORT)).distinct(self.operator.group or (SHORT,))
        if refills := short.count():
            moves = moves.where(~is_true(SHORT)).beside(self._refill(short.rows))
        warnings = (*self._contradiction(strategy), *warn_without_limit(self.operator, changes))
        return self._result(moves, strategy, warnings, self._late(came), refills)

    def _recompute(self) -> BatchResult:
        inputs = self.snapshots()
        found = refill_groups(
            self.operator, self.current(), self.keep_living(self.operator.query(inputs, {}))
        )
        moves, late = self._few_or_many(found), self._late(self._prepare(self._feed()))
        return self._result(moves, TopKStrategy.FULL, self._without_limit(inputs), late)

    def _result(
        self, moves: Held, strategy: str, warnings: tuple[str, ...], late: int, refills: int = 0
    ) -> BatchResult:
        kept = moves.where(is_given(CHANGE))
        return BatchResult(
            kept.changelog({name: name for name in (*self.operator.stored, CHANGE)}),
            strategy,
            refills=refills,
            expired=late,
            warnings=warnings,
            shown=self._view_changelog(moves),
        )

    def _view_changelog(self, moves: Held) -> ChangelogRows | None:
        """Return the view's changelog, if its rows show whenever their rank does."""
        if self.operator.ranking.spec.having:
            return None
        view, seen = TopKView(self.operator, self.plan.node.id), moves.where(is_given(SHOWN_CHANGE))
        return seen.changelog({**view.places, CHANGE: SHOWN_CHANGE})

    def _prepare(self, feed: DataFrame) -> DataFrame:
        (input_id,) = self.plan.ranges
        return self.operator.prepare(input_id, weigh(feed, self.operator.columns(input_id)))

    def _late(self, came: DataFrame) -> int:
        """Count rows that arrived for expired windows. Takes a Spark job if there are windows."""
        if self.alive is None:
            return 0
        return self.count_late(
            [sum_weights(came.where(~self.alive), self.operator.ranking.prepared)]
        )

    def _changes(self, came: DataFrame, found: DataFrame | None) -> DataFrame:
        """Return the prepared net change, with WEIGHT, of rows that can matter.

        `found`: the kept rows of their groups, if this process has found them.
        """
        changes = self.keep_living(came)
        if self.plan.size.bytes > self.context.limits.read_here_bytes:
            last = (
                self._last_rows() if found is None else F.broadcast(self.operator.last_rows(found))
            )
            changes = rank_candidates(self.operator, changes, last)
        if self.plan.strategy == TopKStrategy.APPEND:
            return best_per_group(self.operator, changes)
        return sum_weights(changes, self.operator.ranking.prepared)

    def _last_rows(self) -> DataFrame:
        """Return the last kept row of each group; there may be more than a worker can hold."""
        assert self.plan.before is not None
        last = self.operator.last_rows(self.current())
        size = table_size(self.plan.uri, self.plan.before.version)
        is_small = size.bytes <= self.context.limits.collected_bytes
        return F.broadcast(last) if is_small else last

    def _groups(self, rows: DataFrame) -> DataFrame:
        return rows.select(*names(self.operator.group)).distinct()

    def candidate_groups(self) -> DataFrame:
        """Return the groups with changes that can matter; the batch reads their kept rows."""
        ((input_id, (_, upto)),) = self.plan.ranges.items()
        found, uri = self._candidates, self.context.lake.uri(input_id)
        feed = hand_as_stored(self.session, uri, upto, found.feed) if found else self._feed()
        return self._groups(self._prepare(feed))

    @cached_property
    def _candidates(self) -> Candidates | None:
        return Candidates.of(self)

    def _feed(self) -> DataFrame:
        ((input_id, range_),) = self.plan.ranges.items()
        uri = self.context.lake.uri(input_id)
        return delta.feed(self.session, uri, *range_, self.context.limits)

    def _few_or_many(self, found: DataFrame) -> Held:
        kept = self.hold(found)
        is_small = kept.count() <= self.context.settings.small_changelog
        return Here.of(kept) if is_small else InSpark(kept)

    def _refill(self, groups: DataFrame) -> DataFrame:
        operator = self.operator
        bounds = self.bounds(groups)
        fresh = self.keep_living(operator.recompute(self.snapshots(), {}, groups, bounds))
        return refill_groups(operator, within(self.current(), groups, operator.group), fresh)

    def _strategy(self, moves: Held) -> str:
        """Return the strategy that the net change turned out to need, if none is declared."""
        if self.plan.strategy == TopKStrategy.APPEND:
            return TopKStrategy.APPEND
        if self.operator.ranking.spec.strategy == "retract":
            return TopKStrategy.RETRACT
        return TopKStrategy.RETRACT if moves.has_any(is_true(FELL)) else TopKStrategy.UPDATE

    def _contradiction(self, found: str) -> Iterator[str]:
        declared = self.operator.ranking.spec.strategy
        if declared in ("append", "update") and found == TopKStrategy.RETRACT:
            yield (
                f"{self.plan.node.table.id}: strategy {declared!r} is declared, but kept rows "
                f"left or fell: the batch used 'retract'"
            )

    def _without_limit(self, inputs: dict[str, DataFrame]) -> tuple[str, ...]:
        prepared = (self.operator.prepare(name, rows) for name, rows in inputs.items())
        return tuple(
            warning for rows in prepared for warning in warn_without_limit(self.operator, rows)
        )


def warn_without_limit(state: TopKState, rows: DataFrame) -> Iterator[str]:
    """Yield a warning naming groups with rows whose own limit is null. Takes one Spark job."""
    if not state.ranking.limit_is_column:
        return
    comes = F.col(WEIGHT) > 0 if WEIGHT in rows.columns else F.lit(True)
    groups = rows.where(F.col(LIMIT).isNull() & comes).select(*names(state.group))
    found = groups.distinct().limit(GROUPS_NAMED + 1).collect()
    if found:
        named = ["/".join(map(str, group)) or "the one ranking" for group in found[:GROUPS_NAMED]]
        more = " and others" if len(found) > GROUPS_NAMED else ""
        column = state.ranking.spec.limit
        yield (
            f"{state.ranking.view.id}: {column} is null in rows of {', '.join(named)}{more}: they "
            "are ranked but not shown"
        )


class TopKStrategy(StrEnum):
    """Strategies by which a batch computes the rows of the state, chosen by the feed's log.

    Only netting shows whether rows fall, so `retract` may turn out to be `update`. The work is the
    same up to there.
    """

    APPEND = "append"  # kept rows and rows that are only added
    UPDATE = "update"  # the same, with rows that change and don't fall
    RETRACT = "retract"  # the same, with any change: groups that run short are refilled
    FULL = "full"  # the whole query, compared with all rows


def choose_strategy(
    state: TopKState, feed: FeedSize, table: FeedSize, *, only_inserts: bool
) -> Way:
    """Return the strategy and its reason. `feed`: size of the change; `table`: of the input."""
    declared: str | None = state.ranking.spec.strategy
    if declared == TopKStrategy.FULL:
        return TopKStrategy.FULL, "declared"
    share = feed.bytes / max(table.bytes, 1)
    is_most = feed.bytes > FULL_BYTES and share > FULL_SHARE
    if not declared and is_most:
        because = f"the feed is {share:.0%} of the input: reading all of it is cheaper"
        return TopKStrategy.FULL, because
    if only_inserts and declared in (None, TopKStrategy.APPEND):
        return TopKStrategy.APPEND, "rows were only added: the best are ranked with the kept rows"
    why = "" if only_inserts else "rows were changed: kept rows replace those that leave"
    because = f"declared {declared}" if declared else ""
    return TopKStrategy.RETRACT, "; ".join(filter(None, (because, why)))


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the top-k's stored tables, the state first."""
    (source,) = graph.inputs(table.id)
    state, state_id, made = TopKState(table, source), internal(table.id, STATE), definition(table)
    return (
        Node(state_id, table, state, made, TopKBatch, Kept),
        Node(table.id, table, TopKView(state, state_id), made, Batch, Kept),
    )
