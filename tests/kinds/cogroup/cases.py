"""Cogroups held to the contract of views, and their queries in plain Python."""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tests.kinds.cogroup.moments import STATISTICS, statistics
from tests.kinds.cogroup.streams import (
    SOURCES,
    TIES,
    WHO,
    Aggregates,
    G,
    clicks,
    per_key,
    sales,
    summed,
)
from tests.kinds.cogroup.windows import hopping, session, tumbling, windowed_view
from tests.support.contract import Case, Query, by_spark, by_ways
from tests.support.lake import Row, State
from tests.support.oracle import (
    column,
    ordered,
    present,
    total,
)


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
IN_ORDER = ORDERED.replace("          about: approx_count_distinct(v)\n", "")  # without Spark
V_DESC, AT = (column("v"), "desc"), (column("at"), "asc")


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


def in_order(state: State) -> list[Row]:
    return [{n: v for n, v in r.items() if n != "about"} for r in needing_all_rows(state)]


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


def case(name: str, query: Query, declared: str, *sketches: str) -> Case:
    rows = {"sales": sales, "clicks": clicks}
    kept = frozenset(sketches)
    return Case(name, SOURCES + declared, "found", rows, lambda: query, sketches=kept)


CASES = [
    case("aggregates that add and subtract, over two streams", additive, ADDITIVE),
    case("floating point comes back to where it was", exact_floats, FLOATS),
    by_spark(case("aggregates that need all rows of a key", needing_all_rows, ORDERED, "about")),
    by_spark(case("modes, percentiles, variances, and values at a bound", statistics, STATISTICS)),
    by_ways(
        case(
            "two streams of one input, initial values, a select", over_streams_of_one_input, SHARED
        )
    ),
    case(
        "tumbling windows",
        tumbling,
        windowed_view(
            "type: tumbling, time: at, size: 6 hours", 'rows_sold: "count(*)", v: sum(v)'
        ),
    ),
    by_ways(
        case(
            "hopping windows",
            hopping,
            windowed_view(
                "type: hopping, time: at, size: 90 minutes, advance: 40 minutes", "high: max(v)"
            ),
        )
    ),
    case(
        "sessions, bridged and split again",
        session,
        windowed_view("type: session, time: at, gap: 1 hour", 'rows_sold: "count(*)", v: sum(v)'),
    ),
    by_ways(case("lists and ends, each in an order of its own", in_order, IN_ORDER)),
]
