"""What has changed in the landing folder is listed by `plan`, and delivered by `run --changed`."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from tests.support.landed import Landed, NewLanded, day, folder_of

from sluice.cli.main import main
from sluice.engine import BatchReport
from sluice.engine.next_batch import NextBatch
from sluice.language.interval import Interval
from sluice.operate.explain import explain
from sluice.operate.run import run
from sluice.read.pending import news_of

DECLARED = """sources:
  flights:
    {path: "landing/flights/{interval_start:%Y-%m-%d}/", format: json, schema: "id INT"}
  weather:
    {path: "landing/weather/{interval_start:%Y-%m-%d}/", format: json, schema: "id INT", key: [id]}
views:
  delays: {kind: cogroup, key: [id], streams: {s: {from: flights, aggregates: {n: count(*)}}}}
"""
NOON_OF_THE_FIFTH = datetime(2024, 1, 5, 12, tzinfo=UTC)


@pytest.fixture
def lake(new_landed: NewLanded) -> Landed:
    """Four days have ended, of which two were delivered; the second of weather had no files."""
    lake = new_landed(DECLARED)
    for nth in range(4):
        lake.land(f"flights/{folder_of(nth)}", a_json=[{"id": nth}])
    lake.land(f"weather/{folder_of(0)}", a_json=[{"id": 9}])
    brought_up(lake, [day(0), day(1)])
    return lake


def brought_up(lake: Landed, intervals: list[Interval], *, allow_empty: bool = False) -> None:
    pipeline = lake.project.pipelines["shop"]
    run(lake.spark, lake.project, pipeline, intervals, allow_empty=allow_empty)


def news(lake: Landed) -> dict[str, frozenset[Interval]]:
    tables = lake.project.graph.pipeline("shop")
    return {t.id: news_of(lake.project, t, NOON_OF_THE_FIFTH) for t in tables}


def pending(lake: Landed) -> list[Interval]:
    return sorted(frozenset[Interval]().union(*news(lake).values()))


def planned(lake: Landed, name: str) -> NextBatch:
    return explain(lake.project, lake.table(name), NOON_OF_THE_FIFTH)[0]


def test_days_that_have_ended_are_due(lake: Landed) -> None:
    assert pending(lake) == [day(2), day(3)]
    step = planned(lake, "weather")
    assert list(map(str, step.due)) == ["[2024-01-03, 2024-01-05) (2 intervals)"]
    assert (step.changed, step.gone) == ((), ())
    assert "; due: [2024-01-03, 2024-01-05)" in step.reason


def test_days_whose_files_changed_are_delivered_again_and_no_others(lake: Landed) -> None:
    brought_up(lake, pending(lake))
    assert pending(lake) == []
    assert planned(lake, "flights").next == "nothing"
    lake.land(f"flights/{folder_of(1)}", a_json=[{"id": 1}, {"id": 7}])
    assert planned(lake, "flights").next == "ingest"
    lake.land(f"weather/{folder_of(3)}", a_json=[{"id": 3}])
    assert list(map(str, planned(lake, "flights").changed)) == [
        "[2024-01-02, 2024-01-03) (1 interval)"
    ]
    assert "with other files now: [2024-01-04, 2024-01-05)" in planned(lake, "weather").reason
    assert pending(lake) == [day(1), day(3)]
    brought_up(lake, pending(lake))
    assert pending(lake) == []
    assert {row["id"] for row in lake.rows("delays")} == {0, 1, 2, 3, 7}
    assert {row["id"] for row in lake.rows("weather")} == {3, 9}


def test_a_source_is_not_asked_for_the_days_on_which_only_another_has_news(lake: Landed) -> None:
    brought_up(lake, pending(lake))
    lake.land(f"flights/{folder_of(1)}", a_json=[{"id": 1}, {"id": 7}])
    reports: list[BatchReport] = []
    pipeline, found = lake.project.pipelines["shop"], news(lake)
    run(lake.spark, lake.project, pipeline, pending(lake), reports.append, only=found)
    delivered = {(r.table, r.interval[0][:10]) for r in reports if r.interval}
    assert delivered == {("shop.flights", "2024-01-02")}
    assert {row["id"] for row in lake.rows("delays")} == {0, 1, 2, 3, 7}


def test_a_day_whose_files_are_gone_is_named(lake: Landed) -> None:
    lake.land(f"flights/{folder_of(0)}")
    step = planned(lake, "flights")
    assert list(map(str, step.gone)) == ["[2024-01-01, 2024-01-02) (1 interval)"]
    assert "without files now" in step.reason
    brought_up(lake, pending(lake), allow_empty=True)
    assert planned(lake, "flights").gone == ()
    assert {row["id"] for row in lake.rows("delays")} == {1, 2, 3}


def test_another_definition_is_no_news_of_the_files(lake: Landed) -> None:
    file = lake.folder / "config" / "pipelines" / "shop.yaml"
    lake.declare(file.read_text().replace('schema: "id INT"}', 'schema: "id INT, n INT"}'))
    assert planned(lake, "flights").changed == ()


def test_the_command_finds_its_intervals_itself(lake: Landed) -> None:
    asked = ["run", "shop", "--changed", "--start", "2024-01-01"]
    said = CliRunner().invoke(main, [*asked, "--config", str(lake.folder / "config")])
    assert "leave out --start and --end" in said.output


def test_a_run_with_nothing_due_builds_views_that_are_new(lake: Landed) -> None:
    file = lake.folder / "config" / "pipelines" / "shop.yaml"
    lake.declare(
        file.read_text() + "  newest: {kind: topk, from: weather, order_by: [id desc], limit: 3}\n"
    )
    brought_up(lake, [])
    assert [row["id"] for row in lake.rows("newest")] == [9]


def test_a_run_before_anything_is_due_waits(tmp_path: Path, spark: SparkSession) -> None:
    lake = Landed(tmp_path, DECLARED, spark)
    brought_up(lake, [])
    assert not (tmp_path / "lake" / "shop").exists()
