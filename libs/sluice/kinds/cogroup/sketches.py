"""Aggregates by mergeable sketches: approximate counts of distinct values and quantiles.

The state is the sketch; readers see the number. Added rows are merged in. Removed ones break the
group, because no sketch forgets. A sketch may depend on the order of its values, within its error
bound; small groups are exact.
"""

from abc import abstractmethod
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from math import ceil, log2
from typing import ClassVar

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sluice.kinds.cogroup.accumulator import Accumulator

DEVIATIONS = 3  # standard deviations; a sketch exceeds them 1 time in 300
_LONG_DIGITS = 17


class Sketch(Accumulator):
    """A sketch of the added rows, null if there are none, and the number of removed rows."""

    can_break: ClassVar[bool] = True
    is_approximate: ClassVar[bool] = True

    def _gathered(self, weight: Column, counted: Column, sketch: Column) -> Column:
        came = F.when(F.count_if((weight > 0) & counted.isNotNull()) > 0, sketch)
        gone = F.count_if((weight < 0) & counted.isNotNull())
        return F.struct(came.alias("came"), gone.alias("gone"))

    def settle(self, was: Column | None, delta: Column, kept: DataType) -> Column:
        came = delta.getField("came")
        if was is None:
            return came
        assert isinstance(kept, StructType)
        both = self._both(was, came, kept["came"].dataType)
        return F.when(was.isNull(), came).when(came.isNull(), was).otherwise(both)

    def breaks(self, was: Column, delta: Column) -> Column:
        return F.coalesce(delta.getField("gone") > 0, F.lit(False))

    @abstractmethod
    def _both(self, was: Column, came: Column, kept: DataType) -> Column:
        """Return the two sketches merged; `kept` is the type of one."""


class DistinctSketch(Sketch):
    """approx_count_distinct by HyperLogLog, over a hash of the value.

    The parameter is the relative standard deviation, 0.05 unless given.
    """

    @property
    def _deviation(self) -> float:
        return float(self.aggregate.parameters[0]) if self.aggregate.parameters else 0.05

    @property
    def _size(self) -> int:
        return min(21, max(4, ceil(2 * log2(1.04 / self._deviation))))

    def gather(self, weight: Column, value: DataType) -> Column:
        counts = (weight > 0) & self.value.isNotNull()
        sketch = F.hll_sketch_agg(F.when(counts, F.xxhash64(self.value)), self._size)
        return self._gathered(weight, self.value, sketch)

    def _both(self, was: Column, came: Column, kept: DataType) -> Column:
        return F.hll_union(was, came)

    def agrees(self, a: Column, b: Column, kept: DataType) -> Column:
        one, other = F.hll_sketch_estimate(a), F.hll_sketch_estimate(b)
        allowed = F.greatest(one, other) * (2 * DEVIATIONS * self._deviation)
        return a.eqNullSafe(b) | F.coalesce(F.abs(one - other) <= allowed, F.lit(False))

    def finish(self, state: Column, kept: DataType) -> Column:
        return F.coalesce(F.hll_sketch_estimate(state), F.lit(0).cast("bigint"))


class QuantileSketch(Sketch):
    """approx_percentile by KLL: numbers and times as BIGINT if they fit, else as DOUBLE.

    The last parameter is the accuracy: ranks are right within its inverse, 1/1000 unless given. The
    least value is kept with the sketch, for the values' type. NaN has no rank.
    """

    @property
    def _accuracy(self) -> float:
        parameters = self.aggregate.parameters
        return float(parameters[1]) if len(parameters) > 1 else 1000.0

    @property
    def _size(self) -> int:
        size: float = (2.296 * self._accuracy) ** (1 / 0.9723)
        return min(65_535, max(8, ceil(size)))

    def takes_one_by_one(self, value: DataType) -> bool:
        return True

    def gather(self, weight: Column, value: DataType) -> Column:
        number = _as_number(self.value, value)
        came = F.when(weight > 0, number)
        agg = F.kll_sketch_agg_bigint if _is_whole(value) else F.kll_sketch_agg_double
        least = F.min(F.when(came.isNotNull(), self.value))
        sketch = F.struct(agg(came, self._size).alias("sketch"), least.alias("least"))
        return self._gathered(weight, number, sketch)

    def _both(self, was: Column, came: Column, kept: DataType) -> Column:
        merge = F.kll_sketch_merge_bigint if _is_whole(_value(kept)) else F.kll_sketch_merge_double
        sketch = merge(was.getField("sketch"), came.getField("sketch"))
        least = F.least(was.getField("least"), came.getField("least"))
        return F.struct(sketch.alias("sketch"), least.alias("least"))

    def agrees(self, a: Column, b: Column, kept: DataType) -> Column:
        quantile = _quantile_of(_is_whole(_value(kept)))
        error = 2 * DEVIATIONS / self._accuracy
        wanted = self.aggregate.parameters[0]
        ranks = map(float, wanted if isinstance(wanted, tuple) else (wanted,))

        def is_near(rank: float) -> Column:
            x, y = a.getField("sketch"), b.getField("sketch")
            low, high = F.lit(max(0.0, rank - error)), F.lit(min(1.0, rank + error))
            found = quantile(y, F.lit(rank))
            return (quantile(x, low) <= found) & (found <= quantile(x, high))

        near = reduce(Column.__and__, map(is_near, ranks))
        return a.eqNullSafe(b) | F.coalesce(near, F.lit(False))

    def finish(self, state: Column, kept: DataType) -> Column:
        value, sketch = _value(kept), state.getField("sketch")
        read = _quantile_of(_is_whole(value))
        wanted = self.aggregate.parameters[0]
        if isinstance(wanted, tuple):
            found = read(sketch, F.array(*[F.lit(float(p)) for p in wanted]))
            return F.transform(found, lambda number: _from_number(number, value))
        return _from_number(read(sketch, F.lit(float(wanted))), value)


def _value(kept: DataType) -> DataType:
    assert isinstance(kept, StructType)
    return kept["least"].dataType


def _quantile_of(is_whole: bool) -> Callable[[Column, Column], Column]:
    return F.kll_sketch_get_quantile_bigint if is_whole else F.kll_sketch_get_quantile_double


def _is_whole(value: DataType) -> bool:
    """True if values are BIGINTs, or multiples of a unit that fit one."""
    is_short = isinstance(value, DecimalType) and value.precision <= _LONG_DIGITS
    return is_short or isinstance(value, IntegralType | DateType | TimestampType | TimestampNTZType)


def _as_number(value: Column, type_: DataType) -> Column:
    """Return the value as ranked, null if it has no rank."""
    match type_:
        case DateType():
            return F.unix_date(value).cast("bigint")
        case TimestampType() | TimestampNTZType():
            return F.unix_micros(value.cast("timestamp"))
        case DecimalType() if _is_whole(type_):
            return (value * _unit(type_.scale, 1)).cast("bigint")
    if _is_whole(type_):
        return value.cast("bigint")
    number = value.cast("double")
    return F.when(~F.isnan(number), number)


def _from_number(number: Column, type_: DataType) -> Column:
    match type_:
        case DateType():
            return F.date_from_unix_date(number.cast("int"))
        case TimestampType() | TimestampNTZType():
            return F.timestamp_micros(number).cast(type_)
        case DecimalType() if _is_whole(type_):
            return (number.cast("decimal(18,0)") * _unit(type_.scale, -1)).cast(type_)
        case StringType():
            return number
    return number.cast(type_)


def _unit(scale: int, sign: int) -> Column:
    """Return ten to the power of a scale, or of its negative, as a DECIMAL."""
    return F.lit(Decimal(1).scaleb(sign * scale))
