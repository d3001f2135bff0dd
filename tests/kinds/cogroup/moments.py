"""Modes, percentiles, variances and values at a bound, by brute force."""

import math
from collections import Counter
from itertools import groupby
from typing import Any

from tests.kinds.cogroup.streams import TIES, WHO, Aggregates, G, per_key
from tests.support.lake import Row, State
from tests.support.oracle import (
    column,
    ordered,
    present,
)

STATISTICS = """
  found:
    kind: cogroup
    key: [g]
    streams:
      sold:
        from: sales
        aggregates:
          most: mode(w)
          most_f: mode(f)
          middle: median(f)
          ranks: percentile(m, array(0, 0.3, 1))
          up: percentile(v, 0.9) FILTER (WHERE v > 0)
          var_f: var_pop(f)
          var_v: variance(v)
          dev_m: stddev(m)
          dev_f: stddev_pop(f)
          skew_v: skewness(v)
          tails_v: kurtosis(v)
          last_w: max_by(w, v)
          first_at: min_by(at, f) FILTER (WHERE w IS NOT NULL)
      clicked:
        from: clicks
        key: [who]
        aggregates: {f32: median(f), n: mode(n)}
"""


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def mode(rows: list[Row], value: str) -> Any:
    counts = Counter("NaN" if is_nan(v) else v for v in present(rows, value))
    best = [v for v, n in counts.items() if n == max(counts.values())]
    found = min(best, key=lambda v: (v == "NaN", v), default=None)
    return math.nan if found == "NaN" else found


def in_size(rows: list[Row], value: str) -> list[float]:
    """The numbers with NaN at the end."""
    return sorted(map(float, present(rows, value)), key=lambda v: (is_nan(v), v))


def at_rank(rows: list[Row], value: str, rank: float) -> float | None:
    numbers = in_size(rows, value)
    if not numbers:
        return None
    place = (len(numbers) - 1) * rank
    low, high = math.floor(place), math.ceil(place)
    below, above = numbers[low], numbers[high]
    return below if str(below) == str(above) else (high - place) * below + (place - low) * above


def variance(rows: list[Row], value: str, without: int = 0) -> float | None:
    counts = [(v, len(list(of))) for v, of in groupby(in_size(rows, value), key=float)]
    number = sum(n for _, n in counts)
    if number <= without:
        return None
    mean = sum(v * n for v, n in counts) / number
    return sum((v - mean) * (v - mean) * n for v, n in counts) / (number - without)


def deviation(rows: list[Row], value: str, without: int = 0) -> float | None:
    found = variance(rows, value, without)
    return None if found is None else math.sqrt(found)


def shape(rows: list[Row], value: str, power: int) -> float | None:
    """Skewness (the third moment) or excess kurtosis (the fourth)."""
    counts = [(v, len(list(of))) for v, of in groupby(in_size(rows, value), key=float)]
    number = sum(n for _, n in counts)
    if len(counts) < 2:
        return None
    mean = sum(v * n for v, n in counts) / number
    squares = variance(rows, value) * number  # type: ignore[operator]
    moment = sum(math.prod([v - mean] * power) * n for v, n in counts)
    if power == 3:
        return math.sqrt(number / squares) * moment / squares
    return number * moment / (squares * squares) - 3.0


def of_greatest(rows: list[Row], value: str, by: str, which: int) -> Any:
    known = [r for r in rows if r[by] is not None]
    found = ordered(known, (column(by), "asc"), TIES)
    return found[which][value] if found else None


def statistics(state: State) -> list[Row]:
    def ranks(rows: list[Row]) -> Any:
        return [at_rank(rows, "m", p) for p in (0, 0.3, 1)] if present(rows, "m") else None

    sold: Aggregates = {
        "most": lambda rows: mode(rows, "w"),
        "most_f": lambda rows: mode(rows, "f"),
        "middle": lambda rows: at_rank(rows, "f", 0.5),
        "ranks": ranks,
        "up": lambda rows: at_rank([r for r in rows if r["v"] and r["v"] > 0], "v", 0.9),
        "var_f": lambda rows: variance(rows, "f"),
        "var_v": lambda rows: variance(rows, "v", 1),
        "dev_m": lambda rows: deviation(rows, "m", 1),
        "dev_f": lambda rows: deviation(rows, "f"),
        "skew_v": lambda rows: shape(rows, "v", 3),
        "tails_v": lambda rows: shape(rows, "v", 4),
        "last_w": lambda rows: of_greatest(rows, "w", "v", -1),
        "first_at": lambda rows: of_greatest([r for r in rows if r["w"] is not None], "at", "f", 0),
    }
    clicked: Aggregates = {
        "f32": lambda rows: at_rank(rows, "f", 0.5),
        "n": lambda rows: mode(rows, "n"),
    }
    streams = {"sold": (state["sales"], [G], sold), "clicked": (state["clicks"], [WHO], clicked)}
    return per_key(streams, ("g",))
