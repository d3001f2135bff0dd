"""Aggregates that keep one row of the group: min and max, first and last by an order.

Added rows are compared with the kept one. A removed row breaks the group, unless it is strictly
inside the bound or an added row takes its place.
"""

from abc import abstractmethod
from typing import ClassVar

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from sluice.kinds.cogroup.aggregates.accumulator import Accumulator
from sluice.kinds.cogroup.aggregates.arrays import ElementOrder, compare, is_natural


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
