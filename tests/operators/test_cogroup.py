"""Cogroup against brute force: every aggregate, every window, any changes in any batches."""

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st
from tests.support.contract import Case, Query, hold
from tests.support.lake import Lake, Row, State, counted
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


def case(name: str, query: Query, declared: str) -> Case:
    return Case(
        name, SOURCES + declared, "found", {"sales": sales, "clicks": clicks}, lambda: query
    )


CASES = [
    case("aggregates that add and subtract, over two streams", additive, ADDITIVE),
    case("floating point comes back to where it was", exact_floats, FLOATS),
    case("aggregates that need all rows of a key", needing_all_rows, ORDERED),
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


# The example that KIP-150 was published with.
ITEM = 'path: "x/{interval_start:%Y-%m-%d}/", schema: "customer INT, item STRING", key: [item]'
CUSTOMERS = f"""
sources:
  cart: {{{ITEM}}}
  purchases: {{{ITEM}}}
  wish_list: {{{ITEM}}}
views:
  customers:
    kind: cogroup
    key: [customer]
    streams:
      in_cart: {{from: cart, aggregates: {{cart: collect_list(item ORDER BY item)}}}}
      bought: {{from: purchases, aggregates: {{purchases: collect_list(item ORDER BY item)}}}}
      wished: {{from: wish_list, aggregates: {{wish_list: collect_list(item ORDER BY item)}}}}
"""
PUBLISHED = {
    "cart": "1:01, 2:02, 1:03, 1:04, 2:05",
    "purchases": "2:06, 1:07, 1:08, 2:09, 2:10",
    "wish_list": "1:11, 2:12, 2:13, 2:14, 2:15",
}
ITEMS = [
    (stream, {"customer": int(pair.split(":")[0]), "item": pair.split(":")[1]})
    for stream, pairs in PUBLISHED.items()
    for pair in pairs.split(", ")
]
ONE = {"customer": 1, "cart": ["01", "03", "04"], "purchases": ["07", "08"], "wish_list": ["11"]}
TWO = {
    "customer": 2,
    "cart": ["02", "05"],
    "purchases": ["06", "09", "10"],
    "wish_list": ["12", "13", "14", "15"],
}


@pytest.fixture
def customers(tmp_path: Path, spark: "SparkSession") -> Lake:
    return customer_lake(tmp_path, spark)


def customer_lake(folder: Path, spark: "SparkSession") -> Lake:
    lake = Lake(folder, CUSTOMERS, spark)
    for stream in PUBLISHED:
        lake.put(stream)
    return lake


def test_the_published_example_in_one_batch(customers: Lake) -> None:
    for stream, item in ITEMS:
        customers.put(stream, item)
    customers.advance()
    assert counted(customers.rows("customers")) == counted([ONE, TWO])


def test_the_published_example_item_by_item(customers: Lake) -> None:
    for stream, item in ITEMS:
        customers.put(stream, item)
        customers.advance()
    assert counted(customers.rows("customers")) == counted([ONE, TWO])


@pytest.mark.parametrize("seed", range(2))
def test_the_published_example_in_random_splits_and_orders(customers: Lake, seed: int) -> None:
    random = Random(seed)
    items = random.sample(ITEMS, len(ITEMS))
    cuts = [0, *sorted(random.sample(range(1, len(items)), 3)), len(items)]
    for start, end in pairwise(cuts):
        for stream, item in items[start:end]:
            customers.put(stream, item)
        customers.advance()
    assert counted(customers.rows("customers")) == counted([ONE, TWO])


def test_items_are_taken_back(customers: Lake) -> None:
    for stream, item in ITEMS:
        customers.put(stream, item)
    customers.advance()
    customers.put("purchases", gone=[{"item": "07"}])
    customers.advance()
    without = {**ONE, "purchases": ["08"]}
    assert counted(customers.rows("customers")) == counted([without, TWO])
    for stream, item in ITEMS:
        if item["customer"] == 2:
            customers.put(stream, gone=[item])
    customers.advance()
    assert customers.rows("customers") == [without]


PLAIN = """
sources:
  sales:
    path: "s/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, v INT, day DATE, tags MAP<STRING, STRING>"
views:
"""
DAYS = [date(2024, 1, 1), date(2024, 1, 3), date(2024, 2, 9)]


def kept(lake: Lake, view: str) -> list[Row]:
    """The view after three rows came and one of them changed, `verify` agreeing."""
    lake.put("sales", *({"id": i, "g": "a", "v": i, "day": day} for i, day in enumerate(DAYS)))
    lake.advance()
    lake.put("sales", {"id": 2, "g": "a", "v": 5, "day": DAYS[2], "tags": [("b", "x"), ("a", "")]})
    lake.advance()
    assert all(verdict.is_equal for verdict in lake.verdicts())
    return sorted(lake.rows(view), key=repr)


def test_names_of_streams_and_aggregates_do_not_meet_those_of_the_state(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    view = """
  found:
    kind: cogroup
    key: [g]
    streams:
      a: {from: sales, aggregates: {rows: sum(v), b__c: max(v)}}
      a__b: {from: sales, aggregates: {c: avg(v), c__n: "count(*)", n: min(v)}}
"""
    found = {"g": "a", "rows": 6, "b__c": 5, "c": 2.0, "c__n": 3, "n": 0}
    assert kept(Lake(tmp_path, PLAIN + view, spark), "found") == [found]


def test_windows_of_windows_roll_up(tmp_path: Path, spark: "SparkSession") -> None:
    view = """
  daily:
    kind: cogroup
    key: [g]
    window: {type: tumbling, time: day, size: 1 day}
    streams: {s: {from: sales, aggregates: {v: sum(v)}}}
  monthly:
    kind: cogroup
    key: [g]
    window: {type: tumbling, time: window_start, size: 1 month}
    streams: {s: {from: daily, aggregates: {v: sum(v), until: max(window_end)}}}
"""
    january, february, march = (datetime(2024, month, 1, tzinfo=UTC) for month in (1, 2, 3))
    until = [datetime(2024, *day, tzinfo=UTC) for day in ((1, 4), (2, 10))]
    assert kept(Lake(tmp_path, PLAIN + view, spark), "monthly") == [
        {"window_start": january, "window_end": february, "g": "a", "v": 1, "until": until[0]},
        {"window_start": february, "window_end": march, "g": "a", "v": 5, "until": until[1]},
    ]


def test_sessions_of_dates(tmp_path: Path, spark: "SparkSession") -> None:
    view = """
  found:
    kind: cogroup
    key: [g]
    window: {type: session, time: day, gap: 2 days}
    streams: {s: {from: sales, aggregates: {v: sum(v)}}}
"""
    bounds = [((1, 1), (1, 5)), ((2, 9), (2, 11))]
    moments = [tuple(datetime(2024, *day, tzinfo=UTC) for day in pair) for pair in bounds]
    assert [
        (r["window_start"], r["window_end"], r["v"])
        for r in kept(Lake(tmp_path, PLAIN + view, spark), "found")
    ] == [(*moments[0], 1), (*moments[1], 5)]


def test_sketches_and_collections_of_maps(tmp_path: Path, spark: "SparkSession") -> None:
    view = """
  found:
    kind: cogroup
    key: [g]
    streams:
      s:
        from: sales
        aggregates:
          tags: collect_list(tags ORDER BY v)
          middle: approx_percentile(v, 0.5)
          ends: approx_percentile(v, array(0.0, 1.0))
          often: approx_top_k(g, 1)
"""
    (found,) = kept(Lake(tmp_path, PLAIN + view, spark), "found")
    assert [sorted(tags) for tags in found["tags"]] == [[("a", ""), ("b", "x")]]
    assert (found["middle"], found["ends"]) == (1, [0, 5])
    assert found["often"] == [{"item": "a", "count": 3}]
