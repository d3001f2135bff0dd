"""Batches as large as this process takes: a hundredth of the rows, by limits as much smaller."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.benchmarks.engines import VIEWS, build, land, project_in

from sluice.declare.project import Project
from sluice.limits import Limits
from sluice.spark.session import PROCESS, Spark

TIMES = 100
ROWS = 2_000_000 // TIMES
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
