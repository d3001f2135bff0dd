"""What a top-k's batch reads, shuffles and writes: what changed, not the input."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from tests.kinds.topk.rankings import SALES, Lakes, advanced, sale, top
from tests.support.in_duckdb import wrong
from tests.support.lake import Lake

from sluice import changes
from sluice.engine.plan import nodes_of
from sluice.kinds.topk.operator import TopKState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("real_spark")

UNRANKED = "rank: false, select: {g: g}"


@pytest.fixture(scope="module")
def lakes(real_spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Lakes:
    return Lakes(real_spark, tmp_path_factory.mktemp("lakes"))


def files_of(lake: Lake, name: str) -> set[Path]:
    return {Path(uri) for uri in DeltaTable(lake.uri(name)).file_uris()}


def in_spark(lake: Lake) -> None:
    """Nothing is small enough to be read in this process."""
    lake.limit(read_here_bytes=-1, handed_rows=-1)


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


def test_a_group_that_runs_short_is_filled_from_its_files_alone(lakes: Lakes) -> None:
    lake = lakes.built(groups="abc")
    files = DeltaTable(lake.uri("sales")).get_add_actions(flatten=True)
    rows = dict(zip(*(files.column(c).to_pylist() for c in ("path", "min.g")), strict=True))
    lake.put("sales", gone=[sale(108, 8, "b"), sale(109, 9, "b")])
    for path, g in rows.items():
        if g != "b":
            (Path(lake.uri("sales")) / path).unlink(missing_ok=True)
    lake.limit(read_here_bytes=-1)
    state, view = advanced(lake)
    assert state.refills == 1
    assert (view.inserted, view.deleted) == (2, 2)
    assert top(lake, "b") == [7, 6]
    assert top(lake, "c") == [9, 8]


@pytest.mark.parametrize(("computed_here", "taken"), [(2_000_000, 0), (-1, 1)])
def test_a_small_batch_takes_one_spark_job_or_none(
    lakes: Lakes, computed_here: int, taken: int
) -> None:
    lake = lakes.built()
    lake.limit(computed_here_bytes=computed_here)
    lake.put("sales", sale(10, 50), sale(5, 4), gone=[sale(9, 9)])
    before = jobs(lake)
    state, view = advanced(lake)
    assert (state.outcome, view.outcome, state.refills) == ("committed", "committed", 0)
    assert jobs(lake) - before == taken


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
    in_spark(lake)

    def summed(rows: "DataFrame", columns: tuple[str, ...]) -> "DataFrame":
        plan: Any = rows._jdf  # type: ignore[attr-defined]
        passed.append((rows.count(), plan.queryExecution().executedPlan().toString()))
        return changes.sum_weights(rows, columns)

    monkeypatch.setattr("sluice.kinds.topk.batch.sum_weights", summed)
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
    assert wrong(lake) == {}
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


def test_with_ranks_only_rows_that_move_are_written(lakes: Lakes) -> None:
    lake = lakes.built()
    lake.put("sales", sale(10, 9), sale(11, 1))
    _, view = advanced(lake)
    assert (view.inserted, view.updated, view.deleted) == (1, 0, 1)
