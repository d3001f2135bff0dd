"""Aggregates by name, each with its accumulator."""

from collections.abc import Mapping

from sluice.kinds.cogroup.aggregates.accumulator import Accumulator
from sluice.kinds.cogroup.aggregates.collected import Collected, CountDistinct, Frequent, Listed
from sluice.kinds.cogroup.aggregates.extremes import Bound, End
from sluice.kinds.cogroup.aggregates.own import Own
from sluice.kinds.cogroup.aggregates.sketches import DistinctSketch, QuantileSketch
from sluice.kinds.cogroup.aggregates.statistics import HigherMoments, Mode, Percentile, Spread
from sluice.kinds.cogroup.aggregates.sums import Count, RoundedSum, Sum, Truth
from sluice.language.expression import Aggregate

_KINDS: Mapping[str, type[Accumulator]] = {
    "count": Count,
    "sum": Sum,
    "avg": Sum,
    "approx_sum": RoundedSum,
    "approx_avg": RoundedSum,
    "bool_or": Truth,
    "bool_and": Truth,
    "min": Bound,
    "max": Bound,
    "first": End,
    "last": End,
    "collect_list": Listed,
    "collect_set": Collected,
    "count_distinct": CountDistinct,
    "approx_count_distinct": DistinctSketch,
    "approx_percentile": QuantileSketch,
    "approx_top_k": Frequent,
    "mode": Mode,
    **dict.fromkeys(("median", "percentile"), Percentile),
    **dict.fromkeys(("var_pop", "var_samp", "stddev_pop", "stddev_samp"), Spread),
    **dict.fromkeys(("skewness", "kurtosis"), HigherMoments),
}


def accumulator_of(
    stream: str, name: str, aggregate: Aggregate, ties: tuple[str, ...]
) -> Accumulator:
    """Return the accumulator for an aggregate of a stream; `ties` are the input's key."""
    kind = Own if aggregate.is_python else _KINDS[aggregate.function]
    return kind(stream, name, aggregate, ties)
