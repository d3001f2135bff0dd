"""Joins within a time held to the contract of views, and their queries in plain Python."""

from collections.abc import Callable
from datetime import timedelta

from hypothesis import strategies as st
from tests.support.contract import Case, by_ways
from tests.support.lake import Row, State
from tests.support.oracle import present
from tests.support.rows import HOUR, NOON, ids, maybe, row

DECLARED = """
sources:
  orders:
    path: "orders/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, k INT, at TIMESTAMP"
  payments:
    path: "payments/{interval_start:%Y-%m-%d}/"
    key: [pid]
    schema: "pid INT, k INT, at TIMESTAMP"
views:
"""
KEEP, WITHIN = 3 * HOUR, HOUR
TIMES = maybe(st.integers(-40, 40).map(lambda n: NOON + n * HOUR / 4))
FEW = maybe(st.integers(1, 2))
ROWS = {
    "orders": row(id=ids, k=FEW, at=TIMES),
    "payments": row(pid=ids, k=FEW, at=TIMES),
}
NOBODY: Row = dict.fromkeys(("id", "k", "at", "pid"))


def view(how: str, more: str = "") -> str:
    shown = "id: o.id" if how in ("semi", "anti") else "id: o.id, pid: p.pid"
    return f"""
  paid:
    kind: join
    type: {how}
    left: {{table: orders, as: o, time: at}}
    right: {{table: payments, as: p, time: at}}
    on: [k]
    within: 1 hour
    select: {{{shown}}}
{more}"""


RETAINED = "    retention: 3 hours\n"


def meet(a: Row, b: Row) -> bool:
    return a["k"] is not None and a["k"] == b["k"] and abs(a["at"] - b["at"]) <= WITHIN


def pairs_of(lefts: list[Row], rights: list[Row], how: str) -> list[tuple[Row, Row]]:
    if how in ("semi", "anti"):
        wanted = how == "semi"
        return [(a, NOBODY) for a in lefts if any(meet(a, b) for b in rights) == wanted]
    pairs = [(a, b) for a in lefts for b in rights if meet(a, b)]
    if how in ("left", "full"):
        pairs += [(a, NOBODY) for a in lefts if not any(meet(a, b) for b in rights)]
    if how in ("right", "full"):
        pairs += [(NOBODY, b) for b in rights if not any(meet(a, b) for a in lefts)]
    return pairs


def query(how: str, keep: timedelta | None) -> Callable[[State], list[Row]]:
    """The pairs of rows with a time; with `keep`, those whose later row is recent enough."""

    def found(state: State) -> list[Row]:
        sides = [[r for r in state[s] if r["at"] is not None] for s in ("orders", "payments")]
        pairs = pairs_of(*sides, how)
        if keep is not None:
            newest = max(present([*sides[0], *sides[1]], "at"), default=NOON)
            pairs = [(a, b) for a, b in pairs if max(present([a, b], "at")) + keep > newest]
        columns = ("id",) if how in ("semi", "anti") else ("id", "pid")
        return [{c: (a if c == "id" else b)[c] for c in columns} for a, b in pairs]

    return found


def case(how: str, keep: timedelta | None, more: str = "") -> Case:
    name = f"{how}, {'for ever' if keep is None else 'expiring'}"
    return Case(name, DECLARED + view(how, more), "paid", ROWS, lambda: query(how, keep))


CASES = [
    case("left", None),
    *[case(how, KEEP, RETAINED) for how in ("inner", "left", "anti")],
    by_ways(case("full", KEEP, RETAINED)),
]
