"""Sums of floating point that don't depend on order, so that what was added can be subtracted.

Numbers are summed as DECIMAL and rounded once; NaN and the infinities, which no DECIMAL holds, are
counted beside it. A sum that needs more than 20 digits before the point is an error.
"""

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, DoubleType, FloatType

EXACT = DecimalType(38, 18)
_NAN, _UP, _DOWN = "_nan_", "_up_", "_down_"
FINITE = "_float_"


def is_float(value: DataType) -> bool:
    """Whether values of this type are approximate."""
    return isinstance(value, FloatType | DoubleType)


def columns_of(
    name: str,
    value: Column,
    total: Callable[[Column], Column],
    count: Callable[[Column], Column],
) -> list[Column]:
    """The state columns of a sum; `total` adds numbers up, `count` counts where it holds."""
    infinity = F.lit(float("inf"))
    return [
        total(value.cast(EXACT)).alias(FINITE + name),
        count(F.isnan(value)).alias(_NAN + name),
        count(value == infinity).alias(_UP + name),
        count(value == -infinity).alias(_DOWN + name),
    ]


def read(name: str, finite: Callable[[Column], Column]) -> Column:
    """A value from the state columns; `finite` computes it where all numbers are finite."""
    nan, up, down = (F.col(f"`{prefix}{name}`") for prefix in (_NAN, _UP, _DOWN))
    return (
        F.when((nan > 0) | ((up > 0) & (down > 0)), F.lit(float("nan")))
        .when(up > 0, F.lit(float("inf")))
        .when(down > 0, F.lit(float("-inf")))
        .otherwise(finite(F.col(f"`{FINITE}{name}`")))
    )
