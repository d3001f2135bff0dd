"""Aggregates that keep values: the least, greatest, first or last one, or all as a list or set.

Of one that is kept, an added row is compared with it. A removed row breaks the group, unless it is
strictly inside the bound or an added row takes its place.

A list keeps its rows' order keys and input keys with the values, so that a removed row is found.
Sets keep the number of rows of each value. So no removal breaks their groups. Cost: a touched
group's whole state is read and written.
"""

from abc import abstractmethod
from typing import ClassVar

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from sluice.kinds.cogroup.accumulator import (
    CAME,
    GONE,
    KEPT,
    LISTED,
    Accumulator,
    ElementOrder,
    bag,
    compare,
    grown,
    is_natural,
    joined,
    ordered_by,
    remaining,
)


class Extreme(Accumulator):
    """The foremost of the rows that count; subclasses define the order."""

    can_break: ClassVar[bool] = True

    def gather(self, weight: Column, value: DataType) -> Column:
        came, gone = self._foremost(weight > 0), self._foremost(weight < 0)
        return F.struct(came.alias("came"), gone.alias("gone"))

    def settle(self, was: Column | None, delta: Column, kept: DataType) -> Column:
        came = delta.getField("came")
        if was is None:
            return came
        return F.when(was.isNull() | self._reaches(came, was), came).otherwise(was)

    def breaks(self, was: Column, delta: Column) -> Column:
        came, gone = delta.getField("came"), delta.getField("gone")
        is_inside = self._reaches(was, gone) & ~self._reaches(gone, was)
        return gone.isNotNull() & ~is_inside & ~self._reaches(came, was)

    def _reaches(self, a: Column, b: Column) -> Column:
        """True if `a` is before `b` or beside it; false if one is null."""
        return F.coalesce(a.isNotNull() & b.isNotNull() & self._is_at_or_before(a, b), F.lit(False))

    @abstractmethod
    def _foremost(self, condition: Column) -> Column:
        """Return an aggregate expression: the foremost prepared row that meets the condition."""

    @abstractmethod
    def _is_at_or_before(self, a: Column, b: Column) -> Column: ...


class Bound(Extreme):
    """The least or the greatest value."""

    def finish(self, state: Column, kept: DataType) -> Column:
        return state

    def _foremost(self, condition: Column) -> Column:
        values = F.when(condition, self.value)
        return F.min(values) if self.aggregate.function == "min" else F.max(values)

    def _is_at_or_before(self, a: Column, b: Column) -> Column:
        return a <= b if self.aggregate.function == "min" else a >= b


class End(Extreme):
    """The first or the last row by the declared order, ended by the input's key.

    The state is the row's order keys, its input key and its value, which may be null.
    """

    def finish(self, state: Column, kept: DataType) -> Column:
        return state.getField("v")

    @property
    def _is_first(self) -> bool:
        return self.aggregate.function == "first"

    def _foremost(self, condition: Column) -> Column:
        order = order_of(self)
        if is_natural(order):
            keys = F.struct(*[self.row.getField(field) for field, _, _ in order])
            by = F.when(condition & self.row.isNotNull(), keys)
            return F.min_by(self.row, by) if self._is_first else F.max_by(self.row, by)
        rows = F.array_sort(
            F.collect_list(F.when(condition, self.row)), lambda a, b: compare(a, b, order)
        )
        return F.try_element_at(rows, F.lit(1 if self._is_first else -1))

    def _is_at_or_before(self, a: Column, b: Column) -> Column:
        found = compare(a, b, order_of(self))
        return found <= 0 if self._is_first else found >= 0


def order_of(accumulator: Accumulator) -> ElementOrder:
    """Return the declared order of the argument's fields, ended by the input's key."""
    keys = enumerate(accumulator.aggregate.order_by)
    declared = [(f"o{i}", k.descending, k.nulls_first) for i, k in keys]
    return [*declared, *[(f"k{i}", False, True) for i in range(len(accumulator.used_ties))]]


class Listed(Accumulator):
    """collect_list: the values that are not null, in the declared order."""

    weight: ClassVar[int] = LISTED

    def gather(self, weight: Column, value: DataType) -> Column:
        tag = F.when(weight > 0, CAME).otherwise(GONE)
        fields = [self.row.getField(f).alias(f) for f in self._fields]
        rows = F.struct(*fields, tag.alias("t"), self.value.alias("v"))
        return F.collect_list(F.when(self.value.isNotNull(), rows))

    def settle(self, was: Column | None, delta: Column, kept: DataType) -> Column:
        if was is None:
            rows = ordered_by(delta, order_of(self), kept)
        else:
            old = F.transform(was, lambda row: self._row(row, F.lit(KEPT).alias("t")))
            rows = remaining(joined(old, delta), order_of(self), kept)
        # A client of Spark Connect accepts no function with variable arguments.
        untagged = F.transform(rows, lambda row: self._row(row))  # noqa: PLW0108
        settled = F.when(F.size(untagged) > 0, untagged)
        return settled if was is None else F.when(_is_empty(delta), was).otherwise(settled)

    def finish(self, state: Column, kept: DataType) -> Column:
        return F.coalesce(F.transform(state, lambda row: row.getField("v")), F.array())

    @property
    def _fields(self) -> list[str]:
        return [field for field, _, _ in order_of(self)]

    def _row(self, row: Column, *tag: Column) -> Column:
        fields = [row.getField(f).alias(f) for f in self._fields]
        return F.struct(*fields, *tag, row.getField("v").alias("v"))


