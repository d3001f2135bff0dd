"""Batch of a join: touched values of both sides, without the rows that have expired.

If only one side has changed, its changed rows are joined, before and after, with the other side's.
"""

from collections.abc import Sequence
from enum import StrEnum

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from sluice.changes import arrivals, departures, diff, insertions
from sluice.declare.meaning import definition
from sluice.declare.table import Graph, Table
from sluice.delta.log.files import FeedSize, table_size
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.reading import spark_reads as delta
from sluice.delta.writing.own_commits import Committed
from sluice.engine.committing import Kept
from sluice.engine.computing.batch import Batch, Reread, snapshot_at, touched_by_feeds
from sluice.engine.computing.batch_plan import BatchPlan, BatchResult, Strategy, Way
from sluice.engine.computing.rows import picked_of
from sluice.engine.context import Context
from sluice.engine.planning.nodes import Node
from sluice.engine.query.operator import InputRows, names, within
from sluice.kinds.join.operator import JoinedRows
from sluice.kinds.join.spec import EquiJoin
from sluice.language.names import CHANGE_TYPE

COUNT = "_count"
MULTIPLIED_ROWS = 1_000_000  # that one value gives in one batch; of more, the report warns
NAMED = 3  # values that a report names


class JoinStrategy(StrEnum):
    """Strategies of a join, in addition to those of all kinds."""

    ONE_SIDE = "one side"  # changed rows of one side, with the rows that they match


class JoinBatch(Batch[JoinedRows]):
    """One batch of a join."""

    @classmethod
    def way(cls, plan: BatchPlan, lake: LakeLayout) -> Way:
        join = plan.node.operator
        assert isinstance(join, JoinedRows)
        changed = [i for i in plan.pins if i in plan.ranges or i not in plan.recorded]
        if len(changed) == 1 and join.follows_alone(changed[0]):
            return JoinStrategy.ONE_SIDE, f"only {changed[0]} has changed: its rows are joined"
        return super().way(plan, lake)

    @classmethod
    def rereads(cls, context: Context, plan: BatchPlan) -> tuple[Reread, ...]:
        """Return the other side's rows if one has changed; else all touched groups."""
        if plan.strategy != JoinStrategy.ONE_SIDE:
            return super().rereads(context, plan)
        join = plan.node.operator
        others = (i for i in join.inputs if i in plan.recorded and i not in plan.ranges)
        return tuple(Reread(i, join.map_to_group(i), touched_by_feeds) for i in others)

    def compute_changes(self) -> BatchResult:
        if self.plan.strategy != JoinStrategy.ONE_SIDE:
            return super().compute_changes()
        changes = self.changes()
        ((changed, rows),) = changes.items()
        other = self._match(changed, self.find_touched(changes, {}))
        new = self._join_changes(changed, arrivals(rows), other)
        if changed in self.plan.growing:
            return BatchResult(insertions(new))
        old = self._join_changes(changed, departures(rows), other)
        return BatchResult(diff(old, new, self.operator.key, ignore=self.plan.node.ignored))

    def _join_changes(self, changed: str, rows: DataFrame, other: InputRows) -> DataFrame:
        prepared = {changed: self.operator.prepare(changed, rows), **other}
        return self.stored(self.operator.combine(prepared, {}))

    def _match(self, changed: str, touched: DataFrame) -> InputRows:
        """Return the rows of the side that did not change, for the touched values."""
        join = self.operator
        (other,) = (i for i in join.inputs if i != changed)
        found = picked_of(self.context, self.plan, touched, join, other)
        bounds = self.bounds(touched) if found is None else None
        if found is None:
            pin = self.plan.pins[other]
            found = snapshot_at(self.session, self.context, join, other, pin)
        rows = join.prepare(other, found)
        near = rows if bounds is None else rows.where(bounds)
        return {other: within(near, touched, join.group)}

    @classmethod
    def remarks(cls, context: Context, plan: BatchPlan) -> tuple[str, ...]:
        """Report which files of the inputs the next batch opens."""
        if not plan.is_pending or plan.strategy == Strategy.BUILD:
            return ()
        join = plan.node.operator
        assert isinstance(join, JoinedRows)
        is_one_sided = plan.strategy == JoinStrategy.ONE_SIDE
        read = [i for i in plan.pins if not (is_one_sided and i in plan.ranges)]
        sizes = {i: table_size(context.lake.uri(i), plan.pins[i].version) for i in read}
        is_large = max(size.bytes for size in sizes.values()) > context.limits.read_here_bytes
        return tuple(
            _describe(i, size, join.searched_columns(i), is_large=is_large)
            for i, size in sizes.items()
        )

    def warnings_of(self, done: Committed) -> tuple[str, ...]:
        """Name values of `on` that multiplied rows. Reads the commit's feed only if it is large."""
        if done.changed <= MULTIPLIED_ROWS or not self.operator.spec.shows_right:
            return ()
        span, limits = (done.version - 1, done.version), self.context.limits
        feed = delta.feed(self.session, self.plan.uri, *span, limits)
        written = feed.where(f"{CHANGE_TYPE} != 'update_preimage'").dropna(
            subset=[*self.operator.group]
        )
        counts = written.groupBy(*names(self.operator.group)).agg(F.count(F.lit(1)).alias(COUNT))
        largest = counts.where(F.col(COUNT) > MULTIPLIED_ROWS).orderBy(F.desc(COUNT)).limit(NAMED)
        return tuple(map(self._warning, largest.collect()))

    def _warning(self, found: Row) -> str:
        pairs = zip(self.operator.shape.on_as_written, found[:-1], strict=True)
        value = " and ".join(f"{text} = {value}" for text, value in pairs)
        return (
            f"{self.plan.node.id}: {found[COUNT]:,} of the rows that this batch wrote have the "
            f"same value, {value}; each change to it joins all of these rows again"
        )

    def pick_needed(self, snapshots: InputRows) -> InputRows:
        return self.operator.living(snapshots, self.horizon.now if self.horizon else None)


def _describe(name: str, size: FeedSize, searched: Sequence[str], *, is_large: bool) -> str:
    """Return the part of an input that is read, as text."""
    whole = f"{size.bytes / 1e6:,.1f} MB in {size.files:,} file(s)"
    if not is_large:
        return f"{name} is read whole ({whole})"
    if not searched:
        return (
            f"{name} is read whole ({whole}): its files have no statistics for the columns of `on`"
        )
    columns = " and ".join(searched)
    return f"of {name} ({whole}), only files that may contain touched {columns} are read"


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the view itself."""
    spec = table.spec
    assert isinstance(spec, EquiJoin)
    left, right = (graph.tables[table.reference(s.table)] for s in (spec.left, spec.right))
    return (
        Node(table.id, table, JoinedRows(table, left, right), definition(table), JoinBatch, Kept),
    )
