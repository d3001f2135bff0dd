"""Window store: rows by key and event time, for reading newest first, and the upkeep of its files.

After KIP-617 (Kafka Streams' backward iteration). The event time is the window start, never
truncated. Without `duplicates`, each (key, window start) has one row: the last by `sequence`, else
by the input's key. Rows without an event time are in no window.

Rows are filed in time slices, and within a slice by key, the newest of a key first. The slice of a
row is not part of its content.

A read of the newest rows opens the newest slice, and a read of a rare key opens every one. Expired
rows leave a whole slice at a time. Slices are therefore as short as possible without becoming too
many: by the retention, or, without one, finer where a period has many rows.

Without a retention, batches file new rows in slices by what the store holds already. With one, a
batch also deletes the rows that its horizon has passed, and brings back those that a fallen horizon
shows again. Cost: files with such rows, which scans find by their times. Upkeep seals closed
slices, and keeps the files of open ones few.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from functools import cached_property, reduce

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from sluice.changes import (
    Direction,
    arrivals,
    deletions,
    departures,
    diff,
    insertions,
    last_first,
    sort_key,
)
from sluice.declare.meaning import definition
from sluice.declare.table import Graph, Table
from sluice.declare.table_spec import END, START
from sluice.delta.log.opened import open_version
from sluice.delta.reading.local import snapshot_if_few
from sluice.delta.upkeep.maintenance import Filing
from sluice.delta.writing.filing import Slice, is_in_order, slices_of
from sluice.engine import windows
from sluice.engine.batch import Batch, Reread, touched_by_feeds
from sluice.engine.batch_plan import BatchPlan, BatchResult, Context, Strategy
from sluice.engine.operator import InputRows, Operator, Retention, hidden_columns, names, union
from sluice.engine.plan import Node
from sluice.engine.upkeep import Kept
from sluice.engine.windows import Horizon
from sluice.kinds.window_store import WindowStore
from sluice.language.interval import Duration

MOST = 100  # slices in a retention: each is a file that a read of a rare key opens
LEAST_WINDOWS = 24  # windows that share a slice
DAY = timedelta(days=1)
LAST_YEAR, LAST_MONTH = 9999, 999912  # the greatest slice numbers of these lengths
FIRST_DAY = 10_000_000
PART = "_sluice_part"


class WindowStoreRows(Operator):
    """The rows of the store, each with the slice in which it is filed."""

    def __init__(self, view: Table, source: Table):
        assert isinstance(view.spec, WindowStore)
        self.view, self.source, self.spec = view, source, view.spec
        self.inputs = (source.id,)
        self.key = view.key
        self.group = view.key if self.spec.duplicates else (*self.spec.key, START)
        self.grain = Grain.of(self.spec.window, self.spec.retention)
        self.cuts: Cuts | None = None
        # True if no two rows of the input have the same key and time.
        is_single = bool(source.key) and {*source.key} <= {*self.spec.key, self.spec.time}
        self.row_wise = self.mirror = self.spec.duplicates or is_single
        if self.spec.retention:
            times = {source.id: (self.spec.time,)}
            self.retention = Retention(self.spec.retention, times, end=START)
            self.key = (*view.key, PART)  # slices never change, so a commit opens few of them

    @property
    def file_order(self) -> tuple[Direction, ...]:
        hidden = (c for c in self.view.key if c not in (*self.spec.key, START))
        newest_first = Direction(START, descending=True)
        return (*map(Direction, self.spec.key), newest_first, *map(Direction, hidden))

    def columns(self, name: str) -> tuple[str, ...]:
        used = {*self.source.key, *self.spec.key, self.spec.time}
        if self.spec.where:
            used |= self.spec.where.reads(self.source.columns)
        for order in self.spec.sequence:
            used |= order.expression.reads(self.source.columns)
        for column in self.view.columns:
            if self.spec.select and column in self.spec.select:
                used |= self.spec.select[column].reads(self.source.columns)
            elif column in self.source.columns:
                used.add(column)
        return tuple(sorted(used))

    def map_to_group(self, name: str) -> Sequence[Mapping[str, str]]:
        found = {column: column for column in self.spec.key if column in self.source.columns}
        if self.source.type_of(self.spec.time) == "TIMESTAMP":
            found[self.spec.time] = START
        return [found] if found else ()

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        met = rows.where(self.spec.where.sql) if self.spec.where else rows
        timed = met.where(F.col(f"`{self.spec.time}`").isNotNull())
        start = F.col(f"`{self.spec.time}`").cast("timestamp").alias(START)
        clashing = START in rows.columns
        kept = [F.col(f"`{c}`") for c in rows.columns if c != START] if clashing else ["*"]
        hidden = hidden_columns(self.view, self.source, rows.columns)
        return timed.select(*kept, start, *hidden)

    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        rows = prepared[self.source.id]
        if not self.row_wise:
            rows = self.last_of_each(rows)
        shown = [self._show(c) for c in self.view.columns]
        hidden = tuple(c for c in self.view.key if c not in self.view.columns)
        return rows.select(*shown, *names(hidden), self._slice().alias(PART))

    def cut(self, cuts: "Cuts") -> "WindowStoreRows":
        """Return the same operator, which files rows by these cuts."""
        other = copy(self)
        other.cuts = cuts
        return other

    def number(self, grain: "Grain") -> Column:
        """Return the number of the row's slice: 20170514 for a day, 201705 for a month."""
        parts = [part(START) for part in (F.year, F.month, F.day, F.hour)]
        return reduce(lambda a, b: a * 100 + b, parts[:grain]).cast("bigint")

    def _slice(self) -> Column:
        """Return the number of the row's slice: the longest that is not cut."""
        slice_ = self.number(self.grain)
        for grain in reversed(Grain):
            if self.cuts and grain < self.grain:
                whole, cut = self.number(grain), sorted(self.cuts.at(grain))
                slice_ = F.when(whole.isin(cut), slice_).otherwise(whole) if cut else whole
        return slice_

    def last_of_each(self, rows: DataFrame) -> DataFrame:
        """Return the row that represents each key and time, from whole groups' prepared rows."""
        sequence = [
            sort_key(F.expr(k.expression.sql), not k.descending, not k.nulls_first)
            for k in self.spec.sequence
        ]
        over = Window.partitionBy(*names(self.group)).orderBy(
            *sequence, *last_first(self.source.key)
        )
        return rows.withColumn("_last", F.row_number().over(over)).where("_last = 1").drop("_last")

    def _show(self, name: str) -> Column:
        if name == END and self.spec.window:
            return windows.plus(F.col(START), self.spec.window).alias(name)
        if self.spec.select and name in self.spec.select:
            return F.expr(self.spec.select[name].sql).alias(name)
        return F.col(f"`{name}`")


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
        store, is_passed = self.operator, F.col(START) <= F.lit(last)
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
            passed = diff(passed, self.keep_living(back), store.key)
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
        where = pc.field(START) <= pc.scalar(last)
        few = snapshot_if_few(self.session, self.plan.uri, before.version, where, limits)
        return self.current() if few is None else few

    def _given_until(self, name: str, last: datetime) -> DataFrame:
        """Return at least the input's rows with a time by `last`."""
        store, few = self.operator, None
        if store.source.type_of(store.spec.time) == "TIMESTAMP":
            uri, version = self.context.lake.uri(name), self.plan.pins[name].version
            where = pc.field(store.spec.time) <= pc.scalar(last)
            few = snapshot_if_few(self.session, uri, version, where, self.context.limits)
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


