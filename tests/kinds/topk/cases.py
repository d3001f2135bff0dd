"""Rankings held to the contract of views, and their queries in plain Python."""

from datetime import timedelta

from hypothesis import strategies as st
from tests.support.contract import Case, Query, by_spark, by_ways
from tests.support.lake import Row, State
from tests.support.oracle import column, top, windowed, windows_of
from tests.support.rows import NOON, groups, ids, maybe, numbers, row, times, words
from tests.support.scores import surprise

SALES = """
sources:
  sales:
    path: "sales/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, v INT, w STRING, most INT, at TIMESTAMP"
views:
"""
LINES = SALES.replace("    key: [id]\n", "").replace("id INT, ", "")
sales = row(id=ids, g=groups, v=numbers, w=words, most=maybe(st.integers(0, 3)), at=times)
lines = row(
    _sluice_interval=st.just(NOON),
    _sluice_id=st.sampled_from(["p-1", "q-1", "q-2", "r-1", "s-1"]),
    g=groups,
    v=numbers,
    w=words,
    most=st.just(1),
    at=times,
)
ID = ("_sluice_interval", "_sluice_id")
V_DESC, V_ASC = (column("v"), "desc"), (column("v"), "asc")
SHOWN = ("g", "id", "v", "w", "most", "at")


def shown(rank: int, found: Row, *columns: str) -> Row:
    return {**{c: found[c] for c in columns or SHOWN}, "rank": rank}


def by_number(state: State) -> list[Row]:
    best = top(state["sales"], [column("g")], [V_DESC], ["id"], 2)
    return [shown(rank, found) for rank, found in best]


def by_rank(state: State) -> list[Row]:
    best = top(state["sales"], [column("g")], [V_ASC], ["id"], 2, 0, "rank")
    return [shown(rank, found) for rank, found in best]


def by_dense_rank(state: State) -> list[Row]:
    keys = [(column("v"), "desc nulls first"), (column("w"), "asc nulls last")]
    best = top(state["sales"], [column("g")], keys, ["id"], 2, 1, "dense_rank")
    return [shown(rank, found) for rank, found in best]


def of_some(state: State) -> list[Row]:
    some = [r for r in state["sales"] if (r["v"] is not None and r["v"] < 2) or r["w"] == "x"]
    return by_number({"sales": some})


def by_own_limit(state: State) -> list[Row]:
    best = top(state["sales"], [column("w")], [(column("w"), "asc"), V_DESC], ["id"], "most", 1)
    return [shown(rank, found) for rank, found in best]


def global_by_own_limit(state: State) -> list[Row]:
    best = top(state["sales"], [], [V_DESC], ["id"], "most", 0, "rank")
    return [shown(rank, found, "id", "v", "most") for rank, found in best]


def of_some_ranks(state: State) -> list[Row]:
    found = by_number(state)
    return [r for r in found if r["v"] is not None and (r["v"] > 0 or r["rank"] == 2)]


def global_without_rank(state: State) -> list[Row]:
    keys = [(lambda found: None if found["v"] is None else abs(found["v"]), "desc"), V_ASC]
    best = top(state["lines"], [], keys, ID, 3)
    return [{"g": found["g"], "twice": _twice(found["v"])} for _, found in best]


def _twice(value: int | None) -> int | None:
    return None if value is None else 2 * value


def by_own_function(state: State) -> list[Row]:
    keys = [(lambda found: surprise(found["v"], found["w"]), "desc")]
    best = top(state["sales"], [column("g")], keys, ["id"], 2)
    return [shown(rank, found) for rank, found in best]


def last_of_key(state: State) -> list[Row]:
    keys = [(column("at"), "desc nulls last")]
    best = top(state["sales"], [column("g")], keys, ["id"], 1)
    return [{"g": found["g"], "v": found["v"]} for _, found in best]


def best_of_the_best(state: State) -> list[Row]:
    first = [found for _, found in top(state["sales"], [column("g")], [V_DESC], ["id"], 2)]
    best = top(first, [], [V_DESC], ["g", "id"], 2)
    return [shown(rank, found) for rank, found in best]


def per_hour(state: State) -> list[Row]:
    rows = windowed(state["sales"], "at", windows_of(timedelta(hours=1)))
    best = top(rows, [column("window_start"), column("g")], [V_DESC], ["id"], 2)
    return [shown(rank, found, "window_start", "window_end", "g", "v") for rank, found in best]


