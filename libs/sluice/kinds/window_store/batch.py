"""Batches of a window store, and the upkeep of its files.

Without a retention, batches file new rows in slices by what the store holds already. With one, a
batch also deletes the rows that its horizon has passed, and brings back those that a fallen horizon
shows again. Cost: files with such rows, which scans find by their times. Upkeep seals closed
slices, and keeps the files of open ones few.
"""

from datetime import datetime
from functools import cached_property

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluice.changes import arrivals, deletions, departures, diff, insertions
from sluice.declare.meaning import definition
from sluice.declare.table import Graph, Table
from sluice.delta.log.opened import open_version
from sluice.delta.reading.local import few_rows
from sluice.delta.upkeep.maintenance import Filing
from sluice.delta.writing.filing import Slice, is_in_order, slices_of
from sluice.engine.committing import Kept
from sluice.engine.computing.batch import Batch, Reread, touched_by_feeds
from sluice.engine.computing.batch_plan import BatchPlan, BatchResult, Strategy
from sluice.engine.context import Context
from sluice.engine.planning.nodes import Node
from sluice.engine.query import windows
from sluice.engine.query.operator import InputRows, union
from sluice.engine.query.windows import Horizon
from sluice.kinds.window_store.operator import PART, WindowStoreRows
from sluice.kinds.window_store.slices import Cuts, Grain, in_time


class StoreBatch(Batch[WindowStoreRows]):
    """One batch of a window store."""

    @cached_property
    def operator(self) -> WindowStoreRows:
        """The store's operator, with the cuts that hold for this batch."""
        store = self.plan.node.operator
        assert isinstance(store, WindowStoreRows)
        if store.retention:
            return store
        most = StoreKept.tidied_rows
        return store.cut(Cuts.of(self._stored(), self._arriving(store), most))

    @classmethod
    def rereads(cls, context: Context, plan: BatchPlan) -> tuple[Reread, ...]:
        """Return the touched groups, or the rows that may expire."""
        if plan.strategy != Strategy.ROW_WISE or plan.node.operator.retention is None:
            return super().rereads(context, plan)
        return (Reread(plan.node.id, (), touched_by_feeds, is_sure=False),)

    def compute_changes(self) -> BatchResult:
        horizon = self.horizon
        times = [time for time in (horizon.before, horizon.now) if time] if horizon else []
        if self.plan.strategy != Strategy.ROW_WISE or horizon is None or not times:
            return super().compute_changes()
        return self._slid(horizon, horizon.retention.keep.before(max(times)))

    def pick_needed(self, snapshots: InputRows) -> InputRows:
        """Leave out expired rows, by a literal with which a scan skips files."""
        if self.horizon is None or self.horizon.now is None:
            return snapshots
        time = F.col(f"`{self.operator.spec.time}`").cast("timestamp")
        expired = F.lit(self.horizon.retention.keep.before(self.horizon.now))
        return {name: rows.where(time > expired) for name, rows in snapshots.items()}

    def _slid(self, horizon: Horizon, last: datetime) -> BatchResult:
        """Compute each changed row by itself, and rows that the horizon has passed, up or down.

        Rows that start after `last` live by the horizons before and now. Of the others, the table
        has those that expire, and the input those that return.
        """
        store, is_passed = self.operator, F.col(windows.START) <= F.lit(last)
        ((name, change),) = self.changes().items()
        new = self._rows_of(name, arrivals(change)).where(~is_passed)
        is_growing = self.plan.growing == {name}
        if is_growing:
            changelog = insertions(new)
        else:
            old = self._rows_of(name, departures(change)).where(~is_passed)
            changelog = diff(old, new, store.key)
        passed = self._stored_until(last).where(is_passed).select(*new.columns)
        if horizon.has_fallen:
            back = self._rows_of(name, self._given_until(name, last)).where(is_passed)
            passed = diff(passed, self.living(back), store.key)
        else:
            passed = deletions(passed)
        late = self.count_late([store.prepare(name, change)])
        return BatchResult(union([changelog, passed]), expired=late, is_projection=is_growing)

    def _rows_of(self, name: str, rows: DataFrame) -> DataFrame:
        """Return what the store would hold of an input's rows, with expired rows left in."""
        return self.operator.combine({name: self.operator.prepare(name, rows)}, {})

    def _stored_until(self, last: datetime) -> DataFrame:
        """Return at least the store's rows that start by `last`."""
        before, limits = self.plan.before, self.context.limits
        assert before is not None
        where = pc.field(windows.START) <= pc.scalar(last)
        few = few_rows(self.session, self.plan.uri, before.version, where, limits)
        return self.current() if few is None else few

    def _given_until(self, name: str, last: datetime) -> DataFrame:
        """Return at least the input's rows with a time by `last`."""
        store, few = self.operator, None
        if store.source.type_of(store.spec.time) == "TIMESTAMP":
            uri, version = self.context.lake.uri(name), self.plan.pins[name].version
            where = pc.field(store.spec.time) <= pc.scalar(last)
            few = few_rows(self.session, uri, version, where, self.context.limits)
        return self.snapshots()[name] if few is None else few

    def _stored(self) -> dict[int, int]:
        before = self.plan.before
        slices = slices_of(open_version(before.uri, before.version)) if before else []
        return {s.number: s.row_count for s in slices if s.number is not None}

    def _arriving(self, store: WindowStoreRows) -> dict[int, int]:
        """Count a large batch's rows by month. One Spark job."""
        rows = self.plan.size.rows
        if rows is not None and rows <= Slice.unordered_rows:
            return {}
        (source,) = store.inputs
        given = self.snapshots(store) if self.is_whole else self.changes(store)
        if source not in given:
            return {}
        new = given[source] if self.is_whole else arrivals(given[source])
        month = store.number(Grain.MONTH).alias("month")
        counted = store.prepare(source, new).groupBy(month).agg(F.count(F.lit(1)).alias("rows"))
        return {row["month"]: row["rows"] for row in counted.collect()}


class StoreKept(Kept):
    """Table of a window store."""

    tidied_rows = 100_000  # of a slice without retention; beyond, its time is cut finer
    slice_files = 12  # at which a slice is filed again

    def find_unsealed(self, filing: Filing) -> list[Slice]:
        """Return older slices that are not one or a few sorted files, because rows came late."""
        by_time = sorted(filing.slices, key=lambda s: in_time(s.number or 0))
        return [s for s in by_time[:-1] if self._is_unsealed(s)]

    def _is_crowded(self, slice_: Slice) -> bool:
        most = slice_.usual_files(self.limits) - 1 + self.slice_files
        return len(slice_.paths) >= most or slice_.is_worn

    def _is_unsealed(self, slice_: Slice) -> bool:
        if len(slice_.paths) > slice_.usual_files(self.limits):
            return True
        if slice_.is_small:
            return False
        return not is_in_order(self.uri, slice_.paths, self.order[0].column)


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the view itself."""
    (source,) = graph.inputs(table.id)
    rows = WindowStoreRows(table, source)
    made, filed = definition(table), (PART,)
    return (
        Node(table.id, table, rows, made, StoreBatch, StoreKept, partition_by=filed, ignored=filed),
    )
