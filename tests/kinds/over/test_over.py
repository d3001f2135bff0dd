"""Views with window functions against brute force: partitions, orders with ties, frames."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st
from tests.support.contract import Case, hold
from tests.support.lake import Row, State
from tests.support.oracle import column, grouped, ordered, ranked
from tests.support.rows import NOON, groups, ids, numbers, row, words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARED = """
sources:
  sales:
    path: "sales/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, v INT, w STRING"
  lines:
    path: "lines/{interval_start:%Y-%m-%d}/"
    schema: "g STRING, v INT"
views:
"""
SALES = row(id=ids, g=groups, v=numbers, w=words)
LINES = row(
    _sluice_interval=st.just(NOON),
    _sluice_id=st.sampled_from(["p-1", "q-1", "q-2", "r-1"]),
    g=groups,
    v=numbers,
)
ByPartition = Callable[[list[Row]], list[Row]]


def total(rows: list[Row]) -> int | None:
    known = [r["v"] for r in rows if r["v"] is not None]
    return sum(known) if known else None


def steps(rows: list[Row]) -> list[Row]:
    found = ordered(rows, (column("v"), "asc"), (column("id"), "asc"))
    places = [*enumerate(found)]
    return [
        {
            "id": r["id"],
            "place": at + 1,
            "before": found[at - 1]["id"] if at else None,
            "rise": None if not at else minus(r["v"], found[at - 1]["v"]),
            "so_far": total(found[: at + 1]),
            "near": len(found[max(at - 1, 0) : at + 2]),
            "last": found[at]["w"],
        }
        for at, r in places
    ]


def minus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a - b


def ties(rows: list[Row]) -> list[Row]:
    by = (column("v"), "desc nulls last")
    found = ranked(ordered(rows, by), "rank", by)
    return [
        {
            "v": r["v"],
            "rank": rank,
            "upto": total([o for place, o in found if place <= rank]),
            "all": total(rows),
            "n": len(rows),
        }
        for rank, r in found
    ]


def met(rows: list[Row]) -> list[Row]:
    found = ordered([r for r in rows if (r["v"] or 0) > -2], (column("id"), "desc"))
    return [
        {"id": r["id"], "next": found[at + 1]["v"] if at + 1 < len(found) else -9}
        for at, r in enumerate(found)
    ]


def backward(rows: list[Row]) -> list[Row]:
    by = (column("v"), "desc nulls last")
    ranked_rows = ranked(ordered(rows, by, (column("id"), "asc")), "rank", by)
    found = [r for _, r in ranked_rows]
    return [
        {
            "id": r["id"],
            "place": at + 1,
            "rank": rank,
            "before": found[at - 1]["w"] if at else None,
            "two": found[at - 2]["id"] if at > 1 else -9,
            "so_far": total(found[: at + 1]),
            "upto": total([o for place, o in ranked_rows if place <= rank]),
            "n": sum(o["v"] is not None for o in found[: at + 1]),
            "least": min(texts(found[: at + 1]), default=None),
            "most": max(texts([o for p, o in ranked_rows if p <= rank]), default=None),
            "near": sum(o["id"] for o in found[max(at - 2, 0) : at + 1]),
            "last": r["w"],
            "above": some([o["v"] > 0 for o in found[: at + 1] if o["v"] is not None]),
        }
        for at, (rank, r) in enumerate(ranked_rows)
    ]


def texts(rows: list[Row]) -> list[str]:
    return [r["w"] for r in rows if r["w"] is not None]


def some(known: list[bool]) -> bool | None:
    return any(known) if known else None


def case(name: str, source: str, by: str, of: ByPartition, *columns: Any, more: str = "") -> Case:
    def query(state: State) -> list[Row]:
        parts = grouped(state[source], *columns).values()
        return [found for rows in parts for found in of(rows)]

    view = f"  seen: {{kind: over, from: {source}, {by}{more}}}\n"
    rows = {"sales": SALES, "lines": LINES}[source]
    return Case(name, DECLARED + view, "seen", {source: rows}, lambda: query)


STEPS = (
    "partition_by: [g], order_by: [v], select: {id: id, place: row_number() OVER w, "
    "before: lag(id) OVER w, rise: v - lag(v) OVER w, "
    "so_far: sum(v) OVER (w ROWS UNBOUNDED PRECEDING), "
    "near: count(*) OVER (w ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING), "
    "last: last_value(w) OVER w}"
)
TIES = (
    "partition_by: ['g', 'v > 0'], order_by: [v desc], select: {v: v, rank: rank() OVER w, "
    "upto: sum(v) OVER w, all: sum(v) OVER p, n: count(*) OVER p}"
)
BACKWARD = (
    "partition_by: [g], order_by: [v desc], select: {id: id, place: row_number() OVER w, "
    "rank: rank() OVER w, before: lag(w) OVER w, two: 'lag(id, 2, -9) OVER w', "
    "so_far: sum(v) OVER (w ROWS UNBOUNDED PRECEDING), upto: sum(v) OVER w, "
    "n: count(v) OVER (w ROWS UNBOUNDED PRECEDING), "
    "least: min(w) OVER (w ROWS UNBOUNDED PRECEDING), most: max(w) OVER w, "
    "near: sum(id) OVER (w ROWS 2 PRECEDING), last: last_value(w) OVER w, "
    "above: bool_or(v > 0) OVER (w ROWS UNBOUNDED PRECEDING)}"
)
CASES = [
    case("rows around, in places that the key decides", "sales", STEPS, steps, column("g")),
    case(
        "ties that share their value, without a key",
        "lines",
        TIES,
        ties,
        column("g"),
        lambda r: None if r["v"] is None else r["v"] > 0,
    ),
    case("rows before, with ties that share places", "sales", BACKWARD, backward, column("g")),
    case(
        "one partition, and a condition",
        "sales",
        "order_by: [id desc], where: 'coalesce(v, 0) > -2', "
        "select: {id: id, next: 'lead(v, 1, -9) OVER w'}",
        met,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_rows_equal_the_query_after_any_batches(case: Case, spark: "SparkSession") -> None:
    hold(case, spark)