def per_hopping_window(state: State) -> list[Row]:
    windows = windows_of(timedelta(minutes=50), timedelta(minutes=20))
    rows = windowed(state["lines"], "at", windows)
    best = top(rows, [column("window_start")], [V_DESC], ID, 1)
    return [shown(rank, found, "window_start", "window_end", "v") for rank, found in best]


def case(name: str, query: Query, declared: str, source: str = "sales") -> Case:
    given = SALES if source == "sales" else LINES.replace("sales", "lines")
    rows = {"sales": sales} if source == "sales" else {"lines": lines}
    return Case(name, f"{given}  {declared}", "best", rows, lambda: query)


CASES = [
    by_ways(
        case(
            "the two best of each group",
            by_number,
            "best: {kind: topk, from: sales, partition_by: [g], order_by: [v desc], limit: 2, "
            "headroom: 1}",
        )
    ),
    case(
        "of rows that meet a condition",
        of_some,
        "best: {kind: topk, from: sales, where: v < 2 or w = 'x', partition_by: [g], "
        "order_by: [v desc], limit: 2, headroom: 1}",
    ),
    case(
        "rank lets ties share a place",
        by_rank,
        "best: {kind: topk, from: sales, partition_by: [g], order_by: [v], limit: 2, "
        "function: rank, headroom: 0, strategy: retract}",
    ),
    case(
        "dense_rank, an offset, two keys with their nulls placed",
        by_dense_rank,
        "best: {kind: topk, from: sales, partition_by: [g], limit: 2, offset: 1, "
        "order_by: [v desc nulls first, w asc nulls last], function: dense_rank, headroom: 0, "
        "strategy: append}",
    ),
    case(
        "each row says how many there may be",
        by_own_limit,
        "best: {kind: topk, from: sales, partition_by: [w], order_by: [w, v desc], limit: most, "
        "offset: 1, headroom: 0}",
    ),
    case(
        "one ranking whose rows say how many there may be",
        global_by_own_limit,
        "best: {kind: topk, from: sales, order_by: [v desc], limit: most, function: rank, "
        "headroom: 0, select: {id: id, v: v, most: most}}",
    ),
    by_ways(
        case(
            "one ranking of rows without a key, no rank column, expressions",
            global_without_rank,
            "best: {kind: topk, from: lines, order_by: [abs(v) desc, v], limit: 3, rank: false, "
            "headroom: 0, select: {g: g, twice: 2 * v}}",
            "lines",
        )
    ),
    by_spark(
        case(
            "a Python function of the row",
            by_own_function,
            "best: {kind: topk, from: sales, partition_by: [g], limit: 2, headroom: 0, "
            "order_by: ['tests.support.scores:surprise(v, w) desc']}",
        )
    ),
    case(
        "k = 1 keeps the last row of a key",
        last_of_key,
        "best: {kind: topk, from: sales, partition_by: [g], order_by: [at desc nulls last], "
        "limit: 1, rank: false, headroom: 2, select: {g: g, v: v}, strategy: update}",
    ),
    case(
        "a top-k of a top-k",
        best_of_the_best,
        "some: {kind: topk, from: sales, partition_by: [g], order_by: [v desc], limit: 2, "
        "strategy: full}\n"
        "  best: {kind: topk, from: some, order_by: [v desc], limit: 2, headroom: 0}",
    ),
    case(
        "one ranking per tumbling window and group",
        per_hour,
        "best: {kind: topk, from: sales, partition_by: [g], order_by: [v desc], limit: 2, "
        "select: {v: v}, window: {type: tumbling, time: at, size: 1 hour}}",
    ),
    case(
        "a row competes in each hopping window that it is in",
        per_hopping_window,
        "best: {kind: topk, from: lines, order_by: [v desc], limit: 1, headroom: 0, "
        "select: {v: v}, "
        "window: {type: hopping, time: at, size: 50 minutes, advance: 20 minutes}}",
        "lines",
    ),
    case(
        "of which some are shown",
        of_some_ranks,
        "best: {kind: topk, from: sales, partition_by: [g], order_by: [v desc], limit: 2, "
        "headroom: 1, having: v is not null and (v > 0 or rank = 2)}",
    ),
]