class Grain(IntEnum):
    """Length of a slice; its value is how many calendar parts form a slice's number."""

    YEAR = 1
    MONTH = 2
    DAY = 3
    HOUR = 4

    @classmethod
    def of(cls, window: Duration | None, retention: Duration | None) -> "Grain":
        """Return the shortest grain with at most 100 slices in the retention.

        Without a retention, return a day, or the shortest longer grain that holds 24 windows; at
        most a year.
        """
        if retention:
            fits = (g for g in reversed(cls) if retention.longest <= MOST * g.shortest)
        else:
            length = window.longest if window else timedelta()
            fits = (g for g in (cls.DAY, cls.MONTH) if LEAST_WINDOWS * length <= g.longest)
        return next(iter(fits), cls.YEAR)

    @property
    def shortest(self) -> timedelta:
        """Least time that a slice spans."""
        return {1: 365 * DAY, 2: 28 * DAY, 3: DAY, 4: timedelta(hours=1)}[self.value]

    @property
    def longest(self) -> timedelta:
        """Most time that a slice spans."""
        return {1: 366 * DAY, 2: 31 * DAY}.get(self.value, self.shortest)


@dataclass(frozen=True)
class Cuts:
    """Numbers of the years and months that a store without a retention cuts into finer slices.

    A year is one slice until it has many rows. From then on, its rows go into slices of months, and
    those of a full month into slices of days. Rows stay in the slice that they were filed in. So
    there are few slices of few rows, and none grows far beyond a batch more than the limit.
    """

    years: frozenset[int] = field(default_factory=frozenset)
    months: frozenset[int] = field(default_factory=frozenset)

    @classmethod
    def of(cls, stored: Mapping[int, int], arriving: Mapping[int, int], most: int) -> "Cuts":
        """Return the cuts of a store: periods with finer slices, or with more than `most` rows.

        `stored`: rows by slice. `arriving`: a large batch's rows by month.
        """
        # Without its last two digits, the number of a day is its month's, and that its year's.
        finer = {number // 100 for number in stored if number > LAST_MONTH}
        in_months = {n: rows for n, rows in stored.items() if LAST_YEAR < n <= LAST_MONTH}
        in_years = {n: rows for n, rows in stored.items() if n <= LAST_YEAR}
        by_year = Counter[int]()
        for month, rows in arriving.items():
            by_year[month // 100] += rows
        years = {month // 100 for month in (*finer, *in_months)}
        return cls(
            frozenset(years | _find_full(in_years, by_year, most)),
            frozenset(finer | _find_full(in_months, arriving, most)),
        )

    def at(self, grain: Grain) -> frozenset[int]:
        """Return the periods of a length that are cut."""
        return {Grain.YEAR: self.years, Grain.MONTH: self.months}.get(grain, frozenset())


def in_time(number: int) -> int:
    """Return the start of a slice, by which slices of any length can be sorted."""
    while 0 < number < FIRST_DAY:
        number *= 100
    return number


def _find_full(stored: Mapping[int, int], arriving: Mapping[int, int], most: int) -> set[int]:
    together = Counter(stored)
    together.update(arriving)
    return {number for number, rows in together.items() if rows > most}
