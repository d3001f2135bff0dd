"""Sums of floating point that don't depend on order, so added numbers can be subtracted.

Numbers are summed as DECIMAL and rounded once. NaN and the infinities, which a DECIMAL can't hold,
are counted separately. A sum that needs more than 20 digits before the point is an error.
"""

from collections.abc import Callable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, DoubleType, FloatType

EXACT = DecimalType(38, 18)
TOTAL = "total"
_NAN, _UP, _DOWN = "nan", "up", "down"


def is_float(value: DataType) -> bool:
    """True if values of this type are approximate."""
    return isinstance(value, FloatType | DoubleType)


def parts(
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


def read(state: Column, finite: Callable[[Column], Column]) -> Column:
    """Return a value from the parts; `finite` computes it if all numbers are finite."""
    nan, up, down = (state.getField(field) for field in (_NAN, _UP, _DOWN))
    return (
        F.when((nan > 0) | ((up > 0) & (down > 0)), F.lit(float("nan")))
        .when(up > 0, F.lit(float("inf")))
        .when(down > 0, F.lit(float("-inf")))
        .otherwise(finite(state.getField(TOTAL)).cast("double"))
    )
