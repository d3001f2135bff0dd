"""Statistics of groups with few values, against Python's, after each of several batches."""

import math
from collections import Counter
from pathlib import Path
from random import Random
from statistics import fmean, pstdev, pvariance, stdev, variance
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARED = """
sources:
  sales: {path: "s/{interval_start:%Y}/", schema: "id INT, g INT, v INT", key: [id]}
views:
  seen: {kind: cogroup, key: [g], streams: {s: {from: sales, aggregates: {
    n: count(*), vs: var_samp(v), ss: stddev_samp(v), vp: var_pop(v), sp: stddev_pop(v),
    sk: skewness(v), ku: kurtosis(v), m: mode(v), md: median(v), q: 'percentile(v, 0.25)'}}}}
"""


def moment(values: list[int], power: int) -> float:
    mean = fmean(values)
    return fmean((v - mean) ** power for v in values)


def percentile(values: list[int], rank: float) -> float:
    ordered, place = sorted(values), (len(values) - 1) * rank
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))


def of(values: list[int]) -> dict[str, Any]:
    """Statistics of some values: none of no value, some of them none of one."""
    names = ("vs", "ss", "vp", "sp", "sk", "ku", "m", "md", "q")
    found: dict[str, Any] = dict.fromkeys(names)
    if not values:
        return found
    counts = Counter(values)
    found |= {"vp": pvariance(values), "sp": pstdev(values), "md": percentile(values, 0.5)}
    found |= {"m": min(counts, key=lambda v: (-counts[v], v)), "q": percentile(values, 0.25)}
    if len(values) > 1:
        found |= {"vs": variance(values), "ss": stdev(values)}
    if len(counts) > 1:
        second = moment(values, 2)
        found |= {"sk": moment(values, 3) / second**1.5, "ku": moment(values, 4) / second**2 - 3}
    return found


def test_they_are_pythons_for_groups_of_none_to_six_values(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake, chance = Lake(tmp_path, DECLARED, spark), Random(3)
    rows: dict[int, dict[str, Any]] = {}
    for _ in range(3):
        changed = {
            n: {
                "id": n,
                "g": n % 7 if n % 7 <= n // 7 else 7,
                "v": chance.choice([None, 0, 1, 5, -3]),
            }
            for n in chance.sample(range(42), 25)
        }
        rows |= changed
        lake.put("sales", *changed.values())
        lake.advance()
        for found in lake.rows("seen"):
            group = [row["v"] for row in rows.values() if row["g"] == found["g"]]
            wanted = of([v for v in group if v is not None])
            assert found["n"] == len(group)
            assert {n: found[n] for n in wanted} == pytest.approx(wanted, nan_ok=True), group
