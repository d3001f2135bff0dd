"""A cogroup gets and loses streams and aggregates: only what is new is read, the rest stays."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest
from tests.kinds.cogroup.extended import SALES, SOLD, SOURCES, view
from tests.support.in_duckdb import wrong
from tests.support.lake import HEAD, counted, folded, without_files
from tests.support.landed import Landed, NewLanded

from sluice.delta.reading import local

SOLD_AND_MORE = "sold: {from: sales, aggregates: {n: count(*), v: sum(v), high: max(v)}}"
CLICKED = "clicked: {from: clicks, aggregates: {clicks: count(*), list: collect_set(n)}}"
CLICKS = [{"id": 1, "g": "a", "n": 7}, {"id": 2, "g": "c", "n": 8}]


@pytest.fixture
def lake(new_landed: NewLanded, monkeypatch: pytest.MonkeyPatch) -> Landed:
    """Two streams, built."""
    monkeypatch.setattr(local, "KEPT_BYTES", 0)
    lake = new_landed(view(SOLD, CLICKED))
    lake.put("sales", *SALES)
    lake.put("clicks", *CLICKS)
    lake.advance()
    return lake


def become(lake: Landed, *streams: str, unread: Sequence[str] = (), more: str = "") -> str:
    """The view by another definition; how its state came to it. The tables `unread` can't be."""
    lake.declare(HEAD + view(*streams, more=more))
    with without_files(lake, *unread):
        state = lake.rebuild("found")["found__state"]
    return state.strategy


def follow(lake: Landed) -> None:
    """The view goes on: every table is what its query gives."""
    lake.put("sales", {**SALES[0], "g": "b"}, {"id": 9, "g": "d", "v": 9}, gone=[SALES[3]])
    lake.put("clicks", {**CLICKS[0], "n": 1})
    lake.advance()
    assert wrong(lake, "found") == {}


def follows_by_feed(lake: Landed) -> None:
    """As `follow`; what was kept and what is new have one feed."""
    follow(lake)
    for name in lake.stored_names("found"):
        assert folded(lake.feed(name)) == counted(lake.stored(name))


def by_key(lake: Landed, column: str) -> dict[str, object]:
    return {row["g"]: row[column] for row in lake.rows("found")}


def test_an_aggregate_is_added_by_reading_its_input_alone(lake: Landed) -> None:
    assert become(lake, SOLD_AND_MORE, CLICKED, unread=["clicks"]) == "extend"
    assert by_key(lake, "high") == {"a": 2, "b": 3, "c": None}
    follows_by_feed(lake)


@pytest.mark.usefixtures("real_spark")
def test_a_stream_is_added_by_reading_its_input_alone(
    new_landed: NewLanded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "KEPT_BYTES", 0)
    lake = new_landed(view(SOLD))
    lake.put("sales", *SALES)
    lake.put("clicks", *CLICKS)
    lake.advance()
    assert become(lake, SOLD, CLICKED, unread=["sales"]) == "extend"
    assert by_key(lake, "clicks") == {"a": 1, "b": 0, "c": 1}
    follows_by_feed(lake)


def test_what_is_removed_needs_no_input(lake: Landed) -> None:
    fewer = CLICKED.replace(", list: collect_set(n)", "")
    assert become(lake, SOLD, fewer, unread=["sales", "clicks"]) == "extend"
    follow_ups = [{"g": "a", "n": 2, "v": 2}, {"g": "b", "n": 2, "v": 4}]
    assert become(lake, SOLD, unread=["sales", "clicks"]) == "extend"
    assert counted(lake.rows("found")) == counted(follow_ups), "c had clicks only"


def test_changes_that_were_not_yet_read_are_read_by_the_next_batch(lake: Landed) -> None:
    lake.put("sales", {**SALES[1], "v": 50})
    assert become(lake, SOLD_AND_MORE, CLICKED, unread=["clicks"]) == "extend"
    assert by_key(lake, "high")["b"] == 3, "as of the versions that the rest reflects"
    lake.advance()
    assert by_key(lake, "high")["b"] == 50
    assert wrong(lake, "found") == {}


@pytest.mark.parametrize("why", ["the key", "an expression", "a file"])
def test_everything_is_made_again_where_the_rest_does_not_stand(lake: Landed, why: str) -> None:
    if why == "a file":
        (old,) = Path(lake.uri("sales")).glob("*.parquet")
        lake.put("sales", *({**row, "v": 1} for row in SALES))
        old.unlink()  # clicks could be read
    extra = ", keep_empty: true" if why == "the key" else ""
    sold, clicked = SOLD_AND_MORE, CLICKED.replace("list:", "most: max(n), list:")
    if why == "an expression":
        sold = sold.replace("from: sales", "from: sales, where: v > 0")
        clicked = "c: {from: clicks, aggregates: {list: sum(n)}}"
    assert become(lake, sold, clicked, more=extra) == "build"
    follow(lake)


def test_another_projection_reads_no_input(lake: Landed) -> None:
    select = ", select: {twice: v * 2}"
    assert become(lake, SOLD, CLICKED, unread=["sales", "clicks"], more=select) == "extend"
    assert by_key(lake, "twice") == {"a": 4, "b": 8, "c": None}


def test_a_horizon_that_rises_by_a_new_stream_ends_windows(new_landed: NewLanded) -> None:
    window = ", retention: 2 days, window: {type: tumbling, time: at, size: 1 day}"
    sources = SOURCES.replace("v INT", "v INT, at DATE").replace("n INT", "n INT, at DATE")
    views = "views:\n  found: {{kind: cogroup, key: [g]{}, streams: {{{}}}}}\n"
    lake = new_landed(sources + views.format(window, SOLD))
    lake.put("sales", *({**row, "at": day_of(row["id"] + 1)} for row in SALES))
    lake.put("clicks", {**CLICKS[0], "at": day_of(5)})
    lake.advance()
    assert starts(lake) == [2, 3, 4]
    for streams, left in ((f"{SOLD}, {CLICKED}", [3, 4, 5]), (SOLD, [2, 3, 4])):
        lake.declare(HEAD + sources + views.format(window, streams))
        lake.rebuild("found")
        assert starts(lake) == left
        assert wrong(lake, "found") == {}


def starts(lake: Landed) -> list[int]:
    return sorted(row["window_start"].day for row in lake.rows("found"))


def day_of(day: int) -> date:
    return date(2024, 1, day)


def test_another_condition_of_the_view_reads_the_state_alone(lake: Landed) -> None:
    having = ", having: v > 2"
    assert become(lake, SOLD, CLICKED, unread=["sales", "clicks"], more=having) == "extend"
    assert {row["g"] for row in lake.rows("found")} == {"b"}
    follow(lake)
