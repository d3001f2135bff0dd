"""Window stores held to the contract of views, and their queries in plain Python."""

from datetime import timedelta

from hypothesis import strategies as st
from tests.support.contract import Case, Query, by_ways
from tests.support.lake import Row, State
from tests.support.oracle import column, grouped, ordered
from tests.support.rows import NOON, groups, ids, maybe, money, numbers, row, words

DECLARED = """
sources:
  traces:
    path: "traces/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, v INT, m DECIMAL(6,2), w STRING, at TIMESTAMP"
  lines:
    path: "lines/{interval_start:%Y-%m-%d}/"
    schema: "g STRING, v INT, at TIMESTAMP"
  points:
    path: "points/{interval_start:%Y-%m-%d}/"
    key: [g, at]
    schema: "g STRING, v INT, at TIMESTAMP"
views:
"""
FEW_TIMES = maybe(
    st.sampled_from([NOON, NOON + timedelta(microseconds=1), NOON - timedelta(days=1)])
)
TRACES = row(id=ids, g=groups, v=numbers, m=money, w=words, at=FEW_TIMES)
LINES = row(
    _sluice_interval=st.just(NOON),
    _sluice_id=st.sampled_from(["p-1", "q-1", "q-2", "r-1"]),
    g=groups,
    v=numbers,
    at=FEW_TIMES,
)
POINTS = row(g=groups, v=numbers, at=FEW_TIMES)
SHOWN = ("g", "window_start", "id", "v", "m", "w")


def started(rows: list[Row]) -> list[Row]:
    """Rows that have a time, which is their window's start."""
    return [{**r, "window_start": r["at"]} for r in rows if r["at"] is not None]


def last_of_each(rows: list[Row], *order: tuple[str, str]) -> list[Row]:
    keys = [(column(name), how) for name, how in order]
    found = grouped(started(rows), column("g"), column("at")).values()
    return [ordered(tied, *keys)[-1] for tied in found]


def by_key(state: State) -> list[Row]:
    found = last_of_each(state["traces"], ("id", "asc"))
    return [{c: r[c] for c in SHOWN} for r in found]


def by_sequence(state: State) -> list[Row]:
    found = last_of_each(state["traces"], ("v", "asc"), ("w", "desc nulls first"), ("id", "asc"))
    length = timedelta(minutes=30)
    return [
        {
            "g": r["g"],
            "window_start": r["at"],
            "window_end": r["at"] + length,
            "cents": None if r["m"] is None else r["m"] * 100,
        }
        for r in found
    ]


def of_lines(state: State) -> list[Row]:
    found = last_of_each(state["lines"], ("v", "asc"), ("_sluice_id", "asc"))
    return [{"g": r["g"], "window_start": r["at"], "v": r["v"]} for r in found]


def all_of_them(state: State) -> list[Row]:
    return [{c: r[c] for c in SHOWN} for r in started(state["traces"])]


def low(state: State) -> list[Row]:
    return [r for r in all_of_them(state) if r["v"] is not None and r["v"] < 2]


def all_lines(state: State) -> list[Row]:
    return [{c: r[c] for c in ("g", "window_start", "v")} for r in started(state["lines"])]


def all_points(state: State) -> list[Row]:
    return [{c: r[c] for c in ("g", "window_start", "v")} for r in started(state["points"])]


def case(name: str, query: Query, settings: str, source: str = "traces") -> Case:
    view = f"  store: {{kind: window_store, from: {source}, key: [g], time: at{settings}}}\n"
    rows = {"traces": TRACES, "lines": LINES, "points": POINTS}[source]
    return Case(name, DECLARED + view, "store", {source: rows}, lambda: query)


CASES = [
    case("the last by the input's key stands", by_key, ""),
    case(
        "the last by a sequence stands, with its window's end and a select",
        by_sequence,
        ", sequence: [v, w desc nulls first], window: 30 minutes, select: {cents: m * 100}",
    ),
    case("the last of rows without a key", of_lines, ", sequence: [v]", "lines"),
    by_ways(case("duplicates are kept", all_of_them, ", duplicates: true")),
    case("a key and time that are the input's key", all_points, "", "points"),
    case("rows that meet a condition", low, ", where: v < 2, duplicates: true"),
    case("duplicates without a key are kept", all_lines, ", duplicates: true", "lines"),
]
