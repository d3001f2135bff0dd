"""Batches as large as this process takes: a hundredth of the rows, by limits as much smaller."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from tests.benchmarks.engines import VIEWS, build, land, project_in
from tests.support.lake import NewLake

from sluice.declare.project import Project
from sluice.delta.places.delta_rs import open_table
from sluice.interpreter import UnsupportedLocally
from sluice.limits import Limits
from sluice.spark.engine import PROCESS
from sluice.spark.session import Spark

TIMES = 100
ROWS = 2_000_000 // TIMES
SALES = """
sources:
  sales: {path: "s/{interval_start:%Y-%m-%d}/", key: [id], schema: "id INT, v INT"}
"""
LISTED = 8  # weight of rows whose aggregates keep values


def project_of(folder: Path, times: int = TIMES) -> Project:
    """Return a project whose limits are so many times smaller, with as many rows less."""
    usual = Limits()
    here, held = usual.computed_here_bytes // times, usual.held_bytes // times
    limits = replace(usual, computed_here_bytes=here, held_bytes=held, read_here_bytes=0)
    return project_in(folder, limits)


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spark, "session", property(lambda _: pytest.fail("Spark was started")))


@pytest.mark.usefixtures("without_spark")
def test_two_million_new_rows_of_a_view_start_no_spark(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    land(project, ROWS)
    spark = Spark(project.spark)
    for view in VIEWS:
        if view != "lists":
            assert {report.engine for report in build(spark, project, view)} == {PROCESS}, view


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize(("rows", "is_here"), [(ROWS // LISTED, True), (4 * ROWS // LISTED, False)])
def test_rows_whose_values_are_kept_weigh_more(tmp_path: Path, rows: int, is_here: bool) -> None:
    project = project_of(tmp_path)
    land(project, rows)
    if is_here:
        assert {r.engine for r in build(Spark(project.spark), project, "lists")} == {PROCESS}
    else:
        with pytest.raises(pytest.fail.Exception, match="Spark was started"):
            build(Spark(project.spark), project, "lists")


@pytest.mark.usefixtures("without_spark")
def test_more_rows_than_are_held_are_left_to_spark(tmp_path: Path) -> None:
    project = project_of(tmp_path, 4 * TIMES)
    land(project, ROWS)
    with pytest.raises(pytest.fail.Exception, match="Spark was started"):
        build(Spark(project.spark), project, "sums")


def test_any_number_of_rows_is_added_here_but_few_are_merged(new_lake: NewLake) -> None:
    """A merge takes several times the memory of its rows."""
    view = "views:\n  seen: {kind: select, from: sales, select: {id: id, v: v}}\n"
    lake = new_lake(SALES + view, small_changelog=2)
    lake.put("sales", *({"id": i, "v": i} for i in range(5)))
    assert [report.engine for report in lake.advance()] == [PROCESS]
    lake.put("sales", *({"id": i, "v": 7} for i in range(2)))
    assert [(report.engine, report.updated) for report in lake.advance()] == [(PROCESS, 2)]
    lake.put("sales", *({"id": i, "v": 8} for i in range(3)))
    with pytest.raises(UnsupportedLocally, match="3 changed rows, which are merged"):
        lake.advance()
    lake.limit(merged_bytes=-1, marked_share=1)
    assert [(report.engine, report.updated) for report in lake.advance()] == [(PROCESS, 3)]


def test_a_large_build_lies_in_files_of_which_a_small_change_rewrites_one(
    new_lake: NewLake,
) -> None:
    view = "views:\n  seen: {kind: select, from: sales, select: {id: id, v: v}}\n"
    lake = new_lake(SALES + view).limit(file_rows=10_000)
    lake.put("sales", *({"id": i, "v": i * 2_654_435_761 % 2**31} for i in range(60_000)))
    lake.advance()
    built = open_table(lake.uri("seen"))
    files = pa.table(built.get_add_actions(flatten=True))
    assert max(files["num_records"].to_pylist()) < 20_000
    ranges = sorted(zip(files["min.id"].to_pylist(), files["max.id"].to_pylist(), strict=True))
    assert all(last < first for (_, last), (first, _) in pairwise(ranges)), "each key in one"
    lake.put("sales", {"id": 7, "v": 1})
    lake.advance()
    assert len({*built.file_uris()} - {*open_table(lake.uri("seen")).file_uris()}) == 1
