"""Unions against brute force: all rows of all inputs."""

from datetime import UTC, datetime
from decimal import Decimal

from hypothesis import strategies as st
from tests.support.contract import Case, Query, held
from tests.support.lake import Row, State
from tests.support.rows import NOON, groups, ids, money, numbers, row

DECLARED = """
sources:
  sales:
    path: "sales/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, v INT"
  returns:
    path: "returns/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, m DECIMAL(6,2)"
  lines:
    path: "lines/{interval_start:%Y-%m-%d}/"
    schema: "g STRING, v BIGINT"
views:
"""
SALES = row(id=ids, g=groups, v=numbers)
RETURNS = row(id=ids, g=groups, m=money)
LINES = row(
    _sluice_interval=st.just(NOON),
    _sluice_id=st.sampled_from(["p-1", "q-1", "r-1"]),
    g=groups,
    v=numbers,
)


def of_one_key(state: State) -> list[Row]:
    sold = [{"kind": "sales", "id": r["id"], "amount": _exact(r["v"])} for r in state["sales"]]
    back = [
        {"kind": "returns", "id": r["id"], "amount": -r["m"]}
        for r in state["returns"]
        if r["m"] is not None
    ]
    return sold + back


def _exact(value: int | None) -> Decimal | None:
    return None if value is None else Decimal(value).quantize(Decimal("0.01"))


def of_other_keys(state: State) -> list[Row]:
    return [{"g": r["g"], "v": r["v"]} for name in ("sales", "lines") for r in state[name]]


def _of(sale: Row) -> Row:
    return {"g": sale["g"], "v": sale["v"]}


def twice(state: State) -> list[Row]:
    low = [{"part": "low", **_of(r)} for r in state["sales"] if (r["v"] or 0) < 2]
    high = [{"part": "sales", **_of(r), "g": None} for r in state["sales"] if (r["v"] or 0) > -2]
    return low + high


def case(name: str, query: Query, parts: str, sources: tuple[str, ...]) -> Case:
    view = f"  both: {{kind: union, from: {parts}}}\n"
    rows = {"sales": SALES, "returns": RETURNS, "lines": LINES}
    return Case(name, DECLARED + view, "both", {s: rows[s] for s in sources}, lambda: query)


def of_unions(state: State) -> list[Row]:
    both = [{"g": r["g"], "v": r["v"]} for r in state["sales"] * 2]
    return [r for r in both if (r["v"] or 0) > 0] + both


def of_wider_types(state: State) -> list[Row]:
    sold = [{"n": _float(r["v"]), "at": _midnight(r["id"])} for r in state["sales"]]
    return sold + [{"n": _float(r["v"]), "at": NOON} for r in state["lines"]]


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


def _midnight(day: int) -> datetime:
    return datetime(2024, 1, day, tzinfo=UTC)


WIDER = (
    "[{table: sales, select: {n: double(v), at: 'make_date(2024, 1, id)'}}, "
    "{table: lines, select: {n: v, at: \"timestamp '2024-01-01 12:00:00'\"}}]"
)
NESTED = """\
  part: {kind: select, from: sales, select: {g: g, v: v}}
  u: {kind: union, from: [part, part]}
  both: {kind: union, from: [{table: u, where: v > 0}, u]}
"""
CASES = [
    case("types that Spark widens", of_wider_types, WIDER, ("sales", "lines")),
    case(
        "the same key, a tag, types that widen",
        of_one_key,
        "[{table: sales, select: {id: id, amount: v}}, "
        "{table: returns, where: m is not null, select: {id: id, amount: -m}}], tag: kind",
        ("sales", "returns"),
    ),
    case(
        "a key, and none",
        of_other_keys,
        "[{table: sales, select: {g: g, v: v}}, lines]",
        ("sales", "lines"),
    ),
    Case("a union of unions", DECLARED + NESTED, "both", {"sales": SALES}, lambda: of_unions),
    case(
        "one table twice",
        twice,
        '[{table: sales, as: low, where: "coalesce(v, 0) < 2", select: {g: g, v: v}}, '
        '{table: sales, where: "coalesce(v, 0) > -2", select: {g: "cast(null as string)", v: v}}], '
        "tag: part",
        ("sales",),
    ),
]


test_the_rows_equal_the_query_after_any_batches, test_by_either_engine = held(CASES)
