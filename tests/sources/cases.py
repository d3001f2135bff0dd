"""Sources held to the contract of views, and their rows in plain Python."""

from datetime import timedelta

from hypothesis import strategies as st
from tests.support.contract import Case, Query, by_ways
from tests.support.lake import Row, State, frozen
from tests.support.oracle import column, grouped, ordered
from tests.support.rows import NOON, maybe, numbers, row

DECLARED = """
sources:
  by_place:
    path: "p/{interval_start:%Y-%m-%d}/"
    schema: "k STRING, v INT"
    key: [k]
  by_sequence:
    path: "s/{interval_start:%Y-%m-%d}/"
    schema: "k STRING, v INT, n INT, op STRING"
    key: [k]
    sequence: [n]
    change: {column: op, insert: [c], update: [u], delete: [d]}
  counted:
    path: "c/{interval_start:%Y-%m-%d}/"
    schema: "k STRING, v INT, op STRING"
    change: {column: op, insert: [c], update: [u], update_before: [b], delete: [d]}
views:
"""
INTERVALS = [NOON + i * timedelta(days=1) for i in range(3)]
PLACE = (column("_sluice_interval"), "asc"), (column("_sluice_position"), "asc")
ID = (column("_sluice_id"), "asc")


def delivered(**columns: st.SearchStrategy[object]) -> st.SearchStrategy[Row]:
    """A delivered row; at most two rows of a key lie in an interval."""
    return row(
        _sluice_interval=st.sampled_from(INTERVALS),
        _sluice_id=st.sampled_from(["a-1", "b-1", "c-1", "d-1"]),
        _sluice_position=st.integers(1, 2),
        v=numbers,
        **columns,
    )


KEYS, OPS = st.sampled_from(["p", "q"]), st.sampled_from(["insert", "insert", "delete"])
ROWS = {
    "by_place": delivered(k=KEYS, _sluice_op=st.just("insert")),
    "by_sequence": delivered(k=KEYS, _sluice_op=OPS, n=maybe(st.integers(0, 2))),
    "counted": delivered(k=maybe(KEYS), _sluice_op=OPS),
}


def latest(rows: list[Row], *order: object) -> list[Row]:
    last = [ordered(r, *order, *PLACE, ID)[-1] for r in grouped(rows, column("k")).values()]
    return [r for r in last if r["_sluice_op"] != "delete"]


def by_place(state: State) -> list[Row]:
    return [{"k": r["k"], "v": r["v"]} for r in latest(state["by_place__deliveries"])]


def by_sequence(state: State) -> list[Row]:
    rows = latest(state["by_sequence__deliveries"], (column("n"), "asc"))
    return [{c: r[c] for c in ("k", "v", "n")} for r in rows]


def counted(state: State) -> list[Row]:
    copies: dict[object, int] = {}
    rows = {}
    for r in state["counted__deliveries"]:
        values = {"k": r["k"], "v": r["v"]}
        rows[frozen(values)] = values
        sign = -1 if r["_sluice_op"] == "delete" else 1
        copies[frozen(values)] = copies.get(frozen(values), 0) + sign
    return [rows[values] for values, n in copies.items() for _ in range(n)]


def case(name: str, source: str, query: Query) -> Case:
    rows = {f"{source}__deliveries": ROWS[source]}
    return Case(name, DECLARED, source, rows, lambda: query)


CASES = [
    case("the last delivery of a key stands", "by_place", by_place),
    by_ways(case("the last by a sequence stands, deletes hide", "by_sequence", by_sequence)),
    case("without a key, inserts exceed deletes", "counted", counted),
]