def counted(value: Column, weight: Column) -> Column:
    """Return the values that are not null as structs (v, n), for `bag`."""
    entry = F.struct(value.alias("v"), weight.cast("bigint").alias("n"))
    return F.collect_list(F.when(value.isNotNull(), entry))


class Counted(Accumulator):
    """Each value that is not null, with its number of rows, in the values' order."""

    weight: ClassVar[int] = LISTED

    def gather(self, weight: Column, value: DataType) -> Column:
        return counted(self.value, weight)

    def settle(self, was: Column | None, delta: Column, kept: DataType) -> Column:
        values = bag(delta) if was is None else grown(was, delta)
        settled = F.when(F.size(values) > 0, values)
        return settled if was is None else F.when(_is_empty(delta), was).otherwise(settled)


class Collected(Counted):
    """collect_set: each value once, in order."""

    def finish(self, state: Column, kept: DataType) -> Column:
        return F.coalesce(F.transform(state, lambda entry: entry.getField("v")), F.array())


class CountDistinct(Counted):
    """count_distinct: the number of different values."""

    def finish(self, state: Column, kept: DataType) -> Column:
        return F.when(state.isNull(), 0).otherwise(F.size(state)).cast("bigint")


class Frequent(Counted):
    """approx_top_k: the most frequent values, the most frequent first, with their counts.

    Counts of at most `tracked` values are kept (Misra and Gries 1982). They are exact up to that
    number of values. Beyond it, they are too low by at most `error`, which is at most a
    `tracked`-th of the rows.
    """

    can_break: ClassVar[bool] = True
    is_approximate: ClassVar[bool] = True

    @property
    def _tracked(self) -> int:
        return int(self.aggregate.parameters[1]) if len(self.aggregate.parameters) > 1 else 10_000

    def settle(self, was: Column | None, delta: Column, kept: DataType) -> Column:
        every = delta if was is None else joined(was.getField("items"), delta)
        error = F.lit(0) if was is None else F.coalesce(was.getField("error"), F.lit(0))
        values = bag(every)
        surplus = F.sort_array(F.transform(values, lambda e: e.getField("n")), asc=False)
        cut = F.coalesce(F.get(surplus, F.lit(self._tracked)), F.lit(0).cast("bigint"))
        lowered = F.transform(
            values,
            lambda e: F.struct(e.getField("v").alias("v"), (e.getField("n") - cut).alias("n")),
        )
        items = F.filter(lowered, lambda e: e.getField("n") > 0)
        state = F.struct(items.alias("items"), (error + cut).cast("bigint").alias("error"))
        return F.when((F.size(items) > 0) | (error + cut > 0), state)

    def breaks(self, was: Column, delta: Column) -> Column:
        went = F.exists(delta, lambda e: e.getField("n") < 0)
        return F.coalesce(went & (was.getField("error") > 0), F.lit(False))

    def agrees(self, a: Column, b: Column, kept: DataType) -> Column:
        error = F.greatest(a.getField("error"), b.getField("error"))

        def is_near(entries: Column, others: Column) -> Column:
            counts = F.map_from_entries(others.getField("items"))
            return F.forall(
                entries.getField("items"),
                lambda e: F.abs(e.getField("n") - _count_in(counts, e.getField("v"))) <= error,
            )

        return a.eqNullSafe(b) | F.coalesce(is_near(a, b) & is_near(b, a), F.lit(False))

    def finish(self, state: Column, kept: DataType) -> Column:
        most = self.aggregate.parameters[0] if self.aggregate.parameters else 5
        by_count = F.array_sort(
            F.transform(
                state.getField("items"),
                lambda e: F.struct((-e.getField("n")).alias("n"), e.getField("v").alias("v")),
            )
        )
        return F.transform(
            F.slice(by_count, 1, int(most)),
            lambda e: F.struct(e.getField("v").alias("item"), (-e.getField("n")).alias("count")),
        )


def _count_in(counts: Column, value: Column) -> Column:
    return F.coalesce(F.try_element_at(counts, value), F.lit(0).cast("bigint"))


def _is_empty(delta: Column) -> Column:
    return delta.isNull() | (F.size(delta) == 0)
