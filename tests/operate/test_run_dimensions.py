"""A run and its dimensions: they are there before anything else, and stay as they were found.

A missing one is told at once, without Spark.
"""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.landed import RUN, Landed, day, folder_of

from sluice.delta.notes.failures import kept
from sluice.delta.places.lake import layout
from sluice.delta.places.walk import LandedFile
from sluice.delta.reading.landing import list_files
from sluice.dimensions.load import load
from sluice.engine.report import BatchReport
from sluice.errors import QualityStop, UsageError
from sluice.operate import run as running
from sluice.operate.explain import explain
from sluice.spark.session import Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARED = """
sources:
  sales: {path: "landing/{interval_start:%Y-%m-%d}/", format: json, schema: "id INT, item INT"}
dimensions:
  items: {path: landing/items/, format: json, schema: "item INT, price INT", key: [item]}
views:
  priced: {kind: lookup, from: sales, join: [{dimension: items, on: item = items.item}]}
"""

SHOPS = """dimensions:
  shops: {path: landing/shops/, format: csv, schema: "shop INT, place STRING", key: [shop]}"""
SUMS = """
  sums: {kind: cogroup, key: [item], streams: {all: {from: priced, aggregates: {n: count(*)}}}}
"""


@pytest.fixture
def lake(tmp_path: Path, spark: "SparkSession") -> Landed:
    """Three days of one sale, and the price of what was sold."""
    lake = Landed(tmp_path, DECLARED, spark)
    for nth in range(3):
        lake.land(folder_of(nth), a_json=[{"id": nth, "item": 1}])
    price(lake, 5)
    return lake


def price(lake: Landed, cost: int) -> None:
    lake.land("items", a_json=[{"item": 1, "price": cost}])


def prices(lake: Landed) -> list[int]:
    return sorted(row["price"] for row in lake.rows("priced"))


def test_all_rounds_of_a_run_look_up_what_its_first_has_found(lake: Landed) -> None:
    lake.limit(round_intervals=1)
    pipeline, loaded = lake.project.pipelines["shop"], []

    def dearer(report: BatchReport) -> None:
        if report.kind == "dimension":
            loaded.append(report.version)
        if report.table == "shop.priced":
            price(lake, 9)

    running.run(lake.spark, lake.project, pipeline, map(day, range(2)), dearer)
    assert (prices(lake), len(loaded)) == ([5, 5], 1)
    running.run(lake.spark, lake.project, pipeline, [day(2)], dearer)
    assert prices(lake) == [5, 5, 9]


def test_where_one_dimension_can_not_be_loaded_no_fact_is_joined_to_another(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = Landed(tmp_path, DECLARED.replace("dimensions:", SHOPS) + SUMS, spark)
    lake.land(folder_of(0), a_json=[{"id": 0, "item": 1}])
    price(lake, 5)
    lake.land("shops", a_csv="shop\n1\n")
    pipeline = lake.project.pipelines["shop"]
    with pytest.raises(QualityStop, match="lacks the declared column"):
        running.run(lake.spark, lake.project, pipeline, [day(0)])
    built = {folder.name for folder in (lake.folder / "lake" / "shop").iterdir()}
    assert {"sales", "items"} <= built
    assert not {"priced", "sums", "shops"} & built
    lake.land("shops", a_csv="shop,place\n1,here\n")
    running.run(lake.spark, lake.project, pipeline, [day(0)])
    assert (prices(lake), len(lake.rows("sums"))) == ([5], 1)


def test_a_store_that_is_away_for_a_moment_is_waited_for(
    lake: Landed, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[str] = []

    def listed(path: str) -> list[LandedFile]:
        if "items" in path and len(waits) < 2:
            waits.append(path)
            raise OSError("curlCode: 7, Couldn't connect to server")
        return list_files(path)

    monkeypatch.setattr("sluice.dimensions.source.landing.list_files", listed)
    monkeypatch.setattr("sluice.engine.retries.PAUSES", (0.0,))
    warnings: list[str] = []
    pipeline = lake.project.pipelines["shop"]
    running.run(lake.spark, lake.project, pipeline, [day(0)], lambda r: warnings.extend(r.warnings))
    assert (prices(lake), len(waits)) == ([5], 2)
    assert [w for w in warnings if w.startswith("tried again after 0 s: shop.items")]


def test_a_missing_folder_is_reported_by_the_plan_and_before_spark_starts(lake: Landed) -> None:
    shutil.rmtree(lake.landing / "items")
    (step,) = explain(lake.project, lake.table("items"))
    assert "there are no files at" in step.reason
    spark, pipeline = Spark(lake.project.spark), lake.project.pipelines["shop"]
    with pytest.raises(UsageError, match="there are no files at"):
        load(spark, lake.project, lake.table("items"), RUN)
    with pytest.raises(UsageError, match="there are no files at"):
        running.run(spark, lake.project, pipeline, [day(0)])
    assert not spark.is_started
    assert [folder.name for folder in (lake.folder / "lake").iterdir()] == ["__quality"]
    assert list(kept(layout(lake.project))) == ["shop.items"]
