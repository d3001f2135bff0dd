"""A batch of a top-k's state: what the change means for the rows that are kept.

Only the feed and the kept rows are read. The input itself is read again for groups that have lost
more rows than were kept in reserve, and only the files that may hold them. The changelog of the
view over the state comes out of the same pass.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changelog.net import WEIGHT, summed, weighted
from sluice.operators.lateness import late_of_change
from sluice.operators.operator import names, union, within
from sluice.operators.ranking import LIMIT
from sluice.operators.retention import Horizon
from sluice.operators.topk import TopKState, TopKView
from sluice.operators.topk_change import competing, foremost, moved, refilled
from sluice.runtime.computed import Computed
from sluice.runtime.local_reads import LocalReads
from sluice.runtime.moves import LocalMoves, Moves, SparkMoves
from sluice.runtime.plan import BatchPlan, Strategy
from sluice.runtime.pruning import bounds_of
from sluice.runtime.rows import snapshots_at
from sluice.specs.project import Project
from sluice.storage import table as delta
from sluice.storage.feed_size import table_size
from sluice.storage.lake import layout

GROUPS_NAMED = 5


@dataclass(frozen=True)
class TopKBatch:
    """One incremental batch of the state of a top-k."""

    session: SparkSession
    project: Project
    plan: BatchPlan
    horizon: Horizon | None = None

    @contextmanager
    def computed(self) -> Iterator[Computed]:
        """Its result, for as long as the context is open."""
        with ExitStack() as cached:
            yield self._anew(cached) if self.plan.strategy is Strategy.FULL else self._moved(cached)

    def _moved(self, cached: ExitStack) -> Computed:
        """From the change and the kept rows."""
        local = LocalReads.of(self.session, self.project, self.plan, self.state)
        came = self._prepared(local.feed if local else self._feed())
        changes = self._changes(came)
        if not local:
            changes = _kept(changes, cached)
        rows = local.state if local else self._rows(changes)
        found = moved(self.state, rows, changes, self._alive())
        moves = self._moves(found, cached, is_small=local is not None)
        strategy = self._strategy(moves)
        short = moves.short(self.state.group)
        if short:
            moves = moves.filled(self._refilled(short.groups))
        warnings = (*self._contradiction(strategy), *without_limit(self.state, changes))
        late, refills = self._late(came), short.count if short else 0
        return self._computed(moves, strategy, warnings, late, refills)

    def _anew(self, cached: ExitStack) -> Computed:
        """From the whole input and all kept rows."""
        inputs = self._inputs()
        found = refilled(self.state, self._current(), self._living(self.state.query(inputs, {})))
        moves = self._moves(found, cached, is_small=False)
        prepared = (self.state.prepare(name, rows) for name, rows in inputs.items())
        warnings = (told for rows in prepared for told in without_limit(self.state, rows))
        late = self._late(self._prepared(self._feed()))
        return self._computed(moves, Strategy.FULL, tuple(warnings), late)

    def _computed(
        self,
        moves: Moves,
        strategy: Strategy,
        warnings: tuple[str, ...],
        late: int,
        refills: int = 0,
    ) -> Computed:
        view = TopKView(self.state, self.plan.node.id)
        return Computed(
            moves.of_state(self.state.stored),
            strategy.value,
            refills=refills,
            expired=late,
            warnings=warnings,
            shown=moves.of_view(view),
        )

    @property
    def state(self) -> TopKState:
        """The operator."""
        operator = self.plan.node.operator
        assert isinstance(operator, TopKState)
        return operator

    def _prepared(self, feed: DataFrame) -> DataFrame:
        """The feed's prepared rows, with WEIGHT."""
        (input_id,) = self.plan.ranges
        return self.state.prepare(input_id, weighted(feed, self.state.columns(input_id)))

    def _late(self, came: DataFrame) -> int:
        """How many rows came for windows that a retention has taken. A Spark job where it may."""
        if (alive := self._alive()) is None:
            return 0
        late = summed(came.where(~alive), self.state.ranking.prepared)
        return int(late_of_change([late], alive).collect()[0][0] or 0)

    def _changes(self, came: DataFrame) -> DataFrame:
        """The prepared net change, with WEIGHT, of rows that can matter."""
        changes = self._living(came)
        if self.plan.size.bytes > self.project.limits.read_here_bytes:
            changes = competing(self.state, changes, self._last_rows())
        if self.plan.strategy is Strategy.APPEND:
            return foremost(self.state, changes)
        return summed(changes, self.state.ranking.prepared)

    def _last_rows(self) -> DataFrame:
        """Of each group; there may be more of them than each worker can hold."""
        assert self.plan.before is not None
        last = self.state.last_rows(self._current())
        size = table_size(self.plan.uri, self.plan.before.version)
        is_small = size.bytes <= self.project.limits.topk_state_bytes
        return F.broadcast(last) if is_small else last

    def _rows(self, changes: DataFrame) -> DataFrame:
        """The kept rows of at least the touched groups."""
        groups = [changes.select(*names(self.state.group))]
        if (alive := self._alive()) is not None:
            groups.append(self._current().where(~alive).select(*names(self.state.group)))
        return within(self._current(), union(groups).distinct(), self.state.group)

    def _feed(self) -> DataFrame:
        ((input_id, range_),) = self.plan.ranges.items()
        uri = layout(self.project).uri(input_id)
        return delta.feed(self.session, uri, *range_, self.project.limits)

    def _moves(self, found: DataFrame, cached: ExitStack, *, is_small: bool) -> Moves:
        if is_small:
            return LocalMoves(self.session, found.toArrow())
        kept = _kept(found, cached)
        if kept.count() <= self.project.spark.small_changelog:
            return LocalMoves(self.session, kept.toArrow())
        return SparkMoves(kept)

    def _refilled(self, groups: DataFrame) -> DataFrame:
        """The moves of groups that are filled from the input as it is now."""
        operator, lake, limits = self.state, layout(self.project), self.project.limits
        sizes = (table_size(lake.uri(i), p.version).bytes for i, p in self.plan.pins.items())
        is_large = max(sizes) > limits.read_here_bytes
        bounds = bounds_of(groups, operator.group, limits) if is_large else None
        fresh = self._living(operator.recompute(self._inputs(), {}, groups, bounds))
        return refilled(operator, within(self._current(), groups, operator.group), fresh)

    def _inputs(self) -> dict[str, DataFrame]:
        """The input as it is now."""
        return snapshots_at(self.session, self.project, self.state, self.plan.pins)

    def _living(self, rows: DataFrame) -> DataFrame:
        alive = self._alive()
        return rows if alive is None else rows.where(alive)

    def _strategy(self, moves: Moves) -> Strategy:
        """What the net change turned out to be, if it was not declared to be anything."""
        if self.plan.strategy is Strategy.APPEND:
            return Strategy.APPEND
        if self.state.ranking.spec.strategy == "retract":
            return Strategy.RETRACT
        return Strategy.RETRACT if moves.has_fallen else Strategy.UPDATE

    def _contradiction(self, found: Strategy) -> Iterator[str]:
        declared = self.state.ranking.spec.strategy
        if declared in ("append", "update") and found is Strategy.RETRACT:
            yield (
                f"{self.plan.node.table.id}: strategy {declared!r} is declared, but kept rows went "
                "or fell: the batch was done by 'retract'"
            )

    def _alive(self) -> Column | None:
        return self.horizon.is_alive() if self.horizon else None

    def _current(self) -> DataFrame:
        assert self.plan.before is not None
        at, limits = self.plan.before, self.project.limits
        return delta.snapshot(self.session, self.plan.uri, at.version, limits)


def without_limit(state: TopKState, rows: DataFrame) -> Iterator[str]:
    """A warning that names groups with prepared rows whose own limit is null. One Spark job."""
    if not state.ranking.limit_is_column:
        return
    groups = rows.where(F.col(LIMIT).isNull() & _comes(rows)).select(*names(state.group))
    found = groups.distinct().limit(GROUPS_NAMED + 1).collect()
    if found:
        named = ["/".join(map(str, group)) or "the one ranking" for group in found[:GROUPS_NAMED]]
        more = " and others" if len(found) > GROUPS_NAMED else ""
        column = state.ranking.spec.limit
        yield (
            f"{state.ranking.view.id}: {column} is null in rows of {', '.join(named)}{more}: they "
            "are ranked and not shown"
        )


def _comes(rows: DataFrame) -> Column:
    return F.col(WEIGHT) > 0 if WEIGHT in rows.columns else F.lit(True)


def _kept(rows: DataFrame, cached: ExitStack) -> DataFrame:
    kept = rows.persist()
    cached.callback(kept.unpersist)
    return kept
