"""Aggregates of numbers: counts, sums, averages, any and every; mode, percentiles, variances.

The state of a sum has the number of values in it, too. No removal breaks a group.

Sums of floating point don't depend on order, so added numbers can be subtracted: they are summed as
DECIMAL and rounded once. NaN and the infinities, which a DECIMAL can't hold, are counted
separately. A sum that needs more than 20 digits before the point is an error.

Statistics are computed from the sorted values, so rounding never accumulates: no digit depends on
the order of arrival, or on rows that were added and removed. Their state is that of `collect_set`;
no removal breaks a group. Cost: a touched group's distinct values are read and written.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from operator import mul
from typing import ClassVar

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, DoubleType, FloatType, LongType, StructType

from sluice.kinds.cogroup.accumulator import Accumulator, let
from sluice.kinds.cogroup.collected import Counted, counted

_COUNTED, _MAGNITUDE = "n", "magnitude"
_FACTOR_DIGITS = 17  # a DECIMAL of no more digits keeps all its places times a BIGINT


class Count(Accumulator):
    """The number of values: BIGINT."""

    def gather(self, weight: Column, value: DataType) -> Column:
        return _count(self.value.isNotNull(), weight)

    def merge(self, was: Column, delta: Column, kept: DataType) -> tuple[Column | None, Column]:
        return None, F.sum(F.coalesce(was, delta)).cast(kept)

    def settle(self, was: Column | None, delta: Column, kept: DataType) -> Column:
        return F.when(delta != 0, delta)

    def finish(self, state: Column, kept: DataType) -> Column:
        return F.coalesce(state, F.lit(0).cast("bigint"))


class Sum(Accumulator):
    """A total and a count, whose quotient is the average."""

    can_overflow: ClassVar[bool] = True

    def takes_one_by_one(self, value: DataType) -> bool:
        is_long = isinstance(value, DecimalType) and value.precision > _FACTOR_DIGITS
        return is_long or is_float(value)

    def gather(self, weight: Column, value: DataType) -> Column:
        parts = self._parts(self.value, weight, value)
        counted = _count(self.value.isNotNull(), weight).alias(_COUNTED)
        return F.struct(*[p.alias(n) for n, p in parts.items()], counted)

    def _parts(self, value: Column, weight: Column, type_: DataType) -> Mapping[str, Column]:
        summed = sum_type(type_)
        times = _sign if self.takes_one_by_one(type_) else _times

        def total(number: Column) -> Column:
            wide = number if isinstance(type_, DecimalType) else number.cast(summed)
            return _total(times(wide, weight), summed)

        def count(condition: Column) -> Column:
            return _count(condition, weight)

        if is_float(type_):
            return float_parts(value, total, count)
        return {TOTAL: total(value)}

    def merge(self, was: Column, delta: Column, kept: DataType) -> tuple[Column | None, Column]:
        assert isinstance(kept, StructType)

        def both(field: str) -> Column:
            return F.coalesce(was.getField(field), delta.getField(field))

        return None, F.struct(
            *[F.sum(both(f.name)).cast(f.dataType).alias(f.name) for f in kept.fields]
        )

    def settle(self, was: Column | None, delta: Column, kept: DataType) -> Column:
        return F.when(delta.getField(_COUNTED) > 0, delta)

    def finish(self, state: Column, kept: DataType) -> Column:
        assert isinstance(kept, StructType)
        counted, is_mean = (
            state.getField(_COUNTED),
            self.aggregate.function in ("avg", "approx_avg"),
        )
        if len(kept) > len((TOTAL, _COUNTED)):
            return read_float(state, lambda total: total / counted if is_mean else total)
        total = state.getField(TOTAL)
        return _average(total, counted, kept[TOTAL].dataType) if is_mean else total


class RoundedSum(Sum):
    """approx_sum and approx_avg: added up as DOUBLE, each time rounded.

    The last digits depend on removed values and on the order of arrival. The magnitudes of all
    numbers ever added or subtracted are summed separately, because their rounding error stays when
    they are removed. `verify` allows a trillionth of that sum.
    """

    is_approximate: ClassVar[bool] = True

    def takes_one_by_one(self, value: DataType) -> bool:
        return False

    def _parts(self, value: Column, weight: Column, type_: DataType) -> Mapping[str, Column]:
        def total(number: Column) -> Column:
            return _total(_times(number, weight), DoubleType())

        def count(condition: Column) -> Column:
            return _count(condition, weight)

        number = value.cast("double")
        parts = float_parts(number, total, count)
        finite = F.when(~F.isnan(number) & (F.abs(number) != float("inf")), F.abs(number))
        return {**parts, _MAGNITUDE: _total(finite * F.abs(weight), DoubleType())}

    def settle(self, was: Column | None, delta: Column, kept: DataType) -> Column:
        """Fail if the total is not finite, because later subtractions could not restore it."""
        total = delta.getField(TOTAL)
        words = F.lit(f"{self.aggregate.text}: the total is greater than a DOUBLE can be")
        is_lost = F.isnan(total) | (F.abs(total) == float("inf"))
        return super().settle(was, F.when(is_lost, F.raise_error(words)).otherwise(delta), kept)

    def agrees(self, a: Column, b: Column, kept: DataType) -> Column:
        assert isinstance(kept, StructType)
        exactly = [f for f in kept.names if f not in (TOTAL, _MAGNITUDE)]
        same = [a.getField(f).eqNullSafe(b.getField(f)) for f in exactly]
        allowed = F.greatest(a.getField(_MAGNITUDE), b.getField(_MAGNITUDE), F.lit(1.0)) * 1e-12
        is_near = F.abs(a.getField(TOTAL) - b.getField(TOTAL)) <= allowed
        return a.eqNullSafe(b) | F.coalesce(reduce(Column.__and__, same, is_near), F.lit(False))


class Truth(Sum):
    """any and every: the number of true values, and of all."""

    can_overflow: ClassVar[bool] = False

    def _parts(self, value: Column, weight: Column, type_: DataType) -> Mapping[str, Column]:
        return {TOTAL: _count(value, weight)}

    def finish(self, state: Column, kept: DataType) -> Column:
        true, counted = state.getField(TOTAL), state.getField(_COUNTED)
        return true > 0 if self.aggregate.function == "bool_or" else true == counted


def sum_type(value: DataType) -> DataType:
    """Return the type in which values are summed: that of Spark's sum, floats as DECIMAL(38,18)."""
    if is_float(value):
        return EXACT
    if isinstance(value, DecimalType):
        return DecimalType(min(38, value.precision + 10), value.scale)
    return LongType()


