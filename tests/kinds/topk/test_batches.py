"""A top-k's batches: which way they go, what they keep, what they say."""

from datetime import timedelta

import pytest
from tests.kinds.topk.rankings import SALES, Lakes, advanced, sale, top
from tests.support.in_duckdb import wrong
from tests.support.lake import Lake, counted
from tests.support.rows import NOON

from sluice.engine.advance import Run, advance_nodes
from sluice.engine.plan import nodes_of
from sluice.errors import ConfigError
from sluice.kinds.topk import batch as topk
from sluice.operate.explain import explain
from sluice.operate.rebuild import rebuild
from sluice.read.changelog import Changelog
from sluice.read.lake import Lake as Reader
from sluice.read.status import status

APPENDED = "rows were only added: the best are ranked with the kept rows"
CHANGED = "rows were changed: kept rows replace those that leave"
KEPT = "touched groups: 6 rows in 0.0 MB of shop.best__state"
REFILL = "if needed, up to 21 rows in 0.0 MB of shop.sales"


def test_the_state_keeps_a_few_rows_past_the_last_rank(lakes: Lakes) -> None:
    lake = lakes.built()
    assert len(lake.stored("best__state")) == 2 * 3
    assert not any(row["_complete"] for row in lake.stored("best__state"))
    assert top(lake) == [9, 8]


def test_the_strategy_follows_the_net_change(lakes: Lakes) -> None:
    lake = lakes.built()
    lake.put("sales", sale(10, 7), sale(11, 20))
    assert advanced(lake)[0].strategy == "append"
    lake.put("sales", sale(11, 21), sale(10, 30))
    assert advanced(lake)[0].strategy == "update"
    lake.put("sales", sale(11, 0))
    assert advanced(lake)[0].strategy == "retract"
    assert top(lake) == [30, 9]


def test_a_plan_says_how_and_why(lakes: Lakes) -> None:
    lake = lakes.built()
    lake.put("sales", sale(10, 7))
    state, view = explain(lake.project, lake.table("best"))
    assert (state.next, state.reason) == ("append", f"{APPENDED}; {KEPT}")
    assert view.next == "nothing"
    lake.put("sales", sale(10, 8))
    assert explain(lake.project, lake.table("best"))[0].next == "retract"


@pytest.mark.parametrize(("more", "chosen"), [("", "full"), (", strategy: retract", "retract")])
def test_a_feed_of_much_of_the_input_computes_all_unless_another_strategy_is_declared(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch, more: str, chosen: str
) -> None:
    lake = lakes.built(f"rank: rank{more}")
    lake.put("sales", sale(11, 21))
    monkeypatch.setattr(topk, "FULL_BYTES", 0)
    monkeypatch.setattr(topk, "FULL_SHARE", 0.0)
    state, _ = advanced(lake)
    assert state.strategy == chosen
    assert ("reading all of it is cheaper" in state.reason) == (chosen == "full")
    assert top(lake) == [21, 9]


def test_a_declared_strategy_that_does_not_hold_is_reported_and_not_followed(lakes: Lakes) -> None:
    lake = lakes.built("strategy: append")
    lake.put("sales", gone=[sale(9, 9)])
    state, _ = advanced(lake)
    assert state.strategy == "retract"
    assert "strategy 'append' is declared, but kept rows left or fell" in state.warnings[0]
    assert top(lake) == [8, 7]


@pytest.mark.parametrize("declared", ["append", "update", "retract"])
def test_a_declared_strategy_that_holds_is_reported(lakes: Lakes, declared: str) -> None:
    lake = lakes.built(f"strategy: {declared}")
    lake.put("sales", sale(10, 50), *([] if declared == "append" else [sale(9, 60)]))
    (planned, _), (state, _) = explain(lake.project, lake.table("best")), advanced(lake)
    assert (state.strategy, state.warnings) == (declared, ())
    changed = f"declared {declared}; {CHANGED}; {KEPT} and {REFILL}"
    assert planned.reason == (f"{APPENDED}; {KEPT}" if declared == "append" else changed)


def test_full_computes_everything_and_commits_the_difference(lakes: Lakes) -> None:
    """Of both tables, in one pass."""
    lake = lakes.built("strategy: full")
    lake.put("sales", sale(9, 3))
    state, view = advanced(lake)
    assert (state.strategy, view.strategy) == ("full", "with its state")
    assert (state.inserted, state.updated, state.deleted) == (1, 0, 1)
    assert (view.inserted, view.updated, view.deleted) == (1, 1, 1)


def test_a_window_that_expires_is_not_filled_again(lakes: Lakes) -> None:
    """Its rows are gone from the state, and there are others in the input."""
    declared = SALES.replace("most INT", "at TIMESTAMP").replace("partition_by: [g], ", "")
    window = "window: {type: tumbling, time: at, size: 1 hour}, retention: 1 hour"
    lake = Lake(lakes.folder / "expired", declared.replace("MORE", window), lakes.spark)
    lake.put("sales", *({"id": v, "g": "a", "v": v, "at": NOON} for v in range(9)))
    lake.advance()
    lake.put("sales", {"id": 9, "g": "a", "v": 9, "at": NOON + timedelta(hours=5)})
    state, view = advanced(lake)
    assert (state.inserted, state.deleted, state.refills) == (1, 3, 0)
    assert (view.inserted, view.deleted) == (1, 2)


