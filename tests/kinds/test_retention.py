"""Retention against brute force: what lives depends on the rows, not on when they came."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import strategies as st
from tests.support.contract import BY_SPARK, Case, Query, held
from tests.support.lake import NewLake, Row, State
from tests.support.oracle import column, grouped, in_sessions, present, top, windowed, windows_of
from tests.support.rows import NOON, groups, ids, maybe, numbers, row

from sluice.limits import Limits

DECLARED = """
sources:
  sales:
    path: "sales/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, v INT, at TIMESTAMP"
  clicks:
    path: "clicks/{interval_start:%Y-%m-%d}/"
    schema: "g STRING, at TIMESTAMP"
views:
"""
HOUR = timedelta(hours=1)
TIMES = maybe(st.integers(-40, 40).map(lambda n: NOON + n * HOUR / 4))
ROWS = {
    "sales": row(id=ids, g=groups, v=numbers, at=TIMES),
    "clicks": row(
        _sluice_interval=st.just(NOON),
        _sluice_id=st.sampled_from(["p-1", "q-1", "q-2"]),
        g=groups,
        at=TIMES,
    ),
}
BY = [column(c) for c in ("window_start", "window_end", "g")]


def living(rows: list[Row], state: State, keep: timedelta, *sources: str) -> list[Row]:
    """Those whose window ends less than `keep` before the latest time of any current row."""
    times = [time for source in sources for time in present(state[source], "at")]
    return [r for r in rows if r["window_end"] + keep > max(times)]


def counts_of(rows: list[Row], clicks: list[Row]) -> list[Row]:
    sold, clicked = grouped(rows, *BY), grouped(clicks, *BY)
    return [
        {
            "window_start": start,
            "window_end": end,
            "g": g,
            "n": len(sold.get((start, end, g), [])),
            "clicks": len(clicked.get((start, end, g), [])),
        }
        for start, end, g in sold.keys() | clicked.keys()
    ]


def tumbling(state: State) -> list[Row]:
    windows = windows_of(2 * HOUR)
    rows, clicks = (windowed(state[s], "at", windows) for s in ("sales", "clicks"))
    return living(counts_of(rows, clicks), state, 3 * HOUR, "sales", "clicks")


def sessions(state: State) -> list[Row]:
    both = [*state["sales"], *({**r, "clicked": True} for r in state["clicks"])]
    rows = in_sessions(both, [column("g")], column("at"), HOUR)
    clicks = [r for r in rows if "clicked" in r]
    found = counts_of([r for r in rows if "clicked" not in r], clicks)
    return living(found, state, 3 * HOUR, "sales", "clicks")


def best(state: State) -> list[Row]:
    rows = windowed(state["sales"], "at", windows_of(2 * HOUR, HOUR))
    alive = living(rows, state, 3 * HOUR, "sales")
    ranked = top(alive, [column("window_start")], [(column("v"), "desc")], ["id"], 1)
    columns = ("window_start", "window_end", "v")
    return [{**{c: r[c] for c in columns}, "rank": rank} for rank, r in ranked]


def recent(state: State) -> list[Row]:
    """Rows whose time is less than three hours before the latest."""
    times = present(state["sales"], "at")
    started = [{**r, "window_start": r["at"]} for r in state["sales"] if r["at"] is not None]
    return [r for r in started if r["at"] + 3 * HOUR > max(times)]


def all_recent(state: State) -> list[Row]:
    return [{c: r[c] for c in ("g", "window_start", "id", "v")} for r in recent(state)]


def last_recent(state: State) -> list[Row]:
    found = grouped(recent(state), column("g"), column("at")).values()
    last = [max(tied, key=column("id")) for tied in found]
    return [{c: r[c] for c in ("g", "window_start", "id", "v")} for r in last]


def cogroup(window: str, last: str) -> str:
    return f"""
  found:
    kind: cogroup
    key: [g]
    window: {{time: at, {window}}}
    retention: 3 hours
    streams:
      sold: {{from: sales, aggregates: {{n: "count(*)"}}}}
      clicked: {{from: clicks, aggregates: {{clicks: "{last}"}}}}
"""


TOP = """
  found:
    kind: topk
    from: sales
    order_by: [v desc]
    limit: 1
    select: {v: v}
    window: {type: hopping, time: at, size: 2 hours, advance: 1 hour}
    retention: 3 hours
