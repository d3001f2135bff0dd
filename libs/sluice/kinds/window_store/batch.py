"""Batches of a window store: they file new rows in slices by what the store holds already."""

from functools import cached_property

from pyspark.sql import functions as F

from sluice.changes.net import arrivals
from sluice.delta.log.opened import opened
from sluice.delta.writing.filing import slices_of
from sluice.engine.computing.batch import Batch
from sluice.kinds.window_store.cuts import Cuts
from sluice.kinds.window_store.grain import Grain
from sluice.kinds.window_store.operator import WindowStoreRows


class StoreBatch(Batch[WindowStoreRows]):
    """One batch of a window store."""

    @cached_property
    def operator(self) -> WindowStoreRows:
        """The store's operator, with the cuts that hold for this batch."""
        store = self.plan.node.operator
        assert isinstance(store, WindowStoreRows)
        if store.retention:
            return store
        most = self.context.limits.slice_rows
        return store.cut(Cuts.of(self._stored(), self._arriving(store), most))

    def _stored(self) -> dict[int, int]:
        """Return the store's rows by slice."""
        before = self.plan.before
        slices = slices_of(opened(before.uri, before.version)) if before else []
        return {s.number: s.row_count for s in slices if s.number is not None}

    def _arriving(self, store: WindowStoreRows) -> dict[int, int]:
        """Count a large batch's rows by month. One Spark job."""
        rows = self.plan.size.rows
        if rows is not None and rows <= self.context.limits.unordered_rows:
            return {}
        (source,) = store.inputs
        given = self.snapshots(store) if self.is_whole else self.changes(store)
        if source not in given:
            return {}
        new = given[source] if self.is_whole else arrivals(given[source])
        month = store.number(Grain.MONTH).alias("month")
        counted = store.prepare(source, new).groupBy(month).agg(F.count(F.lit(1)).alias("rows"))
        return {row["month"]: row["rows"] for row in counted.collect()}