def test_refills_are_counted_by_status_too(lakes: Lakes) -> None:
    lake = lakes.built()
    for best in (9, 7, 5):
        lake.put("sales", gone=[sale(best, best), sale(best - 1, best - 1)])
        lake.advance()
    (found,) = status(lake.project, [lake.table("best")])
    assert found.refills == 3
    assert top(lake) == [3, 2]


def test_another_limit_is_built_elsewhere_and_only_the_difference_is_committed(
    lakes: Lakes,
) -> None:
    lake = lakes.built()
    wider = lake.declared.replace("limit: 2", "limit: 3")
    other = Lake(lake.folder, wider, lakes.spark)
    with pytest.raises(ConfigError, match="by a definition that differs"):
        other.advance()
    before = other.head("best").version
    rebuild(other.spark, other.project, other.table("best"), Run("test"))
    changes = Changelog.open(Reader(other.project), "best").rows(from_version=before + 1)
    assert [(c["_change_type"], c["g"], c["v"]) for c in changes] == [
        ("insert", "a", 7),
        ("insert", "b", 7),
    ]
    assert {report.outcome for report in other.advance()} == {"unchanged"}


def test_full_updates_are_whole_maps_of_the_touched_groups(lakes: Lakes) -> None:
    lake = lakes.built()
    before = lake.head("best").version
    lake.put("sales", sale(10, 50))
    advanced(lake)
    maps = Changelog.open(Reader(lake.project), "best").maps(from_version=before + 1)
    (full,) = maps
    assert full.partition == {"g": "a"}
    assert {rank: row["v"] for rank, row in full.ranks.items()} == {1: 50, 2: 9}


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("missing", "module 'tests.support.scores' has no attribute 'missing'"),
        ("commonprefix", "that is not a function defined in tests.support.scores"),
        ("unsaid", "annotate the function's return type: one of bool, int, float, str"),
    ],
)
def test_a_function_that_cannot_be_sorted_by_is_reported(
    lakes: Lakes, function: str, told: str
) -> None:
    declared = SALES.replace("v desc", f"'tests.support.scores:{function}(v)'")
    lake = Lake(lakes.folder / function, declared.replace("MORE", "rank: rank"), lakes.spark)
    lake.put("sales", sale(1, 1))
    with pytest.raises(ConfigError) as refused:
        lake.advance()
    assert f"shop.best: tests.support.scores:{function}(v): {told}" in refused.value.message


def test_a_view_behind_its_state_catches_up_by_itself(lakes: Lakes) -> None:
    """As after a crash between the two commits."""
    lake, other = lakes.built(), lakes.built()
    for one in (lake, other):
        one.put("sales", sale(10, 50), gone=[sale(109, 9, "b")])
    lake.advance()
    state_alone(other)
    (view,) = (report for report in other.advance() if report.table == "shop.best")
    assert view.strategy == "recompute"
    assert counted(other.rows("best")) == counted(lake.rows("best"))
    assert wrong(other) == {}


def state_alone(lake: Lake) -> None:
    """Advance the state, and not the view."""
    state, _ = nodes_of(lake.table("best"), lake.project.graph)
    assert list(advance_nodes(lake.spark, lake.project, (state,), Run("test")))


def test_a_limit_may_be_the_largest_number_there_is(lakes: Lakes) -> None:
    declared = SALES.replace("limit: 2", "limit: most, offset: 1").replace(
        "most INT", "most BIGINT"
    )
    lake = Lake(lakes.folder / "largest", declared.replace("MORE", "rank: rank"), lakes.spark)
    lake.put("sales", *(sale(v, v, most=2**63 - 1 - v) for v in range(4)))
    lake.advance()
    lake.put("sales", sale(9, 9, most=-(2**63)), gone=[sale(2, 2, most=2**63 - 3)])
    lake.advance()
    shown = {(row["v"], row["most"]) for row in lake.rows("best")}
    assert shown == {(v, 2**63 - 1 - v) for v in (3, 1, 0)}
    assert wrong(lake) == {}


@pytest.mark.parametrize("most", [0, -3, None])
def test_a_group_that_shows_nothing_is_not_taken_for_a_new_one(
    lakes: Lakes, most: int | None
) -> None:
    declared = SALES.replace("limit: 2, headroom: 1", "limit: most, headroom: 0")
    folder = lakes.folder / f"shows-nothing{most}"
    lake = Lake(folder, declared.replace("MORE", "rank: rank"), lakes.spark)
    lake.put("sales", sale(1, 10, most=most))
    lake.advance()
    lake.put("sales", sale(2, 5, most=1))
    lake.advance()
    assert lake.rows("best") == [], "the second row has rank 2"
    assert wrong(lake) == {}


def test_groups_with_a_limit_of_null_are_named(lakes: Lakes) -> None:
    declared = SALES.replace("limit: 2", "limit: most").replace("MORE", "rank: rank")
    lake = Lake(lakes.folder / "limits", declared, lakes.spark)
    lake.put("sales", sale(1, 1, most=None), sale(2, 2, "b", most=1))
    state, _ = lake.advance()
    told = "shop.best: most is null in rows of a: they are ranked but not shown"
    assert state.warnings == (told,)
    lake.put("sales", sale(3, 3, "c", most=None))
    state, _ = lake.advance()
    assert state.warnings == (told.replace("of a", "of c"),)