def _count(condition: Column, weight: Column) -> Column:
    return _total(F.when(condition, weight), LongType())


def _total(values: Column, type_: DataType) -> Column:
    return F.coalesce(F.sum(values).cast(type_), F.lit(0).cast(type_))


def _sign(value: Column, weight: Column) -> Column:
    """Return the value times a weight of 1 or -1."""
    return F.when(weight > 0, value).otherwise(-value)


def _times(value: Column, weight: Column) -> Column:
    return F.when(weight == 1, value).when(weight == -1, -value).otherwise(value * weight)


def _average(total: Column, counted: Column, summed: DataType) -> Column:
    if isinstance(summed, DecimalType):
        precision = 38 if summed.precision == 38 else summed.precision - 6
        return (total / counted).cast(DecimalType(precision, min(38, summed.scale + 4)))
    return total.cast("double") / counted


EXACT = DecimalType(38, 18)
TOTAL = "total"
_NAN, _UP, _DOWN = "nan", "up", "down"


def is_float(value: DataType) -> bool:
    """True if values of this type are approximate."""
    return isinstance(value, FloatType | DoubleType)


def float_parts(
    value: Column, total: Callable[[Column], Column], count: Callable[[Column], Column]
) -> Mapping[str, Column]:
    """Return the parts of a sum; `total` adds finite numbers up, `count` counts where it holds."""
    infinity = F.lit(float("inf"))
    is_finite = ~F.isnan(value) & (F.abs(value) != infinity)
    return {
        TOTAL: total(F.when(is_finite, value)),
        _NAN: count(F.isnan(value)),
        _UP: count(value == infinity),
        _DOWN: count(value == -infinity),
    }


def read_float(state: Column, finite: Callable[[Column], Column]) -> Column:
    """Return a value from the parts; `finite` computes it if all numbers are finite."""
    nan, up, down = (state.getField(field) for field in (_NAN, _UP, _DOWN))
    return (
        F.when((nan > 0) | ((up > 0) & (down > 0)), F.lit(float("nan")))
        .when(up > 0, F.lit(float("inf")))
        .when(down > 0, F.lit(float("-inf")))
        .otherwise(finite(state.getField(TOTAL)).cast("double"))
    )


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
