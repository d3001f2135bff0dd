"""Rows of touched groups: what a plan says of them is what the batch reads, and chooses its engine.

The counts are of plain Python, the limits those by which a batch gives up in this process.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.indexing import index_all
from tests.support.lake import Lake, Row

from sluice.engine import engine_choice
from sluice.engine.engine_choice import RowsRead
from sluice.engine.next_batch import NextBatch
from sluice.engine.plan import nodes_of
from sluice.operate.explain import explain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARED = """
sources:
  sales: {path: "s/{interval_start:%Y}/", schema: "id INT, g STRING, v INT", key: [id]}
views:
"""
SELECT = "select: {id: id, nth: row_number() OVER w, most: max(v) OVER p}"
VIEWS = {
    "over": f"over, from: sales, partition_by: [g], order_by: [v], {SELECT}",
    "rows": "select, from: sales, where: v > 0",
    "distinct": "select, from: sales, distinct: true, select: {g: g, v: v}",
    "expression": f"over, from: sales, partition_by: ['v % 3'], order_by: [v], {SELECT}",
}
MANY, OTHERS = 30, 10


def sale(id_: int, g: str, v: int) -> Row:
    return {"id": id_, "g": g, "v": v}


def lake_of(folder: Path, session: "SparkSession", kind: str = "over") -> Lake:
    """A view of 30 rows of one group and 10 of another, whose tables are large."""
    lake = Lake(folder, f"{DECLARED}  seen: {{kind: {VIEWS[kind]}}}\n", session)
    lake.put("sales", *(sale(i, "a", i) for i in range(MANY)))
    lake.put("sales", *(sale(100 + i, "b", i) for i in range(OTHERS)))
    lake.advance("seen")
    return lake.limit(read_here_bytes=0)


def planned(lake: Lake) -> NextBatch:
    (step,) = explain(lake.project, lake.table("seen"))
    return step


def rows_of(step: NextBatch) -> dict[str, tuple[int | None, str]]:
    return {name: (read.rows, str(read.bound)) for name, read in step.touched.items()}


def test_a_plan_counts_the_rows_of_touched_groups(tmp_path: Path, spark: "SparkSession") -> None:
    lake = lake_of(tmp_path, spark)
    lake.put("sales", sale(200, "a", 5), sale(201, "a", 6))
    step = planned(lake)
    assert rows_of(step) == {"shop.sales": (MANY + 2, "exact"), "shop.seen": (MANY, "exact")}
    assert step.rows == 2 + MANY + 2 + MANY
    assert step.bytes > sum(read.bytes for read in step.touched.values()) > 0
    assert (
        "1 touched group: 32 rows in 0.0 MB of shop.sales and 30 rows in 0.0 MB of" in step.reason
    )


def test_a_view_that_follows_row_by_row_reads_no_group(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = lake_of(tmp_path, spark, "rows")
    assert (planned(lake).next, planned(lake).bytes) == ("nothing", 0)
    lake.put("sales", sale(200, "a", 5))
    assert (planned(lake).next, rows_of(planned(lake))) == ("row-wise", {})


def test_rows_of_an_input_are_not_known_by_group_if_one_of_its_streams_computes_its_key(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    counts = "aggregates: {{{}: count(*)}}".format
    streams = (
        f"a: {{from: sales, {counts('n')}}}, b: {{from: sales, key: [upper(g)], {counts('m')}}}"
    )
    lake = Lake(
        tmp_path, f"{DECLARED}  seen: {{kind: cogroup, key: [g], streams: {{{streams}}}}}\n", spark
    )
    state, *_ = nodes_of(lake.table("seen"), lake.project.graph)
    assert state.operator.map_to_group("shop.sales") == ()


def test_a_row_that_moves_touches_both_of_its_groups(tmp_path: Path, spark: "SparkSession") -> None:
    lake = lake_of(tmp_path, spark)
    lake.put("sales", sale(1, "b", 5))
    assert rows_of(planned(lake)) == dict.fromkeys(
        ("shop.sales", "shop.seen"), (MANY + OTHERS, "exact")
    )


@pytest.mark.parametrize(("most", "engine"), [(MANY + 1, "process"), (MANY, "spark")])
def test_the_engine_follows_from_the_rows_that_the_batch_reads(
    tmp_path: Path, spark: "SparkSession", most: int, engine: str
) -> None:
    """One row more than this process takes: the batch is not begun here."""
    lake = lake_of(tmp_path, spark)
    lake.put("sales", sale(200, "a", 5))
    lake.limit(reread_rows=most)
    step = planned(lake)
    (report,) = lake.advance("seen")
    assert report.outcome == "committed"
    said = f"more than {most} rows of touched groups are read at once"
    engine = f"spark: {said}" if engine == "spark" else engine
    assert (step.engine, report.engine) == (engine, engine)
    assert (f"by Spark: {said}" in step.reason) == (engine != "process")


def test_a_batch_that_this_process_takes_reads_no_more_than_planned(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    """The other group alone would be too many rows, but is not touched."""
    lake = lake_of(tmp_path, spark)
    lake.put("sales", sale(200, "b", 5))
    lake.limit(reread_rows=OTHERS + 1)
    step = planned(lake)
    assert rows_of(step)["shop.sales"] == (OTHERS + 1, "exact")
    (report,) = lake.advance("seen")
    assert (step.engine, report.engine) == ("process", "process")
    assert [(r["nth"], r["most"]) for r in lake.rows("seen") if r["id"] == 200] == [(7, 9)]


def test_few_rows_stay_here_only_if_this_process_computes_at_all(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = lake_of(tmp_path, spark)
    lake.put("sales", sale(200, "b", 5))
    assert planned(lake.limit(computed_here_bytes=-1)).engine == "spark: 0.0 MB are read at once"


@pytest.mark.parametrize(("group", "engine"), [("b", "process"), ("a", "spark")])
def test_rows_of_indexed_files_are_counted_by_their_indexes(
    tmp_path: Path,
    spark: "SparkSession",
    monkeypatch: pytest.MonkeyPatch,
    group: str,
    engine: str,
) -> None:
    """A search would read them; only if they may be too many are they counted one by one."""
    index_all(monkeypatch, tmp_path / "cache")
    lake, counted = lake_of(tmp_path, spark), list[str]()
    lake.limit(merged_bytes=0, marked_share=1.0)
    for nth in range(4):
        lake.put("sales", sale(200 + nth, "ab"[nth % 2], 5))
        lake.advance("seen")
    lake.limit(reread_rows=2 * OTHERS)
    count = engine_choice._count
    monkeypatch.setattr(
        engine_choice,
        "_count",
        lambda table, *given: counted.append(table.uri) or count(table, *given),
    )
    lake.put("sales", sale(300, group, 5))
    counted.clear()
    (report,) = lake.advance("seen")
    assert (report.engine.partition(":")[0], bool(counted)) == (engine, engine == "spark")
    assert len(lake.rows("seen")) == MANY + OTHERS + 5


def test_a_view_of_distinct_rows_counts_its_groups_too(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = lake_of(tmp_path, spark, "distinct")
    lake.put("sales", sale(200, "a", 5))
    assert rows_of(planned(lake)) == {"shop.sales": (2, "exact"), "shop.seen": (1, "exact")}


def test_groups_that_no_column_names_are_up_to_the_whole_input(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = lake_of(tmp_path, spark, "expression")
    lake.put("sales", sale(200, "a", 5))
    step = planned(lake)
    assert step.touched["shop.sales"].bound == "up to"
    assert step.touched["shop.sales"].rows == MANY + OTHERS + 1
    read = "; 1 touched group: up to 41 rows in 0.0 MB of shop.sales and 13 rows in 0.0 MB of"
    assert read in step.reason  # 13 have the same `v % 3`


def test_of_small_tables_a_plan_opens_no_file(tmp_path: Path, spark: "SparkSession") -> None:
    """The batch reads them whole, and the log says how many rows that are."""
    lake = lake_of(tmp_path, spark).here()
    lake.put("sales", sale(200, "b", 5))
    for file in Path(lake.folder / "lake").rglob("*.parquet"):
        file.write_bytes(b"no rows can be read of this")
    whole = MANY + OTHERS
    assert rows_of(planned(lake)) == {
        "shop.sales": (whole + 1, "exact"),
        "shop.seen": (whole, "exact"),
    }


def test_files_that_cannot_be_read_leave_a_bound(tmp_path: Path, spark: "SparkSession") -> None:
    lake = lake_of(tmp_path, spark)
    lake.put("sales", sale(200, "b", 5))
    for file in Path(lake.folder / "lake").rglob("*.parquet"):
        file.write_bytes(b"no rows can be read of this")
    assert {read.bound for read in planned(lake).touched.values()} == {"up to"}


def test_nothing_is_looked_up_without_new_data(
    tmp_path: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_of(tmp_path, spark)
    monkeypatch.setattr(RowsRead, "of", None)
    assert planned(lake).next == "nothing"
