"""`run --refresh` and `--full-refresh`, refused rebuilds, and views that wait for one."""

from pathlib import Path

import pytest
from tests.cli.trips import Here

PIPELINE = """
pipeline: trips
schedule: assets
sources:
  flights: {path: landing/flights, format: json, delivery: stream, schema: "id INT, delay INT"}
views:
  late: {kind: select, from: flights, where: delay > 3, select: {id: id, delay: delay}}
  total: {kind: sql, sql: SELECT sum(delay) AS delay FROM late}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = Here(tmp_path_factory.mktemp("trips"))
    project.declare(PIPELINE)
    (project.folder / "landing/flights").mkdir(parents=True)
    (project.folder / "landing/flights/1.json").write_text('{"id": 1, "delay": 5}\n')
    project.complete("run")
    return project.folder


def test_a_preview_of_a_refresh_shows_the_tables_of_the_run(project: Here) -> None:
    (project.folder / "landing/flights/2.json").write_text('{"id": 2, "delay": 7}\n')
    previews = {
        options: {r["table"] for r in project.complete("run", *options, "--preview").records}
        for options in (("--refresh", "flights", "--json"), ("--full-refresh", "late", "--json"))
    }
    assert [*previews.values()] == [{"trips.flights"}, {"trips.late"}]


def test_a_refused_rebuild_leaves_no_failure(project: Here) -> None:
    for asked in (("run", "--full-refresh", "flights"), ("rebuild", "flights")):
        refused = project.sluice(*asked)
        assert refused.code == 5
        assert "it can't be read again" in refused.err
    assert "nothing is wrong" in project.complete("doctor").out


def test_a_view_that_waits_for_a_rebuild_leaves_the_others_verified(project: Here) -> None:
    project.declare(PIPELINE.replace("sum(delay)", "max(delay)"))
    verified = project.sluice("verify", "--json")
    assert {r["table"] for r in verified.records} == {"trips.flights", "trips.late"}
    assert verified.code == 2
    assert "trips.total was built by a definition that differs" in verified.err
    assert "sluice rebuild trips.total" in verified.err
