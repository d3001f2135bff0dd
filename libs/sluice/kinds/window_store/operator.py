"""Window store: rows by key and event time, for reading newest first.

After KIP-617 (Kafka Streams' backward iteration). The event time is the window start, never
truncated. Without `duplicates`, each (key, window start) has one row: the last by `sequence`, else
by the input's key. Rows without an event time are in no window.

Rows are filed in time slices, and within a slice by key, the newest of a key first. The slice of a
row is not part of its content.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from sluice.changes import Direction, last_first, sort_key
from sluice.declare.table import Table
from sluice.engine.query import windows
from sluice.engine.query.operator import (
    Groups,
    InputRows,
    Operator,
    Retention,
    hidden_columns,
    names,
)
from sluice.kinds.window_store.slices import Cuts, Grain
from sluice.kinds.window_store.spec import WindowStore

PART = "_sluice_part"


class WindowStoreRows(Operator):
    """The rows of the store, each with the slice in which it is filed."""

    def __init__(self, view: Table, source: Table):
        assert isinstance(view.spec, WindowStore)
        self.view, self.source, self.spec = view, source, view.spec
        self.inputs = (source.id,)
        self.key = view.key
        self.group = view.key if self.spec.duplicates else (*self.spec.key, windows.START)
        self.grain = Grain.of(self.spec.window, self.spec.retention)
        self.cuts: Cuts | None = None
        # True if no two rows of the input have the same key and time.
        is_single = bool(source.key) and {*source.key} <= {*self.spec.key, self.spec.time}
        self.row_wise = self.mirror = self.spec.duplicates or is_single
        if self.spec.retention:
            times = {source.id: (self.spec.time,)}
            self.retention = Retention(self.spec.retention, times, end=windows.START)
            self.key = (*view.key, PART)  # slices never change, so a commit opens few of them

    @property
    def file_order(self) -> tuple[Direction, ...]:
        hidden = (c for c in self.view.key if c not in (*self.spec.key, windows.START))
        newest_first = Direction(windows.START, descending=True)
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
            found[self.spec.time] = windows.START
        return [found] if found else ()

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        met = rows.where(self.spec.where.sql) if self.spec.where else rows
        timed = met.where(F.col(f"`{self.spec.time}`").isNotNull())
        start = F.col(f"`{self.spec.time}`").cast("timestamp").alias(windows.START)
        clashing = windows.START in rows.columns
        kept = [F.col(f"`{c}`") for c in rows.columns if c != windows.START] if clashing else ["*"]
        hidden = hidden_columns(self.view, self.source, rows.columns)
        return timed.select(*kept, start, *hidden)

    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        rows = prepared[self.source.id]
        if not self.row_wise:
            rows = self.last_of_each(rows)
        shown = [self._show(c) for c in self.view.columns]
        hidden = tuple(c for c in self.view.key if c not in self.view.columns)
        return rows.select(*shown, *names(hidden), self._slice().alias(PART))

    def cut(self, cuts: Cuts) -> "WindowStoreRows":
        """Return the same operator, which files rows by these cuts."""
        other = copy(self)
        other.cuts = cuts
        return other

    def number(self, grain: Grain) -> Column:
        """Return the number of the row's slice: 20170514 for a day, 201705 for a month."""
        parts = [part(windows.START) for part in (F.year, F.month, F.day, F.hour)]
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
        if name == windows.END and self.spec.window:
            return windows.plus(F.col(windows.START), self.spec.window).alias(name)
        if self.spec.select and name in self.spec.select:
            return F.expr(self.spec.select[name].sql).alias(name)
        return F.col(f"`{name}`")


def trace_rows(operator: Operator, groups: Groups) -> InputRows:
    """Return the input's row that represents each group."""
    assert isinstance(operator, WindowStoreRows)
    if operator.row_wise:
        return groups.prepared
    return {name: operator.last_of_each(found) for name, found in groups.prepared.items()}
