"""What a batch computes: old and new rows of the touched groups, and their difference.

Each strategy finds the new rows by another way; all end in the same diff, so they can't disagree in
what they commit. Everything is lazy, but for the literal bounds by which a large scan skips files.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changelog.diff import CHANGE, diff
from sluice.changelog.net import WEIGHT, arrivals, as_inserts, between, net
from sluice.operators.cogroup import BROKEN, CogroupState
from sluice.operators.lookup import BATCH, BUCKET, LookupJoin
from sluice.operators.operator import names, union, within
from sluice.operators.retention import Horizon
from sluice.runtime.plan import BatchPlan, Strategy, stored_references
from sluice.runtime.pruning import bounds_of, few_of
from sluice.runtime.rows import dimension_at, references_at, snapshots_at
from sluice.runtime.work import Work
from sluice.specs.lookup import Join
from sluice.specs.project import Project
from sluice.storage import table as delta
from sluice.storage.feed_size import table_size
from sluice.storage.lake import layout
from sluice.storage.local import SMALL_BYTES

Rows = Mapping[str, DataFrame]
SMALL_CHANGE = 20_000  # rows
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

    def changelog(self) -> DataFrame:
        """The minimal changelog: the table's columns and CHANGE.

        A fact that changed was joined anew by this batch: its number counts, though all else that
        is seen of the row stays the same.
        """
        operator = self.plan.node.operator
        if self.plan.strategy is Strategy.BUILD or (self.horizon and self.horizon.brings_back):
            rows = self.numbered(self.query())
            if self.plan.before is None:
                return rows.withColumn(CHANGE, F.lit("insert"))
            return diff(self._current(), rows, operator.key)
        old, new = self._old_and_new()
        return diff(old, self.numbered(new), operator.key)

    def query(self) -> DataFrame:
        """The defining query at the plan's versions."""
        operator = self.plan.node.operator
        return self._living(operator.query(self._snapshots(), self._references()))

    def numbered(self, rows: DataFrame) -> DataFrame:
        """With the number of the batch, for tables whose rows keep it."""
        if BATCH not in self.plan.node.ignored:
            return rows
        return rows.withColumn(BATCH, F.lit(self.batch).cast("bigint"))

    def _old_and_new(self) -> tuple[DataFrame, DataFrame]:
        operator, changes = self.plan.node.operator, self._changes()
        if self.plan.strategy is Strategy.ROW_WISE:
            return self._row_wise(changes)
        has_fallen = self.horizon is not None and self.horizon.has_fallen
        if isinstance(operator, CogroupState) and operator.is_mergeable and not has_fallen:
            return self._merged(operator, changes)
        return self._recomputed(changes)

    def _row_wise(self, changes: Rows) -> tuple[DataFrame, DataFrame]:
        """Each output row from the changed row that it comes from.

        A row that came and did not take another's place has no old output.
        """
        operator, references = self.plan.node.operator, self._references()
        come = {n: operator.prepare(n, arrivals(c)) for n, c in changes.items()}
        new = operator.combine(come, references)
        if operator.mirror:
            gone = {n: operator.prepare(n, _departures(c)) for n, c in changes.items()}
            return self._living(operator.combine(gone, references)), self._living(new)
        left = operator.touched({n: c.where(F.col(WEIGHT) < 0) for n, c in changes.items()})
        return self._old(left, self._bounds(left)), self._living(new)

    def _merged(self, operator: CogroupState, changes: Rows) -> tuple[DataFrame, DataFrame]:
        """The change merged into the state that the table has; what breaks by it is recomputed."""
        change = operator.change({n: operator.prepare(n, c) for n, c in changes.items()})
        touched = change.select(*names(operator.group))
        if self.horizon:
            expired = self.horizon.expired_groups(operator, self._current())
            touched = union([touched, expired]).distinct()
        old = self._old(touched)
        merged = operator.merge(old, change)
        if operator.breaking:
            merged = self._mended(operator, merged)
        return old, self._living(merged.drop(BROKEN))

    def _mended(self, operator: CogroupState, merged: DataFrame) -> DataFrame:
        """With the BROKEN rows' groups recomputed from every input."""
        is_small = (self.plan.size.rows or SMALL_CHANGE + 1) <= SMALL_CHANGE
        rows = self.work.hold(self.session, merged, small=is_small)
        broken = rows.where(F.col(BROKEN)).select(*names(operator.group))
        self.work.recomputed = self.work.count(broken)
        if not self.work.recomputed:
            return rows
        bounds = self._bounds(broken)
        anew = operator.recompute(self._snapshots(), self._references(), broken, bounds)
        whole = rows.where(~F.col(BROKEN)).drop(BROKEN)
        return whole.unionByName(anew)

    def _recomputed(self, changes: Rows) -> tuple[DataFrame, DataFrame]:
        """The touched groups from every input."""
        operator, snapshots = self.plan.node.operator, self._snapshots()
        if isinstance(operator, LookupJoin):
            return self._refreshed(operator, changes, snapshots[operator.facts.id])
        touched = self._touched(changes, snapshots)
        bounds = self._bounds(touched)
        new = operator.recompute(snapshots, self._references(), touched, bounds)
        old = self._old(touched, bounds)
        return old, self._living(operator.remembered(old, new))

    def _refreshed(
        self, operator: LookupJoin, changes: Rows, facts: DataFrame
    ) -> tuple[DataFrame, DataFrame]:
        """The facts that changed, and those that a changed dimension row is joined to."""
        keys = operator.changed_keys(self._reference_changes(operator, changes))
        is_large = table_size(layout(self.project).uri(operator.facts.id), self._facts_version())
        bounds = _few_of_each(keys) if is_large.bytes > SMALL_BYTES else {}
        concerned = operator.concerned(facts, keys, bounds)
        own = changes.get(operator.facts.id)
        if own is not None:
            come = operator.prepare(operator.facts.id, arrivals(own))
            concerned = come.unionByName(concerned).dropDuplicates(list(operator.group))
        rows = self.work.hold(self.session, concerned, small=False)
        touched = rows.select(*names(operator.group))
        if own is not None:
            touched = union([touched, operator.touched({operator.facts.id: own})]).distinct()
        filed = few_of(touched, {BUCKET: F.col(BUCKET)}) if bounds else None
        new = operator.combine({operator.facts.id: rows}, self._references())
        return self._old(touched, filed), new

    def _facts_version(self) -> int:
        return self.plan.pins[self.plan.node.operator.inputs[0]].version

    def _touched(self, changes: Rows, snapshots: Rows) -> DataFrame:
        operator = self.plan.node.operator
        own = {n: c for n, c in changes.items() if n in operator.inputs}
        groups = [operator.touched(own)] if own else []
        if self.horizon and operator.retention and operator.retention.by_delete:
            groups += self._crossed(snapshots, self.horizon)
        return union(groups).distinct() if operator.group else groups[0]

    def _reference_changes(self, operator: LookupJoin, changes: Rows) -> dict[str, DataFrame]:
        """What changed in the dimensions; views over them have no feed: their two states."""
        found = {}
        for reference in operator.references:
            stored = stored_references((reference,), self.project.graph)
            if reference in changes:
                found[reference] = changes[reference]
            elif changes.keys() & set(stored):
                old, new = (
                    dimension_at(self.session, self.project, reference, pins)
                    for pins in (self.plan.recorded, self.plan.pins)
                )
                found[reference] = between(old, new, operator.columns(reference))
        return found

    def _crossed(self, snapshots: Rows, horizon: Horizon) -> list[DataFrame]:
        """The groups that the horizon passed, in either direction."""
        operator = self.plan.node.operator
        crossed = [horizon.expired_groups(operator, self._current())]
        if horizon.has_fallen:
            prepared = {n: operator.prepare(n, rows) for n, rows in snapshots.items()}
            crossed.append(horizon.returning_groups(operator, prepared))
        return crossed

    def _bounds(self, touched: DataFrame) -> Column | None:
        lake, operator = layout(self.project), self.plan.node.operator
        pins = {i: self.plan.pins[i] for i in operator.inputs}
        sizes = (table_size(lake.uri(i), pin.version).bytes for i, pin in pins.items())
        return bounds_of(touched, operator.group) if max(sizes) > SMALL_BYTES else None

    def _living(self, rows: DataFrame) -> DataFrame:
        """Without the rows that a retention has taken, or that upkeep has dropped because of it."""
        retention = self.plan.node.operator.retention
        if self.horizon is None or retention is None:
            return rows
        horizon = self.horizon
        return rows.where(horizon.is_alive() if retention.by_delete else horizon.is_stored())

    def _changes(self) -> dict[str, DataFrame]:
        """The net change of every input that moved; a new input's is its whole table."""
        lake, plan, changes = layout(self.project), self.plan, {}
        for input_id, pin in plan.pins.items():
            columns = plan.node.operator.columns(input_id)
            if input_id in plan.ranges:
                rows = delta.feed(self.session, lake.uri(input_id), *plan.ranges[input_id])
                own = [c for c in rows.columns if c not in FEED_COLUMNS]
                changes[input_id] = net(rows, columns or own)
            elif input_id not in plan.recorded:
                rows = delta.snapshot(self.session, lake.uri(input_id), pin.version)
                changes[input_id] = as_inserts(rows, columns or rows.columns)
        return changes

    def _old(self, touched: DataFrame, bounds: Column | None = None) -> DataFrame:
        rows = self._current() if bounds is None else self._current().where(bounds)
        return within(rows, touched, self.plan.node.operator.group)

    def _current(self) -> DataFrame:
        assert self.plan.before is not None
        return delta.snapshot(self.session, self.plan.uri, self.plan.before.version)

    def _snapshots(self) -> dict[str, DataFrame]:
        plan = self.plan
        return snapshots_at(self.session, self.project, plan.node.operator, plan.pins)

    def _references(self) -> dict[str, DataFrame]:
        plan = self.plan
        return references_at(self.session, self.project, plan.node.operator, plan)


def _departures(changes: DataFrame) -> DataFrame:
    """The old images, without weights."""
    return changes.where(F.col(WEIGHT) < 0).drop(WEIGHT)


def _few_of_each(keys: Mapping[Join, DataFrame]) -> dict[Join, Column]:
    """What facts must meet to be joined on these keys, where those are few."""
    found = {join: few_of(rows, {n: F.col(n) for n in rows.columns}) for join, rows in keys.items()}
    return {join: bounds for join, bounds in found.items() if bounds is not None}
