"""Aggregates of values and their frequencies: mode, percentiles, variances.

They are computed from the sorted values, so rounding never accumulates: no digit depends on the
order of arrival, or on rows that were added and removed. The state is that of `collect_set`; no
removal breaks a group. Cost: a touched group's distinct values are read and written.
"""

from collections.abc import Callable
from functools import reduce
from operator import mul

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from sluice.kinds.cogroup.aggregates.arrays import let
from sluice.kinds.cogroup.aggregates.collected import Counted, counted
from sluice.kinds.cogroup.aggregates.sums import is_float

MEDIAN = 0.5


class Statistic(Counted):
    """Values with their counts; the two zeros of floating point are one value."""

    def gather(self, weight: Column, value: DataType) -> Column:
        zero = F.lit(0.0).cast(value)
        return counted(self.value + zero if is_float(value) else self.value, weight)


class Mode(Statistic):
    """The most frequent value; of several, the least."""

    def finish(self, state: Column, kept: DataType) -> Column:
        ranked = F.transform(
            state,
            lambda e, i: F.struct(
                e.getField("n").alias("n"), (-i).alias("i"), e.getField("v").alias("v")
            ),
        )
        return F.array_max(ranked).getField("v")


class Percentile(Statistic):
    """The value at a rank from 0 to 1, on the line between its two neighbours: DOUBLE."""

    def finish(self, state: Column, kept: DataType) -> Column:
        wanted = self.aggregate.parameters[0] if self.aggregate.parameters else MEDIAN
        if isinstance(wanted, tuple):
            found = F.array(*[_at_rank(state, float(rank)) for rank in wanted])
            return F.when(state.isNotNull(), found)
        return _at_rank(state, float(wanted))


class Spread(Statistic):
    """Variance and standard deviation, of a population or a sample: DOUBLE.

    A sample of one value has none. The values are read twice: first for their mean, then for their
    distance from it.
    """

    def finish(self, state: Column, kept: DataType) -> Column:
        function = self.aggregate.function
        number = _size(state)
        mean = _sum(state, lambda v: v) / number
        squares = let(mean, lambda m: _sum(state, lambda v: (v - m) * (v - m)))
        free = number - 1 if function.endswith("_samp") else number
        variance = F.when(free > 0, squares / free)
        return F.sqrt(variance) if function.startswith("stddev") else variance


class HigherMoments(Statistic):
    """Skewness and excess kurtosis of a population: DOUBLE, and null of a single value."""

    def finish(self, state: Column, kept: DataType) -> Column:
        number = _size(state)
        mean = _sum(state, lambda v: v) / number

        def moment(power: int) -> Column:
            return let(mean, lambda m: _sum(state, lambda v: reduce(mul, [v - m] * power)))

        squares = moment(2)
        if self.aggregate.function == "skewness":
            shape = F.sqrt(number / squares) * moment(3) / squares
        else:
            shape = number * moment(4) / (squares * squares) - F.lit(3.0)
        return F.when(F.size(state) > 1, shape)


def _size(state: Column) -> Column:
    zero = F.lit(0).cast("bigint")
    return F.aggregate(state, zero, lambda total, e: total + e.getField("n"))


def _sum(state: Column, of: Callable[[Column], Column]) -> Column:
    """Add up the results of `of` for the values as DOUBLE, in their order."""

    def added(total: Column, e: Column) -> Column:
        return total + of(e.getField("v").cast("double")) * e.getField("n")

    return F.aggregate(state, F.lit(0.0), added)


def _at_rank(state: Column, rank: float) -> Column:
    def between(position: Column) -> Column:
        low, high = F.floor(position), F.ceil(position)
        below, above = _at(state, low), _at(state, high)
        line = (high - position) * below + (position - low) * above
        return F.when(below.eqNullSafe(above), below).otherwise(line)

    return let((_size(state) - 1) * F.lit(rank), between)


def _at(state: Column, place: Column) -> Column:
    """Return the value at a place, from 0 on, with each value repeated as often as it occurs."""

    def step(reached: Column, e: Column) -> Column:
        passed = reached.getField("passed") + e.getField("n")
        is_here = (reached.getField("passed") <= place) & (place < passed)
        value = F.when(is_here, e.getField("v").cast("double")).otherwise(reached.getField("v"))
        return F.struct(passed.alias("passed"), value.alias("v"))

    start = F.struct(F.lit(0).cast("bigint").alias("passed"), F.lit(None).cast("double").alias("v"))
    return F.aggregate(state, start, step, lambda reached: reached.getField("v"))
