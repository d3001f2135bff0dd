"""Batch of a cogroup's state: it merges the change into the rows that the state has.

Only the feeds and the touched rows of the state are read. If a removal breaks groups, only the
affected streams are recomputed, from their inputs only. The same pass produces the changelog of the
view over the state. Sessions are recomputed from the inputs.
"""

from collections.abc import Mapping
from enum import StrEnum

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from sluice.changes.diff import CHANGE
from sluice.changes.net import net
from sluice.delta.log.feed_size import table_size
from sluice.delta.places.lake_layout import LakeLayout
from sluice.engine.computing.batch import Batch, Extension, count_of
from sluice.engine.computing.batch_plan import BatchPlan, Strategy, Way
from sluice.engine.computing.batch_result import BatchResult, WholeTable
from sluice.engine.computing.held import Held, Here, InSpark, has_elements, is_given
from sluice.engine.query.maintained import Maintained
from sluice.engine.query.operator import InputRows, names, within
from sluice.interpreter.presence import is_here
from sluice.kinds.cogroup.change import BROKEN, changed_groups, contributed, mended, merged
from sluice.kinds.cogroup.extension import extension_of
from sluice.kinds.cogroup.lateness import late_in_sessions, late_of_all
from sluice.kinds.cogroup.operator import CogroupState
from sluice.kinds.cogroup.reads import GroupReads, few_rows
from sluice.kinds.cogroup.spreading import ranges_for
from sluice.kinds.cogroup.view import CogroupView
from sluice.limits import Limits


class CogroupStrategy(StrEnum):
    """Strategies for merging a change into the state."""

    ADDITIVE = "additive"  # reads the feeds and the touched state only
    MERGE = "merge"  # also recomputes, from their inputs, streams that a removal breaks


class CogroupBatch(Batch[CogroupState]):
    """One batch of the state of a cogroup."""

    @classmethod
    def few_tasks_bytes(cls, limits: Limits) -> int:
        return limits.few_tasks_merge_bytes

    @classmethod
    def way(cls, plan: BatchPlan, lake: LakeLayout, limits: Limits) -> Way:
        state = plan.node.operator
        assert isinstance(state, CogroupState)
        if not state.is_mergeable:
            return Strategy.RECOMPUTE, "added and removed rows move the bounds of sessions"
        if breaking := ", ".join(state.breaking):
            why = f"groups are recomputed if they lose a value kept for {breaking}"
            return CogroupStrategy.MERGE, why
        return CogroupStrategy.ADDITIVE, "all aggregates can add and remove rows"

    @classmethod
    def extension(cls, node: Maintained, lake: LakeLayout) -> Extension | None:
        return extension_of(node, lake)

    def changed(self) -> BatchResult:
        if self.has_fallen or self.plan.strategy not in set(CogroupStrategy):
            return super().changed()
        return self._merged()

    def whole(self) -> WholeTable:
        """Compute all rows; those of a new table in the order of its files, if that pays."""
        prepared = {n: self.operator.prepare(n, rows) for n, rows in self.snapshots().items()}
        ranges = self._ranges(prepared) if self.plan.before is None else 0
        if ranges:
            rows = self.operator.combine_in_ranges(prepared, ranges)
        else:
            rows = self.operator.combine(prepared, {})
        if self.alive is None:
            return WholeTable(rows, is_filed=bool(ranges))
        held = self.hold(rows)
        late = count_of(late_of_all(self.operator, held, self.alive))
        return WholeTable(self.living(held), late, is_filed=bool(ranges))

    def late(
        self, changes: InputRows, snapshots: InputRows, touched: DataFrame, alive: Column
    ) -> DataFrame:
        if not self.operator.is_session:
            return super().late(changes, snapshots, touched, alive)
        came = [self.operator.prepare(n, c) for n, c in changes.items()]
        rows = [self.operator.prepare(n, r) for n, r in snapshots.items()]
        current = [within(r, touched, self.operator.group) for r in rows]
        return late_in_sessions(self.operator, came, current, alive)

    def _ranges(self, prepared: InputRows) -> int:
        lake, pins = self.context.lake, self.plan.pins
        sizes = [table_size(lake.uri(i), pins[i].version) for i in self.operator.inputs]
        is_small = sum(size.bytes for size in sizes) <= self.context.limits.read_here_bytes
        if is_small or is_here(self.session):
            return 0
        rows = sum(size.rows or 0 for size in sizes)
        return ranges_for(self.operator, prepared, rows, self.context.limits)

    def _merged(self) -> BatchResult:
        """Merge the change with the rows of the state."""
        local = GroupReads.of(self)
        prepared = {n: self.operator.prepare(n, c) for n, c in self._net(local).items()}
        change = contributed(self.operator, prepared)
        old = local.state if local else self.current_of(change.select(*names(self.operator.group)))
        found = changed_groups(self.operator, merged(self.operator, old, change), self.alive)
        expired = self.count_late(prepared.values())
        groups = Here.of(found) if local else InSpark(self.hold(found))
        whole, recomputed = self._mended(groups)
        changed = whole.where(is_given(CHANGE))
        view = CogroupView(self.operator, self.plan.node.id)
        return BatchResult(
            changed.changelog({name: name for name in (*self.operator.stored, CHANGE)}),
            recomputed=recomputed,
            expired=expired,
            shown=None if self.operator.spec.having else view.changed(changed.rows),
            is_projection=True,
        )

    def _net(self, local: GroupReads | None) -> Mapping[str, DataFrame]:
        if local is None:
            return self.changes()
        return {n: net(feed, self.operator.columns(n)) for n, feed in local.feeds.items()}

    def _mended(self, groups: Held) -> tuple[Held, int | None]:
        """Return the groups with broken ones recomputed, and the number of those."""
        if not self.operator.breaking:
            return groups, None
        broken = groups.where(has_elements(BROKEN))
        count, streams = broken.elements(BROKEN)
        if not count:
            return groups, 0
        rows = broken.rows
        again = self._recomputed_streams(streams, rows, broken.table)
        whole = changed_groups(
            self.operator, mended(self.operator, rows, streams, again), self.alive
        )
        return groups.where(~has_elements(BROKEN)).beside(whole), count

    def _recomputed_streams(
        self, streams: frozenset[str], groups: DataFrame, here: pa.Table | None
    ) -> DataFrame:
        """Recompute the broken streams' state rows from their inputs. `here`: the same groups."""
        part = self.operator.only(streams)
        touched = groups.select(*names(self.operator.group))
        if here is not None and (rows := few_rows(self, part, here)):
            return part.recompute(rows, {}, touched)
        return part.recompute(self.snapshots(part), {}, touched, self.bounds(touched, part))
