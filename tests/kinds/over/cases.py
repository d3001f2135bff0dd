"""Overs held to the contract of views, and their queries in plain Python."""

from collections.abc import Callable
from statistics import median
from typing import Any

from hypothesis import strategies as st
from tests.support.contract import Case, by_spark, by_ways
from tests.support.lake import Row, State
from tests.support.oracle import column, grouped, ordered, ranked
from tests.support.rows import HOUR, NOON, groups, ids, numbers, row, times, words

DECLARED = """
sources:
  sales:
    path: "sales/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, v INT, w STRING"
  lines:
    path: "lines/{interval_start:%Y-%m-%d}/"
    schema: "g STRING, v INT"
  visits:
    path: "visits/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, v INT, at TIMESTAMP"
views:
"""
SALES = row(id=ids, g=groups, v=numbers, w=words)
LINES = row(
    _sluice_interval=st.just(NOON),
    _sluice_id=st.sampled_from(["p-1", "q-1", "q-2", "r-1"]),
    g=groups,
    v=numbers,
)
VISITS = row(id=ids, g=groups, v=numbers, at=times)
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


def near(rows: list[Row]) -> list[Row]:
    """Rows by the values of the order that are at most so far away; null is near null alone."""

    def within(r: Row, least: int, most: int) -> list[Row]:
        if r["v"] is None:
            return [o for o in rows if o["v"] is None]
        return [o for o in rows if o["v"] is not None and least <= r["v"] - o["v"] <= most]

    return [
        {
            "id": r["id"],
            "n": len(within(r, -1, 1)),
            "most": max(texts(within(r, -2, 0)), default=None),
            "below": total(within(r, 1, 2)) if r["v"] is not None else None,
        }
        for r in rows
    ]


def recent(rows: list[Row]) -> list[Row]:
    def before(r: Row) -> list[Row]:
        if r["at"] is None:
            return [o for o in rows if o["at"] is None]
        known = [o for o in rows if o["at"] is not None]
        return [o for o in known if r["at"] - 2 * HOUR <= o["at"] <= r["at"]]

    return [{"id": r["id"], "so_far": total(before(r)), "n": len(before(r))} for r in rows]


def known(rows: list[Row]) -> list[Row]:
    """Values of rows before that are not null, and aggregates beyond sums."""
    found = ordered(rows, (column("id"), "asc"))
    return [
        {
            "id": r["id"],
            "last": ([None, *texts(found[: at + 1])])[-1],
            "before": ([-9, -9, *_numbers(found[:at])])[-2],
            "next": [*_numbers(found[at + 1 :]), None][0],
            "above": sum(v > 0 for v in _numbers(found[: at + 1])),
            "two": texts(found[max(at - 1, 0) : at + 1]),
            "best": _of_most(found[: at + 1]),
            "middle": median(_numbers(rows)) if _numbers(rows) else None,
        }
        for at, r in enumerate(found)
    ]


def _numbers(rows: list[Row]) -> list[int]:
    return [r["v"] for r in rows if r["v"] is not None]


def _of_most(rows: list[Row]) -> str | None:
    """The word of the last of the rows with the greatest number."""
    numbered = [r for r in rows if r["v"] is not None]
    most = max((r["v"] for r in numbered), default=None)
    return next((r["w"] for r in reversed(numbered) if r["v"] == most), None)


def texts(rows: list[Row]) -> list[str]:
    return [r["w"] for r in rows if r["w"] is not None]


def some(known: list[bool]) -> bool | None:
    return any(known) if known else None


def case(name: str, source: str, by: str, of: ByPartition, *columns: Any, more: str = "") -> Case:
    def query(state: State) -> list[Row]:
        parts = grouped(state[source], *columns).values()
        return [found for rows in parts for found in of(rows)]

    view = f"  seen: {{kind: over, from: {source}, {by}{more}}}\n"
    rows = {"sales": SALES, "lines": LINES, "visits": VISITS}[source]
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
NEAR = (
    "partition_by: [g], order_by: [v desc], select: {id: id, "
    "n: count(*) OVER (w RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING), "
    "most: max(w) OVER (w RANGE 2 PRECEDING), "
    "below: sum(v) OVER (w RANGE BETWEEN 1 FOLLOWING AND 2 FOLLOWING)}"
)
RECENT = (
    "partition_by: [g], order_by: [at], select: {id: id, "
    "so_far: sum(v) OVER (w RANGE INTERVAL 2 HOURS PRECEDING), "
    "n: count(*) OVER (w RANGE BETWEEN INTERVAL 120 MINUTES PRECEDING AND CURRENT ROW)}"
)
KNOWN = (
    "partition_by: [g], order_by: [id], select: {id: id, "
    "last: last_value(w) IGNORE NULLS OVER w, before: 'lag(v, 2, -9) IGNORE NULLS OVER w', "
    "next: lead(v) IGNORE NULLS OVER w, above: count_if(v > 0) OVER w, "
    "two: collect_list(w) OVER (w ROWS 1 PRECEDING), "
    "best: 'max_by(w, v) OVER (w ROWS UNBOUNDED PRECEDING)', "
    "middle: 'percentile(v, 0.5) OVER p'}"
)
CASES = [
    case("rows near in the values of the order", "sales", NEAR, near, column("g")),
    case("rows near in time", "visits", RECENT, recent, column("g")),
    by_spark(
        case("values that are not null, and further aggregates", "sales", KNOWN, known, column("g"))
    ),
    case("rows around, in places that the key decides", "sales", STEPS, steps, column("g")),
    case(
        "ties that share their value, without a key",
        "lines",
        TIES,
        ties,
        column("g"),
        lambda r: None if r["v"] is None else r["v"] > 0,
    ),
    by_ways(
        case("rows before, with ties that share places", "sales", BACKWARD, backward, column("g"))
    ),
    case(
        "one partition, and a condition",
        "sales",
        "order_by: [id desc], where: 'coalesce(v, 0) > -2', "
        "select: {id: id, next: 'lead(v, 1, -9) OVER w'}",
        met,
    ),
]
