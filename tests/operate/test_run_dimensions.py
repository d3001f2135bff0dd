"""A run and its dimensions: each is there before what is made from it, and stays as it was."""

import shutil

import pytest
from tests.support.landed import RUN, Landed, NewLanded, day, folder_of

from sluice.delta.failures import stored_failures
from sluice.delta.places.folders import LandedFile
from sluice.delta.places.lake_layout import layout
from sluice.delta.reading.landing import list_files
from sluice.dimensions.load import load
from sluice.engine import BatchReport
from sluice.errors import SluiceError, UsageError
from sluice.operate import run as running
from sluice.operate.explain import explain
from sluice.read.status import status
from sluice.spark.session import Spark

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
PLACED = """
  placed: {kind: lookup, from: sales, join: [{dimension: shops, on: item = shops.shop}]}"""
SUMS = """
  sums: {kind: cogroup, key: [item], streams: {all: {from: priced, aggregates: {n: count(*)}}}}
"""


@pytest.fixture
def lake(new_landed: NewLanded) -> Landed:
    """Three days of one sale, and the price of what was sold."""
    lake = new_landed(DECLARED)
    for nth in range(3):
        lake.land(folder_of(nth), a_json=[{"id": nth, "item": 1}])
    price(lake, 5)
    return lake


def price(lake: Landed, cost: int) -> None:
    lake.land("items", a_json=[{"item": 1, "price": cost}])


def prices(lake: Landed) -> list[int]:
    return sorted(row["price"] for row in lake.rows("priced"))


def test_all_rounds_of_a_run_look_up_what_its_first_has_found(
    lake: Landed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "ROUND_INTERVALS", 1)
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


@pytest.mark.parametrize("found", ["a file without a column", "no file"])
def test_failing_dimensions_stop_only_what_needs_them(new_landed: NewLanded, found: str) -> None:
    lake = new_landed(DECLARED.replace("dimensions:", SHOPS) + PLACED + SUMS)
    lake.land(folder_of(0), a_json=[{"id": 0, "item": 1}])
    price(lake, 5)
    if found != "no file":
        lake.land("shops", a_csv="shop\n1\n")
    pipeline, reports = lake.project.pipelines["shop"], list[BatchReport]()
    with pytest.raises(SluiceError, match=r"shop\.shops"):
        running.run(lake.spark, lake.project, pipeline, [day(0)], reports.append)
    skipped = {r.table: r.because for r in reports if r.outcome == "skipped"}
    assert skipped == {"shop.placed": ("shop.shops",)}
    assert (prices(lake), len(lake.rows("sums"))) == ([5], 1)
    blocked = {t.table: t.blocked_by for t in status(lake.project) if t.blocked_by}
    assert blocked == {"shop.placed": ("shop.shops",)}
    lake.land("shops", a_csv="shop,place\n1,here\n")
    running.run(lake.spark, lake.project, pipeline, [day(0)])
    assert [row["place"] for row in lake.rows("placed")] == ["here"]


def test_stores_that_are_away_are_awaited(lake: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[str] = []

    def listed(path: str) -> list[LandedFile]:
        if "items" in path and not waits:
            waits.append(path)
            raise OSError("curlCode: 7, Couldn't connect to server")
        return list_files(path)

    monkeypatch.setattr("sluice.dimensions.source.landing.list_files", listed)
    monkeypatch.setattr("sluice.engine.retries.PAUSES", (0.0,))
    warnings: list[str] = []
    pipeline = lake.project.pipelines["shop"]
    running.run(lake.spark, lake.project, pipeline, [day(0)], lambda r: warnings.extend(r.warnings))
    assert (prices(lake), len(waits)) == ([5], 1)
    assert [w for w in warnings if w.startswith("tried again after 0 s: shop.items")]


def test_a_missing_folder_is_reported_by_the_plan_and_without_spark(lake: Landed) -> None:
    shutil.rmtree(lake.landing / "items")
    (step,) = explain(lake.project, lake.table("items"))
    assert "there are no files at" in step.reason
    spark, pipeline = Spark(lake.project.spark), lake.project.pipelines["shop"]
    with pytest.raises(UsageError, match="there are no files at"):
        load(spark, lake.project, lake.table("items"), RUN)
    assert not spark.is_started
    with pytest.raises(UsageError, match="there are no files at"):
        running.run(lake.spark, lake.project, pipeline, [day(0)])
    assert [row["id"] for row in lake.rows("sales")] == [0]
    assert list(stored_failures(layout(lake.project))) == ["shop.items"]
