"""A top-k's batches: which way they go, what they read and write, what they say."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from tests.support.lake import Lake, Row, counted
from tests.support.rows import NOON

from sluice.changelog import net
from sluice.errors import ConfigError
from sluice.operators.topk import TopKState
from sluice.runtime.batch import Run, advance_nodes
from sluice.runtime.explain import explain
from sluice.runtime.nodes import nodes_of
from sluice.runtime.rebuild import rebuild
from sluice.runtime.report import BatchReport
from sluice.serving.changes import Changelog
from sluice.serving.lake import Lake as Reader
from sluice.serving.status import status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

SALES = """
sources:
  sales:
    path: "sales/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, v INT, most INT"
views:
  best: {kind: topk, from: sales, partition_by: [g], order_by: [v desc], limit: 2, headroom: 1,
    MORE}
"""
UNRANKED = "rank: false, select: {g: g}"
APPENDED = "rows were only added: the best of them meet the kept ones"
CHANGED = "rows were changed: kept ones make good what falls"


def sale(id_: int, v: int, g: str = "a", most: int | None = 1) -> Row:
    return {"id": id_, "g": g, "v": v, "most": most}


@pytest.fixture(scope="module")
def lakes(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> "Lakes":
    return Lakes(spark, tmp_path_factory.mktemp("lakes"))


class Lakes:
    """Lakes that are filled and built: each group of ten rows has three of them in the state."""

    def __init__(self, spark: "SparkSession", folder: Path):
        self.spark, self.folder, self.made = spark, folder, 0

    def built(self, more: str = "rank: rank", groups: str = "ab", **spark: str) -> Lake:
        self.made += 1
        declared = SALES.replace("MORE", more)
        lake = Lake(self.folder / str(self.made), declared, self.spark, **spark)
        for n, g in enumerate(groups):
            lake.put("sales", *(sale(100 * n + v, v, g) for v in range(10)))
        lake.advance()
        return lake


def advanced(lake: Lake) -> tuple[BatchReport, BatchReport]:
    state, view = lake.advance()
    return state, view


def top(lake: Lake, g: str = "a") -> list[int]:
    rows = sorted(lake.rows("best"), key=lambda row: row["rank"])
    return [row["v"] for row in rows if row["g"] == g]


def files_of(lake: Lake, name: str) -> set[Path]:
    return {Path(uri) for uri in DeltaTable(lake.uri(name)).file_uris()}


def in_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is small enough to be read in this process."""
    for module in ("storage.table", "runtime.topk", "runtime.local_reads"):
        monkeypatch.setattr(f"sluice.{module}.SMALL_BYTES", -1)
    monkeypatch.setattr("sluice.runtime.local_reads.MOST_ROWS", -1)


def jobs(lake: Lake) -> int:
    context: Any = lake.session.sparkContext
    return int(context._jsc.sc().dagScheduler().numTotalJobs())


def met_in_one_task(rows: "DataFrame") -> int:
    """The most rows that one shuffle brought into a single partition."""
    rows.collect()
    plan: Any = rows._jdf  # type: ignore[attr-defined]
    return max(_met(plan.queryExecution().executedPlan()), default=0)


def _met(plan: Any) -> "Iterator[int]":
    name = plan.getClass().getSimpleName()
    if name == "AdaptiveSparkPlanExec":
        yield from _met(plan.executedPlan())
    elif name.endswith("QueryStageExec"):
        yield from _met(plan.plan())
    elif (
        name == "ShuffleExchangeExec" and "SinglePartition" in plan.outputPartitioning().toString()
    ):
        yield plan.metrics().apply("shuffleRecordsWritten").value()
    for n in range(plan.children().size()):
        yield from _met(plan.children().apply(n))


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
    assert (state.next, state.reason) == ("append", APPENDED)
    assert view.next == "nothing"
    lake.put("sales", sale(10, 8))
    assert explain(lake.project, lake.table("best"))[0].next == "retract"


def test_a_declared_strategy_that_does_not_hold_is_told_and_not_followed(lakes: Lakes) -> None:
    lake = lakes.built("strategy: append")
    lake.put("sales", gone=[sale(9, 9)])
    state, _ = advanced(lake)
    assert state.strategy == "retract"
    assert "strategy 'append' is declared, but kept rows went or fell" in state.warnings[0]
    assert top(lake) == [8, 7]


@pytest.mark.parametrize("declared", ["append", "update", "retract"])
def test_a_declared_strategy_that_holds_is_told(lakes: Lakes, declared: str) -> None:
    lake = lakes.built(f"strategy: {declared}")
    lake.put("sales", sale(10, 50), *([] if declared == "append" else [sale(9, 60)]))
    (planned, _), (state, _) = explain(lake.project, lake.table("best")), advanced(lake)
    assert (state.strategy, state.warnings) == (declared, ())
    assert planned.reason == (
        APPENDED if declared == "append" else f"declared {declared}; {CHANGED}"
    )


