"""Cogroup against brute force: every aggregate, every window, any changes in any batches."""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st
from tests.support.contract import Case, Query, hold
from tests.support.lake import Lake, Row, State
from tests.support.oracle import (
    column,
    grouped,
    in_sessions,
    ordered,
    present,
    total,
    windowed,
    windows_of,
)
from tests.support.rows import (
    NOON,
    floats,
    groups,
    ids,
    money,
    not_finite,
    numbers,
    row,
    times,
    words,
)

from sluice.errors import QualityStop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.support.oracle import Value

SOURCES = """
sources:
  sales:
    path: "sales/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, v INT, m DECIMAL(6,2), f DOUBLE, w STRING, at TIMESTAMP"
  clicks:
    path: "clicks/{interval_start:%Y-%m-%d}/"
    schema: "who STRING, n BIGINT, f FLOAT, at TIMESTAMP"
views:
"""
sales = row(id=ids, g=groups, v=numbers, m=money, f=floats | floats | not_finite, w=words, at=times)
clicks = row(
    _sluice_interval=st.just(NOON),
    _sluice_id=st.sampled_from(["p-1", "q-1", "q-2", "r-1"]),
    who=groups,
    n=numbers,
    f=st.sampled_from([None, 0.5, -0.25, 8.0]),
    at=times,
)
G, WHO = column("g"), column("who")
Aggregates = Mapping[str, Callable[[list[Row]], Any]]


def summed(rows: list[Row]) -> Any:
    return total(rows, "v")


def per_key(
    streams: Mapping[str, tuple[list[Row], list["Value"], Aggregates]], key: tuple[str, ...]
) -> list[Row]:
    """One row for each key that any stream has; aggregates of a stream without rows are of []."""
    by_stream = {name: grouped(rows, *by) for name, (rows, by, _) in streams.items()}
    found = []
    for group in dict.fromkeys(g for of_stream in by_stream.values() for g in of_stream):
        values: Row = dict(zip(key, group, strict=True))
        for name, (_, _, aggregates) in streams.items():
            rows = by_stream[name].get(group, [])
            values |= {column: function(rows) for column, function in aggregates.items()}
        found.append(values)
    return found


def average(rows: list[Row], value: str) -> Any:
    values = present(rows, value)
    if not values:
        return None
    if isinstance(values[0], Decimal):
        return (sum(values) / len(values)).quantize(Decimal("0.000001"), "ROUND_HALF_UP")
    return total(rows, value) / len(values)


def true_of(rows: list[Row], value: str, how: Callable[[Any], bool]) -> bool | None:
    values = present(rows, value)
    return how(v > 0 for v in values) if values else None


ADDITIVE = """
  found:
    kind: cogroup
    key: [g]
    streams:
      sold:
        from: sales
        aggregates:
          rows_sold: count(*)
          with_v: count(v)
          v: sum(v)
          m: sum(m)
          mean: avg(v)
          mean_m: avg(m)
          up: sum(v) FILTER (WHERE v > 0)
          some_up: any(v > 0)
          all_up: every(v > 0)
      clicked:
        from: clicks
        key: [who]
        aggregates: {clicks: "count(*)", n: sum(n)}
"""


def additive(state: State) -> list[Row]:
    sold: Aggregates = {
        "rows_sold": len,
        "with_v": lambda rows: len(present(rows, "v")),
        "v": summed,
        "m": lambda rows: total(rows, "m"),
        "mean": lambda rows: average(rows, "v"),
        "mean_m": lambda rows: average(rows, "m"),
        "up": lambda rows: total([r for r in rows if r["v"] is not None and r["v"] > 0], "v"),
        "some_up": lambda rows: true_of(rows, "v", any),
        "all_up": lambda rows: true_of(rows, "v", all),
    }
    clicked: Aggregates = {"clicks": len, "n": lambda rows: total(rows, "n")}
    streams = {"sold": (state["sales"], [G], sold), "clicked": (state["clicks"], [WHO], clicked)}
    return per_key(streams, ("g",))


FLOATS = """
  found:
    kind: cogroup
    key: [g]
    streams:
      sold: {from: sales, aggregates: {f: sum(f), mean: avg(f)}}
      clicked: {from: clicks, key: [who], aggregates: {f32: sum(f)}}
"""


