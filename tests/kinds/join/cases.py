"""Joins held to the contract of views, and their queries in plain Python."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from tests.support.contract import Case, by_ways
from tests.support.lake import Row, State
from tests.support.rows import NOON, ids, maybe, numbers, row, words

DECLARED = """
sources:
  orders:
    path: "orders/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, k INT, g STRING, v INT"
  people:
    path: "people/{interval_start:%Y-%m-%d}/"
    key: [pid]
    schema: "pid INT, k BIGINT, w STRING, n INT"
  lines:
    path: "lines/{interval_start:%Y-%m-%d}/"
    schema: "k INT, v INT"
views:
"""
few = maybe(st.integers(1, 3))
ORDERS = row(id=ids, k=few, g=words, v=numbers)
PEOPLE = row(pid=st.integers(1, 5), k=few, w=words, n=numbers)
LINES = row(
    _sluice_interval=st.just(NOON),
    _sluice_id=st.sampled_from(["p-1", "q-1", "q-2", "r-1"]),
    k=few,
    v=numbers,
)
Matches = Callable[[Row, Row], bool]
NOBODY: Row = dict.fromkeys(("id", "k", "g", "v", "pid", "w", "n"))


def equal(*names: str) -> Matches:
    return lambda a, b: all(a[n] is not None and a[n] == b[n] for n in names)


def joined(lefts: list[Row], rights: list[Row], how: str, met: Matches) -> list[tuple[Row, Row]]:
    pairs = [(a, b) for a in lefts for b in rights if met(a, b)]
    if how in ("left", "full"):
        pairs += [(a, NOBODY) for a in lefts if not any(met(a, b) for b in rights)]
    if how in ("right", "full"):
        pairs += [(NOBODY, b) for b in rights if not any(met(a, b) for a in lefts)]
    return pairs


def case(how: str, on: str, met: Matches, more: str = "") -> Case:
    def query(state: State) -> list[Row]:
        pairs = joined(state["orders"], state["people"], how, met)
        return [{"id": a["id"], "v": a["v"], "pid": b["pid"], "w": b["w"]} for a, b in pairs]

    shown = "select: {id: orders.id, v: orders.v, pid: people.pid, w: people.w}"
    view = f"{{kind: join, left: orders, right: people, type: {how}, on: {on}, {shown}{more}}}"
    return declared(f"{how} on {on}", view, query, orders=ORDERS, people=PEOPLE)


def declared(name: str, view: str, query: Any, **rows: Any) -> Case:
    return Case(name, f"{DECLARED}  both: {view}\n", "both", rows, lambda: query)


def by_existence(state: State, *, wanted: bool) -> list[Row]:
    met = equal("k")
    return [r for r in state["orders"] if any(met(r, p) for p in state["people"]) == wanted]


def with_condition(a: Row, b: Row) -> bool:
    return equal("k")(a, b) and None not in (a["v"], b["n"]) and bool(a["v"] > b["n"])


def either_key(state: State) -> list[Row]:
    pairs = joined(state["orders"], state["people"], "full", equal("k"))
    shown = ("id", "g", "v", "pid", "w", "n")
    return [
        {**{c: (a if c in ("id", "g", "v") else b)[c] for c in shown}, "k": a["k"] or b["k"]}
        for a, b in pairs
    ]


def of_itself(state: State) -> list[Row]:
    pairs = joined(state["lines"], state["lines"], "inner", equal("k"))
    return [{"v": a["v"], "other": b["v"]} for a, b in pairs]


def by_expressions(state: State) -> list[Row]:
    def met(a: Row, b: Row) -> bool:
        return None not in (a["v"], b["n"], a["g"]) and a["v"] + 1 == b["n"] and a["g"] == b["w"]

    return [
        {"id": a["id"], "pid": b["pid"]}
        for a, b in joined(state["orders"], state["people"], "left", met)
    ]


def of_null_keys(state: State) -> list[Row]:
    sides = [[{"k": k} for k in {r["k"] for r in state[name]}] for name in ("orders", "people")]
    return [{"a": a["k"], "b": b["k"]} for a, b in joined(*sides, "full", equal("k"))]


NULL_KEYS = """\
  ks: {kind: select, from: orders, select: {k: k}, distinct: true}
  ps: {kind: select, from: people, select: {k: k}, distinct: true}
  both: {kind: join, left: ks, right: ps, type: full, on: [k], select: {a: ks.k, b: ps.k}}
"""
SELF = (
    "{kind: join, left: {table: lines, as: a}, right: {table: lines, as: b}, on: a.k = b.k, "
    "select: {v: a.v, other: b.v}}"
)
CASES = [
    case("inner", "[k]", equal("k")),
    case("left", "orders.k = people.k", equal("k")),
    case("right", "people.k = orders.k", equal("k"), ", where: people.n is null or people.n < 9"),
    by_ways(case("full", "[k]", with_condition, ", where: orders.v > people.n")),
    declared(
        "full, all columns",
        "{kind: join, left: orders, right: people, type: full, on: k}",
        either_key,
        orders=ORDERS,
        people=PEOPLE,
    ),
    declared(
        "semi",
        "{kind: join, left: orders, right: people, type: semi, on: [k]}",
        lambda state: by_existence(state, wanted=True),
        orders=ORDERS,
        people=PEOPLE,
    ),
    declared(
        "anti",
        "{kind: join, left: orders, right: people, type: anti, on: [k]}",
        lambda state: by_existence(state, wanted=False),
        orders=ORDERS,
        people=PEOPLE,
    ),
    Case(
        "full, with keys that may be null",
        DECLARED + NULL_KEYS,
        "both",
        {"orders": ORDERS, "people": PEOPLE},
        lambda: of_null_keys,
    ),
    declared("a table with itself, without a key", SELF, of_itself, lines=LINES),
    declared(
        "left on expressions",
        "{kind: join, left: orders, right: people, type: left, select: {id: orders.id, pid: "
        "people.pid}, on: [orders.v + 1 = people.n, orders.g = people.w]}",
        by_expressions,
        orders=ORDERS,
        people=PEOPLE,
    ),
]
