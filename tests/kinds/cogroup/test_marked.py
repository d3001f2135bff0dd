"""Large tables of a cogroup: `plan` says how a batch will commit, and upkeep follows it."""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from tests.delta.tables import a_position, by_marking
from tests.kinds.cogroup.extended import SALES, SOLD, view
from tests.kinds.cogroup.merged import ROWS, lake_of
from tests.support.in_duckdb import wrong
from tests.support.lake import HEAD, Lake
from tests.support.landed import Landed, NewLanded

from sluice.changes import CHANGE
from sluice.declare.project import Project
from sluice.delta.log.files import has_vectors
from sluice.delta.upkeep.table_invariants import feed_faults
from sluice.engine.batch_plan import Context
from sluice.engine.plan import nodes_of
from sluice.engine.upkeep import Kept
from sluice.operate.explain import explain
from sluice.operate.tables import drop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REMARK = "up to 4 changed rows are marked; more, or rows in few files, rewrite these files"


def test_plan_says_how_many_changed_rows_of_a_large_table_will_be_marked(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = lake_of(tmp_path, spark, "total: sum(v)")
    lake.put("sales", {**ROWS[0], "v": 7})
    table = lake.table("found")
    assert not any("marked" in step.reason for step in explain(lake.project, table))
    lake.limit(merged_bytes=-1, marked_share=2)
    said = {step.table: step.reason for step in explain(lake.project, table)}
    assert REMARK in said["shop.found__state"]
    lake.advance()
    steps = explain(lake.project, table)
    assert {step.next for step in steps} == {"nothing"}
    assert all("changed rows are marked" in step.reason for step in steps)
    assert not any("marked" in step.reason for step in explain(by_spark(lake), table))


def test_upkeep_files_tables_again_whose_rows_are_marked(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = lake_of(tmp_path, spark, "total: sum(v)").limit(merged_bytes=-1, marked_share=1_000)
    lake.put("sales", {**ROWS[0], "v": 7})
    lake.advance()
    for node in nodes_of(lake.table("found"), lake.project.graph):
        kept = Kept.of(Context.of(lake.project), node)
        filing = kept.filing
        assert filing is not None
        assert [s.gone for s in kept.find_crowded(filing)] == [1]


@pytest.mark.usefixtures("real_spark")
def test_the_feed_stays_whole_if_a_marked_table_is_replaced(new_landed: NewLanded) -> None:
    """A key with one column more replaces both tables; their old rows leave in the feed."""
    lake = new_landed(view(SOLD)).limit(merged_bytes=-1, marked_share=1_000)
    lake.put("sales", *SALES)
    lake.advance()
    lake.put("sales", {**SALES[0], "v": 7})
    lake.advance()
    lake.declare(HEAD + view(SOLD).replace("key: [g]", "key: [g, id]"))
    lake.rebuild("found")
    for name in lake.stored_names("found"):
        assert not list(feed_faults(lake.uri(name)))
    assert wrong(lake, "found") == {}


@pytest.mark.parametrize("way", ["drop", "move"])
def test_a_table_has_no_vectors_any_more_once_it_is_made_again(
    tmp_path: Path, spark: "SparkSession", way: str
) -> None:
    """A rebuild in its place keeps the feature, which Delta takes back with the history alone."""
    lake = Landed(tmp_path, view(SOLD), spark).limit(merged_bytes=-1, marked_share=1_000)
    lake.put("sales", *SALES)
    lake.advance()
    lake.put("sales", {**SALES[0], "v": 7})
    lake.advance()
    lake.rebuild("found")
    with pytest.raises(DeltaError):
        DeltaTable(lake.uri("found")).to_pyarrow_table()
    if way == "drop":
        drop(lake.project, "shop.found", datetime.now(UTC))
        lake.advance()
    else:
        for name in lake.stored_names("found"):
            shutil.move(lake.uri(name), tmp_path / name)
        lake.rebuild("found")
    assert DeltaTable(lake.uri("found")).to_pyarrow_table().num_rows == len(lake.rows("found"))
    assert not any(has_vectors(DeltaTable(lake.uri(n))) for n in lake.stored_names("found"))
    assert wrong(lake, "found") == {}


def test_windows_that_had_expired_stay_away_if_the_latest_rows_are_marked(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    """The horizon falls by a day, though the statistics of the file know of the days after it."""
    window = ", retention: 2 days, window: {type: tumbling, time: at, size: 1 day}"
    declared = view(SOLD, more=window).replace("v INT", "v INT, at TIMESTAMP")
    lake = Lake(tmp_path, declared, spark)
    rows = [
        {"id": i, "g": "a", "v": i, "at": datetime(2024, 1, i, 9, tzinfo=UTC)} for i in range(1, 9)
    ]
    lake.put("sales", *rows)
    lake.advance()
    assert days_of(lake) == [6, 7, 8]
    gone = pa.Table.from_pylist([{**rows[-1], CHANGE: "delete"}])
    before = lake.head("sales")
    by_marking(spark)(before, gone, ["id"], a_position(before.next_batch))
    lake.advance()
    assert days_of(lake) == [5, 6, 7]
    assert wrong(lake, "found") == {}


def by_spark(lake: Lake) -> Project:
    """The lake's project, with commits by Spark, which marks no row."""
    spark = lake.project.spark.model_copy(update={"commit": "spark"})
    return lake.project.model_copy(update={"spark": spark})


def days_of(lake: Lake) -> list[int]:
    return sorted(row["window_start"].day for row in lake.rows("found"))


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("engine", ["process", "spark"])
@pytest.mark.parametrize("is_gone", [False, True], ids=["comes", "goes"])
def test_the_state_and_inputs_are_searched_here_though_they_are_large(
    tmp_path: Path,
    spark: "SparkSession",
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    *,
    is_gone: bool,
) -> None:
    """The state for a row that comes; the input too, for a greatest one that goes."""
    monkeypatch.delattr("sluice.delta.reading.spark_reads.narrowed_snapshot")
    lake = lake_of(tmp_path, spark, "most: max(v)")
    if engine == "spark":
        lake.limit(computed_here_bytes=-1)
    lake.limit(read_here_bytes=-1)
    lake.put("sales", gone=ROWS[1:3]) if is_gone else lake.put("sales", {**ROWS[3], "id": 9})
    state, found = lake.advance()
    assert {r.engine.partition(":")[0] for r in (state, found)} == {engine}
    assert state.recomputed == is_gone
    assert wrong(lake, "found") == {}
