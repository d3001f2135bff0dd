"""What a batch computes: old and new rows of the touched groups, and their difference.

Each strategy finds the new rows by another way; all end in the same diff, so they can't disagree in
what they commit. Everything is lazy, but for the literal bounds by which a large scan skips files.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changelog.diff import diff, inserted
from sluice.changelog.net import WEIGHT, arrivals, as_inserts, net, weighted
from sluice.operators.cogroup import CogroupState
from sluice.operators.lateness import late_in_sessions, late_of_all, late_of_change
from sluice.operators.lookup import BATCH, LookupJoin
from sluice.operators.operator import Operator, union, within
from sluice.operators.retention import Horizon
from sluice.runtime.computed import Changelog
from sluice.runtime.lookup import LookupBatch
from sluice.runtime.plan import BatchPlan, Strategy
from sluice.runtime.pruning import bounds_of
from sluice.runtime.rows import references_at, snapshots_at
from sluice.runtime.spreading import ranges_for
from sluice.runtime.work import Work
from sluice.specs.project import Project
from sluice.storage import table as delta
from sluice.storage.feed_size import table_size
from sluice.storage.lake import layout

Rows = Mapping[str, DataFrame]
FEED_COLUMNS = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})


@dataclass(frozen=True)
class Computation:
    """One plan, at one session, for one batch number; `horizon` for views with retention."""

    session: SparkSession
    project: Project
    plan: BatchPlan
    batch: int
    horizon: Horizon | None = None
    work: Work = field(default_factory=Work)

    def changelog(self) -> Changelog:
        """The minimal changelog: the table's columns and CHANGE.

        A fact that changed was joined anew by this batch: its number counts, though all else that
        is seen of the row stays the same.
        """
        operator = self.plan.node.operator
        if self.plan.strategy is Strategy.BUILD or (self.horizon and self.horizon.brings_back):
            rows = self.numbered(self._whole())
            if self.plan.before is None:
                self.work.is_projection = operator.mirror
                return inserted(rows)
            return diff(self.current(), rows, operator.key)
        if isinstance(operator, LookupJoin):
            return LookupBatch(
                self.session, self.project, self.plan, operator, self.work, self.numbered
            ).changelog()
        old, new = self._old_and_new()
        rows = self.numbered(new)
        return inserted(rows) if old is None else diff(old, rows, operator.key)

    def query(self) -> DataFrame:
        """The defining query at the plan's versions."""
        operator = self.plan.node.operator
        return self.living(operator.query(self.snapshots(), self._references()))

    def _whole(self) -> DataFrame:
        """As `query`; what a retention takes of it is counted."""
        operator = self.plan.node.operator
        if self.horizon is None or not self._expires:
            return self._cogrouped(operator) if isinstance(operator, CogroupState) else self.query()
        alive = self.horizon.is_alive()
        if not isinstance(operator, CogroupState):
            inputs = self.snapshots().items()
            every = {n: as_inserts(r, operator.columns(n) or r.columns) for n, r in inputs}
            came = [operator.prepare(n, rows) for n, rows in every.items()]
            self.work.expire(late_of_change(came, alive))
            return self.query()
        rows = self._cogrouped(operator)
        held = self.work.hold(self.session, rows, small=False)
        self.work.expire(late_of_all(operator, held, alive))
        return self.living(held)

    def _cogrouped(self, operator: CogroupState) -> DataFrame:
        """The query of a cogroup; of a new table in the order of its files, where that pays."""
        prepared = {n: operator.prepare(n, rows) for n, rows in self.snapshots().items()}
        if self.plan.before is None and (ranges := self._ranges(operator, prepared)):
            self.work.is_filed = True
            return operator.combine_in_ranges(prepared, ranges)
        return operator.combine(prepared, {})

    def _ranges(self, operator: CogroupState, prepared: Rows) -> int:
        lake, pins = layout(self.project), self.plan.pins
        sizes = [table_size(lake.uri(i), pins[i].version) for i in operator.inputs]
        if sum(size.bytes for size in sizes) <= self.project.limits.read_here_bytes:
            return 0
        rows = sum(size.rows or 0 for size in sizes)
        return ranges_for(operator, prepared, rows, self.project.limits)

    @property
    def _expires(self) -> bool:
        """Whether windows leave the table that a retention has taken."""
        retention = self.plan.node.operator.retention
        return retention is not None and retention.by_delete

    def numbered(self, rows: DataFrame) -> DataFrame:
        """With the number of the batch, for tables whose rows keep it."""
        if BATCH not in self.plan.node.ignored:
            return rows
        return rows.withColumn(BATCH, F.lit(self.batch).cast("bigint"))

    def _old_and_new(self) -> tuple[DataFrame | None, DataFrame]:
        """No old rows where the new ones surely take nobody's place."""
        changes = self.changes()
        if self.plan.strategy is Strategy.ROW_WISE:
            return self._row_wise(changes)
        return self._recomputed(changes)

    def _row_wise(self, changes: Rows) -> tuple[DataFrame | None, DataFrame]:
        """Each output row from the changed row that it comes from, and from that row alone."""
        operator = self.plan.node.operator
        come = {n: operator.prepare(n, arrivals(c)) for n, c in changes.items()}
        new = self.living(operator.combine(come, {}))
        if self.plan.growing == changes.keys():
            self.work.is_projection = True
            return None, new
        gone = {n: operator.prepare(n, _departures(c)) for n, c in changes.items()}
        return self.living(operator.combine(gone, {})), new

    def _recomputed(self, changes: Rows) -> tuple[DataFrame, DataFrame]:
        """The touched groups from every input."""
        operator, snapshots = self.plan.node.operator, self.snapshots()
        touched = self._touched(changes, snapshots)
        bounds = self.bounds(touched)
        new = operator.recompute(snapshots, self._references(), touched, bounds)
        old = self._old(touched, bounds)
        if self.horizon and self._expires:
            self.work.expire(self._late(self.horizon, changes, snapshots, touched))
        return old, self.living(operator.remembered(old, new))

    def _touched(self, changes: Rows, snapshots: Rows) -> DataFrame:
        operator = self.plan.node.operator
        own = {n: c for n, c in changes.items() if n in operator.inputs}
        groups = [operator.touched(own)] if own else []
        if self.horizon and self._expires:
            groups += self._crossed(snapshots, self.horizon)
        return union(groups).distinct() if operator.group else groups[0]

    def _late(
        self, horizon: Horizon, changes: Rows, snapshots: Rows, touched: DataFrame
    ) -> DataFrame:
        """How many rows came for windows that don't live any more."""
        operator = self.plan.node.operator
        came = [operator.prepare(n, c) for n, c in changes.items()]
        if not (isinstance(operator, CogroupState) and operator.is_session):
            return late_of_change(came, horizon.is_alive())
        rows = [operator.prepare(n, r) for n, r in snapshots.items()]
        current = [within(r, touched, operator.group) for r in rows]
        return late_in_sessions(operator, came, current, horizon.is_alive())

    def _crossed(self, snapshots: Rows, horizon: Horizon) -> list[DataFrame]:
        """The groups that the horizon passed, in either direction."""
        operator = self.plan.node.operator
        crossed = [horizon.expired_groups(operator, self.current())]
        if horizon.has_fallen:
            prepared = {n: operator.prepare(n, rows) for n, rows in snapshots.items()}
            crossed.append(horizon.returning_groups(operator, prepared))
        return crossed

    def bounds(self, touched: DataFrame, part: Operator | None = None) -> Column | None:
        """A condition that the touched groups meet, where inputs are large; `part` reads some."""
        lake, operator = layout(self.project), part or self.plan.node.operator
        pins = {i: self.plan.pins[i] for i in operator.inputs}
        sizes = (table_size(lake.uri(i), pin.version).bytes for i, pin in pins.items())
        limits = self.project.limits
        is_large = max(sizes) > limits.read_here_bytes
        return bounds_of(touched, operator.group, limits) if is_large else None

    def living(self, rows: DataFrame) -> DataFrame:
        """Without the rows that a retention has taken, or that upkeep has dropped because of it."""
        retention = self.plan.node.operator.retention
        if self.horizon is None or retention is None:
            return rows
        horizon = self.horizon
        return rows.where(horizon.is_alive() if retention.by_delete else horizon.is_stored())

    def changes(self) -> dict[str, DataFrame]:
        """The net change of every input that moved; a new input's is its whole table."""
        lake, plan, changes = layout(self.project), self.plan, {}
        limits = self.project.limits
        for input_id, pin in plan.pins.items():
            columns = plan.node.operator.columns(input_id)
            if input_id in plan.ranges:
                rows = delta.feed(self.session, lake.uri(input_id), *plan.ranges[input_id], limits)
                own = [c for c in rows.columns if c not in FEED_COLUMNS]
                is_net = plan.strategy is Strategy.ROW_WISE and input_id in plan.growing
                changes[input_id] = (weighted if is_net else net)(rows, columns or own)
            elif input_id not in plan.recorded:
                rows = delta.snapshot(self.session, lake.uri(input_id), pin.version, limits)
                changes[input_id] = as_inserts(rows, columns or rows.columns)
        return changes

    def _old(self, touched: DataFrame, bounds: Column | None = None) -> DataFrame:
        rows = self.current() if bounds is None else self.current().where(bounds)
        return within(rows, touched, self.plan.node.operator.group)

    def current(self) -> DataFrame:
        """The table's rows at its head."""
        assert self.plan.before is not None
        at, limits = self.plan.before, self.project.limits
        return delta.snapshot(self.session, self.plan.uri, at.version, limits)

    def snapshots(self, part: Operator | None = None) -> dict[str, DataFrame]:
        """The inputs as of the pinned versions; those of `part` where that reads only some."""
        operator = part or self.plan.node.operator
        return snapshots_at(self.session, self.project, operator, self.plan.pins)

    def _references(self) -> dict[str, DataFrame]:
        plan = self.plan
        return references_at(self.session, self.project, plan.node.operator, plan)


def _departures(changes: DataFrame) -> DataFrame:
    """The old images, without weights."""
    return changes.where(F.col(WEIGHT) < 0).drop(WEIGHT)