def exact_floats(state: State) -> list[Row]:
    def exact(rows: list[Row], divisor: int = 1) -> float | None:
        values = present(rows, "f")
        if not all(map(math.isfinite, values)):
            return sum(values) / divisor
        added = sum((Decimal(repr(v)) for v in values), Decimal(0))
        return float(added / divisor) if values else None

    def mean(rows: list[Row]) -> float | None:
        return exact(rows, len(present(rows, "f")) or 1)

    sold: Aggregates = {"f": exact, "mean": mean}
    streams = {
        "sold": (state["sales"], [G], sold),
        "clicked": (state["clicks"], [WHO], {"f32": exact}),
    }
    return per_key(streams, ("g",))


ORDERED = """
  found:
    kind: cogroup
    key: [g]
    streams:
      sold:
        from: sales
        aggregates:
          low: min(v)
          high: max(w)
          kinds: count(distinct w)
          about: approx_count_distinct(v)
          words: collect_set(w)
          list: collect_list(w ORDER BY v desc, w)
          ups: collect_list(v ORDER BY at) FILTER (WHERE v > 0)
          eldest: first(w ORDER BY at)
          newest: last(v ORDER BY at desc nulls first, v)
      clicked:
        from: clicks
        key: [who]
        aggregates: {numbers: collect_list(n ORDER BY at), last_number: last(n ORDER BY at)}
"""
V_DESC, AT, TIES = (column("v"), "desc"), (column("at"), "asc"), (column("id"), "asc")


def needing_all_rows(state: State) -> list[Row]:
    def listed(rows: list[Row]) -> list[Any]:
        return present(ordered(rows, V_DESC, (column("w"), "asc"), TIES), "w")

    def ups(rows: list[Row]) -> list[Any]:
        rising = [r for r in rows if r["v"] is not None and r["v"] > 0]
        return present(ordered(rising, AT, TIES), "v")

    def newest(rows: list[Row]) -> Any:
        in_order = ordered(rows, (column("at"), "desc nulls first"), (column("v"), "asc"), TIES)
        return in_order[-1]["v"] if rows else None

    sold: Aggregates = {
        "low": lambda rows: min(present(rows, "v"), default=None),
        "high": lambda rows: max(present(rows, "w"), default=None),
        "kinds": lambda rows: len(set(present(rows, "w"))),
        "about": lambda rows: len(set(present(rows, "v"))),
        "words": lambda rows: sorted(set(present(rows, "w"))),
        "list": listed,
        "ups": ups,
        "eldest": lambda rows: ordered(rows, AT, TIES)[0]["w"] if rows else None,
        "newest": newest,
    }

    def clicks_in_order(rows: list[Row]) -> list[Row]:
        return ordered(rows, AT, (column("_sluice_interval"), "asc"), (column("_sluice_id"), "asc"))

    clicked: Aggregates = {
        "numbers": lambda rows: present(clicks_in_order(rows), "n"),
        "last_number": lambda rows: clicks_in_order(rows)[-1]["n"] if rows else None,
    }
    streams = {"sold": (state["sales"], [G], sold), "clicked": (state["clicks"], [WHO], clicked)}
    return per_key(streams, ("g",))


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


SHARED = """
  found:
    kind: cogroup
    key: [k]
    streams:
      high:
        from: sales
        key: ["upper(g)"]
        where: v > 0
        aggregates: {cart: collect_list(w ORDER BY w), n: sum(v)}
        initial: {n: -1}
      low:
        from: sales
        key: ["coalesce(w, 'none')"]
        where: v <= 0
        aggregates: {bought: collect_set(w), least: min(v)}
        initial: {bought: [], least: 0}
    select: {open_cart: "array_except(cart, bought)", n: n, spread: n - least}
"""


def over_streams_of_one_input(state: State) -> list[Row]:
    rows = [r for r in state["sales"] if r["v"] is not None]
    high: Aggregates = {
        "cart": lambda rows: present(ordered(rows, (column("w"), "asc")), "w"),
        "n": lambda rows: summed(rows) if rows else -1,
    }
    low: Aggregates = {
        "bought": lambda rows: set(present(rows, "w")),
        "least": lambda rows: min(present(rows, "v"), default=0),
    }
    found = per_key(
        {
            "high": ([r for r in rows if r["v"] > 0], [lambda r: r["g"] and r["g"].upper()], high),
            "low": (
                [r for r in rows if r["v"] <= 0],
                [lambda r: "none" if r["w"] is None else r["w"]],
                low,
            ),
        },
        ("k",),
    )
    return [
        {
            "k": r["k"],
            "open_cart": [w for w in dict.fromkeys(r["cart"]) if w not in r["bought"]],
            "n": r["n"],
            "spread": r["n"] - r["least"],
        }
        for r in found
    ]