def test_full_computes_everything_and_commits_the_difference(lakes: Lakes) -> None:
    """Of both tables, in one pass."""
    lake = lakes.built("strategy: full")
    lake.put("sales", sale(9, 3))
    state, view = advanced(lake)
    assert (state.strategy, view.strategy) == ("full", "with its state")
    assert (state.inserted, state.updated, state.deleted) == (1, 0, 1)
    assert (view.inserted, view.updated, view.deleted) == (1, 1, 1)


def test_only_the_change_and_the_kept_rows_are_read(lakes: Lakes) -> None:
    lake = lakes.built()
    before = files_of(lake, "sales")
    lake.put("sales", sale(10, 50))
    lake.put("sales", sale(10, 60))
    for file in before:
        file.unlink()
    state, view = advanced(lake)
    assert (state.refills, view.updated + view.inserted) == (0, 2)
    assert top(lake) == [60, 9]


def test_a_group_that_runs_short_is_filled_from_its_files_alone(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lakes.built(groups="abc")
    files = DeltaTable(lake.uri("sales")).get_add_actions(flatten=True)
    rows = dict(zip(*(files.column(c).to_pylist() for c in ("path", "min.g")), strict=True))
    lake.put("sales", gone=[sale(108, 8, "b"), sale(109, 9, "b")])
    for path, g in rows.items():
        if g != "b":
            (Path(lake.uri("sales")) / path).unlink(missing_ok=True)
    for module in ("storage.table", "runtime.topk"):
        monkeypatch.setattr(f"sluice.{module}.SMALL_BYTES", -1)
    state, view = advanced(lake)
    assert state.refills == 1
    assert (view.inserted, view.deleted) == (2, 2)
    assert top(lake, "b") == [7, 6]
    assert top(lake, "c") == [9, 8]


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


def test_a_small_batch_takes_one_spark_job(lakes: Lakes) -> None:
    lake = lakes.built()
    lake.put("sales", sale(10, 50), sale(5, 4), gone=[sale(9, 9)])
    before = jobs(lake)
    state, view = advanced(lake)
    assert (state.outcome, view.outcome, state.refills) == ("committed", "committed", 0)
    assert jobs(lake) - before == 1


def test_a_small_batch_that_spark_commits_takes_five_more_for_each_merge(lakes: Lakes) -> None:
    lake = lakes.built(commit="spark")
    lake.put("sales", sale(10, 50), sale(5, 4), gone=[sale(9, 9)])
    before = jobs(lake)
    advanced(lake)
    assert jobs(lake) - before <= 11


def test_nothing_new_takes_no_job_and_no_commit(lakes: Lakes) -> None:
    lake = lakes.built()
    before, version = jobs(lake), lake.head("best").version
    assert {report.outcome for report in lake.advance()} == {"unchanged"}
    assert (jobs(lake), lake.head("best").version) == (before, version)


def test_a_change_behind_the_kept_rows_touches_no_file(lakes: Lakes) -> None:
    lake = lakes.built()
    files = files_of(lake, "best__state"), files_of(lake, "best")
    lake.put("sales", sale(3, 5), sale(4, 1), gone=[sale(0, 0)])
    assert [report.outcome for report in lake.advance()] == ["position", "unchanged"]
    assert files == (files_of(lake, "best__state"), files_of(lake, "best"))


def test_a_batch_rewrites_the_files_of_its_groups_alone(lakes: Lakes) -> None:
    lake = lakes.built(groups="a")
    first = files_of(lake, "best__state"), files_of(lake, "best")
    lake.put("sales", *(sale(100 + v, v, "b") for v in range(10)))
    lake.advance()
    second = files_of(lake, "best__state"), files_of(lake, "best")
    lake.put("sales", sale(110, 50, "b"))
    advanced(lake)
    third = files_of(lake, "best__state"), files_of(lake, "best")
    for a, both, now in zip(first, second, third, strict=True):
        assert len(both - a) == 1, "what came is one file"
        assert a < now, "the other group's file is as it was"
        assert not (both - a) & now, "the group's own is written anew"


def test_what_comes_behind_the_kept_rows_is_dropped_before_a_shuffle(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, passed = lakes.built(), []
    in_spark(monkeypatch)

    def summed(rows: "DataFrame", columns: tuple[str, ...]) -> "DataFrame":
        plan: Any = rows._jdf  # type: ignore[attr-defined]
        passed.append((rows.count(), plan.queryExecution().executedPlan().toString()))
        return net.summed(rows, columns)

    monkeypatch.setattr("sluice.runtime.topk.summed", summed)
    lake.put("sales", *(sale(v, v - 10) for v in range(7)), sale(10, 50), sale(11, 1))
    state, _ = advanced(lake)
    assert state.strategy == "update"
    (count, plan), *_ = passed
    assert count == 1, "of 16 old and new images"
    assert "BroadcastHashJoin" in plan
    assert "SortMergeJoin" not in plan
    assert top(lake) == [50, 9]


def test_a_global_ranking_is_cut_off_before_its_rows_meet(lakes: Lakes) -> None:
    """However many are wanted: Spark does so by itself up to a thousand ranks."""
    declared = SALES.replace("partition_by: [g], ", "").replace("limit: 2", "limit: 5000")
    lake = Lake(lakes.folder / "global", declared.replace("MORE", "rank: rank"), lakes.spark)
    state, _ = nodes_of(lake.table("best"), lake.project.graph)
    lake.put("sales", *(sale(v, v) for v in range(4)))
    rows = lake.spark.session.read.format("delta").load(lake.uri("sales"))
    query: Any = state.operator.query({"shop.sales": rows}, {})
    plan = query._jdf.queryExecution().executedPlan().toString()
    assert "WindowGroupLimit" in plan or "TakeOrderedAndProject" in plan


@pytest.mark.parametrize(
    ("limit", "function"), [("limit: 2", "row_number"), ("limit: most", "rank")]
)
def test_no_task_sorts_all_rows_of_a_global_ranking(
    lakes: Lakes, limit: str, function: str
) -> None:
    """Neither when it is built nor when it is verified, where Spark has no number to cut at."""
    declared = SALES.replace("partition_by: [g], ", "").replace("limit: 2", limit)
    folder = lakes.folder / f"global-{function}"
    lake = Lake(folder, declared.replace("MORE", f"function: {function}"), lakes.spark)
    lake.put("sales", *(sale(v, v // 3) for v in range(2000)))
    lake.advance()
    assert all(verdict.is_equal for verdict in lake.verdicts())
    state, _ = nodes_of(lake.table("best"), lake.project.graph)
    assert isinstance(state.operator, TopKState)
    lake.session.conf.set("spark.sql.shuffle.partitions", "4")
    read = lake.session.read.format("delta")
    rows = {"shop.sales": read.load(lake.uri("sales")).repartition(4)}
    kept = read.load(lake.uri("best__state"))
    found = (state.operator.query(rows, {}), state.operator.acceptable(rows, kept))
    assert {rows.count() for rows in found} == {kept.count()}
    built, verified = map(met_in_one_task, found)
    assert max(built, verified) <= 640, "of 2000: at most ten of each part"
    assert verified >= kept.count()


def test_without_ranks_a_move_inside_the_top_writes_nothing(lakes: Lakes) -> None:
    lake = lakes.built(UNRANKED)
    lake.put("sales", sale(8, 50))
    state, view = advanced(lake)
    assert (state.updated, view.outcome) == (1, "position")


def test_another_limit_is_built_aside_and_only_the_difference_is_told(lakes: Lakes) -> None:
    lake = lakes.built()
    wider = lake.declared.replace("limit: 2", "limit: 3")
    other = Lake(lake.folder, wider, lakes.spark)
    with pytest.raises(ConfigError, match="another definition"):
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
        ("commonprefix", "that is no function which tests.support.scores defines"),
        ("unsaid", "annotate what the function returns, one of bool, int, float, str"),
    ],
)
def test_a_function_that_cannot_be_sorted_by_is_told(
    lakes: Lakes, function: str, told: str
) -> None:
    declared = SALES.replace("v desc", f"'tests.support.scores:{function}(v)'")
    lake = Lake(lakes.folder / function, declared.replace("MORE", "rank: rank"), lakes.spark)
    lake.put("sales", sale(1, 1))
    with pytest.raises(ConfigError) as refused:
        lake.advance()
    assert f"shop.best: tests.support.scores:{function}(v): {told}" in refused.value.message


def test_with_ranks_only_rows_that_move_are_written(lakes: Lakes) -> None:
    lake = lakes.built()
    lake.put("sales", sale(10, 9), sale(11, 1))
    _, view = advanced(lake)
    assert (view.inserted, view.updated, view.deleted) == (1, 0, 1)


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
    assert all(verdict.is_equal for verdict in other.verdicts())


def state_alone(lake: Lake) -> None:
    """Advance the state, and not the view."""
    state, _ = nodes_of(lake.table("best"), lake.project.graph)
    advance_nodes(lake.spark, lake.project, (state,), Run("test"))


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
    assert all(verdict.is_equal for verdict in lake.verdicts())


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
    assert all(verdict.is_equal for verdict in lake.verdicts())


def test_groups_with_a_limit_of_null_are_named(lakes: Lakes) -> None:
    declared = SALES.replace("limit: 2", "limit: most").replace("MORE", "rank: rank")
    lake = Lake(lakes.folder / "limits", declared, lakes.spark)
    lake.put("sales", sale(1, 1, most=None), sale(2, 2, "b", most=1))
    state, _ = lake.advance()
    told = "shop.best: most is null in rows of a: they are ranked and not shown"
    assert state.warnings == (told,)
    lake.put("sales", sale(3, 3, "c", most=None))
    state, _ = lake.advance()
    assert state.warnings == (told.replace("of a", "of c"),)
