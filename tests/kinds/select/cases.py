"""Selects held to the contract of views, and their queries in plain Python."""

from hypothesis import strategies as st
from tests.support.contract import Case, Query, by_ways
from tests.support.lake import Row, State
from tests.support.rows import NOON, groups, ids, money, numbers, row, words

DECLARED = """
sources:
  sales:
    path: "sales/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, v INT, m DECIMAL(6,2), w STRING"
  lines:
    path: "lines/{interval_start:%Y-%m-%d}/"
    schema: "g STRING, v INT"
views:
"""
SALES = row(id=ids, g=groups, v=numbers, m=money, w=words)
LINES = row(
    _sluice_interval=st.just(NOON),
    _sluice_id=st.sampled_from(["p-1", "q-1", "q-2", "r-1"]),
    g=groups,
    v=numbers,
)


def positive(state: State) -> list[Row]:
    return [r for r in state["sales"] if r["v"] is not None and r["v"] > 0]


def doubled(state: State) -> list[Row]:
    found = (r for r in state["sales"] if r["g"] == "a" or r["w"] == "x")
    return [{"name": r["w"], "twice": None if r["v"] is None else r["v"] * 2} for r in found]


def renamed(state: State) -> list[Row]:
    return [{"id": r["v"], "number": r["id"]} for r in state["sales"]]


def lines_of_a(state: State) -> list[Row]:
    return [{"v": r["v"]} for r in state["lines"] if r["g"] == "a"]


def pairs(state: State) -> list[Row]:
    found = {(r["g"], (r["v"] or 0) > 0) for r in state["sales"]}
    return [{"g": g, "is_positive": p} for g, p in found]


def all_distinct(state: State) -> list[Row]:
    return [{"g": g, "v": v} for g, v in {(r["g"], r["v"]) for r in state["lines"]}]


def spread(state: State) -> list[Row]:
    """Each number up to a positive v, with its place; nothing for others."""
    numbers = ((r, n) for r in state["sales"] for n in range(1, (r["v"] or 0) + 1))
    return [{"id": r["id"], "n": n, "nth": n - 1} for r, n in numbers if n != 2]


def spread_outer(state: State) -> list[Row]:
    every = ((r["g"], range(1, (r["v"] or 0) + 1)) for r in state["sales"])
    some = [{"g": g, "n": n, "next": n + 1} for g, numbers in every for n in numbers]
    none = [r for r in state["sales"] if (r["v"] or 0) < 1]
    return [*some, *({"g": r["g"], "n": None, "next": None} for r in none)]


def spread_twice(state: State) -> list[Row]:
    ones = (r for r in state["sales"] for n in range(1, (r["v"] or 0) + 1) if n < 3)
    return [{"g": r["g"], "x": x} for r in ones for x in ("p", "q", "p")]


def spread_distinct(state: State) -> list[Row]:
    found = {(r["g"], n) for r in state["sales"] for n in range(1, (r["v"] or 0) + 1)}
    return [{"g": g, "n": n} for g, n in found]


def case(name: str, query: Query, settings: str, source: str = "sales") -> Case:
    view = f"  chosen: {{kind: select, from: {source}{settings}}}\n"
    rows = {"sales": SALES, "lines": LINES}[source]
    return Case(name, DECLARED + view, "chosen", {source: rows}, lambda: query)


UP_TO_V = "filter(sequence(0, coalesce(greatest(v, 0), 0)), x -> x > 0)"
TWICE = """\
  few: {kind: select, from: sales, explode: {of: "%s", as: n}, where: n < 3}
  chosen:
    kind: select
    from: few
    explode: {of: "array('p', 'q', 'p')", as: x}
    select: {g: g, x: x}
"""
CASES = [
    case("a condition", positive, ", where: v > 0"),
    case(
        "expressions, the key left out",
        doubled,
        ", where: \"g = 'a' or w = 'x'\", select: {name: w, twice: v * 2}",
    ),
    case("a key under another name", renamed, ", select: {id: v, number: id}"),
    case("rows without a key", lines_of_a, ", where: g = 'a', select: {v: v}", "lines"),
    by_ways(
        case(
            "distinct expressions",
            pairs,
            ', distinct: true, select: {g: g, is_positive: "coalesce(v, 0) > 0"}',
        )
    ),
    case(
        "elements with their places",
        spread,
        f', explode: {{of: "{UP_TO_V}", as: n, position: nth}}, where: n <> 2, '
        "select: {id: id, n: n, nth: nth}",
    ),
    case(
        "elements, and rows without any",
        spread_outer,
        f', explode: {{of: "{UP_TO_V}", as: n, outer: true}}, select: {{g: g, n: n, next: n + 1}}',
    ),
    case(
        "distinct elements",
        spread_distinct,
        f', explode: {{of: "{UP_TO_V}", as: n}}, distinct: true, select: {{g: g, n: n}}',
    ),
    Case(
        "elements of elements",
        DECLARED + TWICE % UP_TO_V,
        "chosen",
        {"sales": SALES},
        lambda: spread_twice,
    ),
    case("distinct whole rows", all_distinct, ", distinct: true", "lines"),
]