"""


def store(settings: str) -> str:
    return f"""
  found: {{kind: window_store, from: sales, key: [g], time: at, retention: 3 hours{settings}}}
"""


MARKED = {"merged_bytes": -1, "marked_share": 1_000}


def case(name: str, query: Query, view: str, *sources: str) -> Case:
    rows = {source: ROWS[source] for source in sources}
    return Case(name, DECLARED + view, "found", rows, lambda: query)


BOTH = ("sales", "clicks")
CASES = [
    case(
        "windows that add and subtract",
        tumbling,
        cogroup("type: tumbling, size: 2 hours", "count(*)"),
        *BOTH,
    ),
    replace(
        case(
            "windows whose rows are found in a large state",
            tumbling,
            cogroup("type: tumbling, size: 2 hours", "count(*)"),
            *BOTH,
        ),
        ways=({"read_here_bytes": -1}, {"read_here_bytes": -1, **MARKED}),
    ),
    case("sessions", sessions, cogroup("type: session, gap: 1 hour", "count(*)"), *BOTH),
    case("a ranking per hopping window", best, TOP, "sales"),
    case("a store of all rows", all_recent, store(", duplicates: true"), "sales"),
    case("a store of the last row of each time", last_recent, store(""), "sales"),
    replace(
        case("a store that marks rows", all_recent, store(", duplicates: true"), "sales"),
        ways=(MARKED, {**MARKED, **BY_SPARK}),
    ),
]


LATE = [{"id": i, "g": "p", "v": i, "at": NOON - i * HOUR} for i in (0, 9, 10)]


@pytest.mark.parametrize(
    ("window", "left"),
    [("type: tumbling, size: 2 hours", [1, 1]), ("type: session, gap: 90 minutes", [2])],
)
def test_rows_that_come_too_late_are_counted(
    new_lake: NewLake, window: str, left: list[int]
) -> None:
    lake = new_lake(DECLARED + cogroup(window, "count(*)"))
    lake.put("clicks")
    lake.put("sales", *LATE)
    assert [r.expired for r in lake.advance()] == [2, 0], "of the first rows"
    lake.put("sales", {"id": 1, "g": "p", "at": NOON - HOUR}, {**LATE[1], "id": 8})
    assert [r.expired for r in lake.advance()] == [1, 0], "of those that come later"
    lake.put("sales", {**LATE[2], "at": NOON - 11 * HOUR}, gone=[LATE[1]])
    state, view = lake.advance()
    assert (state.expired, state.outcome, view.outcome) == (1, "position", "unchanged")
    assert [row["n"] for row in lake.rows("found")] == left


@pytest.mark.parametrize("largest", [Limits().read_here_bytes, -1], ids=["small", "large"])
def test_windows_of_keys_without_a_change_expire(new_lake: NewLake, largest: int) -> None:
    """A large state is looked up by the changed keys, and searched for what expires."""
    lake = new_lake(DECLARED + cogroup("type: tumbling, size: 2 hours", "count(*)"))
    lake.limit(read_here_bytes=largest)
    lake.put("clicks")
    lake.put("sales", *({"id": i, "g": g, "at": NOON} for i, g in enumerate("pqr")))
    lake.advance()
    lake.put("sales", {"id": 3, "g": "q", "at": NOON + 2 * HOUR})
    lake.advance()
    lake.put("sales", {"id": 4, "g": "q", "at": NOON + 6 * HOUR})
    state, view = lake.advance()
    assert (state.inserted, state.deleted, view.inserted, view.deleted) == (1, 3, 1, 3)
    assert sorted((row["g"], row["n"]) for row in lake.rows("found")) == [("q", 1), ("q", 1)]


def test_a_ranking_counts_them_once_for_every_window(new_lake: NewLake) -> None:
    lake = new_lake(DECLARED + TOP)
    lake.put("sales", *LATE)
    assert [r.expired for r in lake.advance()] == [4, 0], "of the first rows, two windows each"
    lake.put("sales", {"id": 1, "g": "p", "at": NOON - HOUR}, {**LATE[1], "id": 8})
    assert [r.expired for r in lake.advance()] == [2, 0], "of those that come later"
    lake.put("sales", {**LATE[2], "v": 3}, gone=[LATE[1]])
    state, view = lake.advance()
    assert (state.expired, state.outcome, view.outcome) == (2, "position", "unchanged")


test_the_same_windows_live_whatever_the_order_of_arrival, test_by_either_engine = held(CASES)