def windowed_view(window: str, aggregates: str) -> str:
    return f"""
  found:
    kind: cogroup
    key: [g]
    window: {{{window}}}
    streams:
      sold: {{from: sales, aggregates: {{{aggregates}}}}}
      clicked: {{from: clicks, key: [who], aggregates: {{clicks: "count(*)"}}}}
"""


SOLD: Aggregates = {"rows_sold": len, "v": summed}
HIGH: Aggregates = {"high": lambda rows: max(present(rows, "v"), default=None)}
START, END = column("window_start"), column("window_end")


def in_windows(state: State, size: timedelta, advance: timedelta | None, sold: Aggregates) -> Any:
    windows = windows_of(size, advance)
    return per_key(
        {
            "sold": (windowed(state["sales"], "at", windows), [START, END, G], sold),
            "clicked": (
                windowed(state["clicks"], "at", windows),
                [START, END, WHO],
                {"clicks": len},
            ),
        },
        ("window_start", "window_end", "g"),
    )


def tumbling(state: State) -> list[Row]:
    return in_windows(state, timedelta(hours=6), None, SOLD)


def hopping(state: State) -> list[Row]:
    return in_windows(state, timedelta(minutes=90), timedelta(minutes=40), HIGH)


def session(state: State) -> list[Row]:
    tagged = [{**r, "_g": r["g"], "_s": "sold"} for r in state["sales"]]
    tagged += [{**r, "_g": r["who"], "_s": "clicked"} for r in state["clicks"]]
    rows = in_sessions(tagged, [column("_g")], column("at"), timedelta(minutes=60))
    by = [START, END, column("_g")]
    sold = [r for r in rows if r["_s"] == "sold"]
    clicked = [r for r in rows if r["_s"] == "clicked"]
    streams = {"sold": (sold, by, SOLD), "clicked": (clicked, by, {"clicks": len})}
    return per_key(streams, ("window_start", "window_end", "g"))


def case(name: str, query: Query, declared: str, *sketches: str) -> Case:
    rows = {"sales": sales, "clicks": clicks}
    kept = frozenset(sketches)
    return Case(name, SOURCES + declared, "found", rows, lambda: query, sketches=kept)


CASES = [
    case("aggregates that add and subtract, over two streams", additive, ADDITIVE),
    case("floating point comes back to where it was", exact_floats, FLOATS),
    case("aggregates that need all rows of a key", needing_all_rows, ORDERED, "about"),
    case("modes, percentiles, variances, and values at a bound", statistics, STATISTICS),
    case("two streams of one input, initial values, a select", over_streams_of_one_input, SHARED),
    case(
        "tumbling windows",
        tumbling,
        windowed_view(
            "type: tumbling, time: at, size: 6 hours", 'rows_sold: "count(*)", v: sum(v)'
        ),
    ),
    case(
        "hopping windows",
        hopping,
        windowed_view(
            "type: hopping, time: at, size: 90 minutes, advance: 40 minutes", "high: max(v)"
        ),
    ),
    case(
        "sessions, bridged and split again",
        session,
        windowed_view("type: session, time: at, gap: 1 hour", 'rows_sold: "count(*)", v: sum(v)'),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_cogroup_equals_its_query_after_any_batches(case: Case, spark: "SparkSession") -> None:
    hold(case, spark)


def test_a_sum_that_overflows_ends_the_batch(tmp_path: Path, spark: "SparkSession") -> None:
    lake = Lake(tmp_path, SOURCES + FLOATS.replace("f32: sum(f)", "n: sum(n)"), spark)
    lake.put("sales", {"id": 1, "g": "a", "f": 0.5})
    lake.put("clicks", {"_sluice_interval": NOON, "_sluice_id": "p-1", "who": "a", "n": 2**62})
    lake.advance()
    lake.put("clicks", {"_sluice_interval": NOON, "_sluice_id": "q-1", "who": "a", "n": 2**62})
    with pytest.raises(QualityStop, match=r"out of range|overflow"):
        lake.advance()
    assert lake.rows("found") == [{"g": "a", "f": 0.5, "mean": 0.5, "n": 2**62}]
