"""Loads that are killed half-way: no fact meets half a dimension, and the next run mends it."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.crash.conftest import Pool
from tests.crash.shop import Shop, day
from tests.support.lake import counted

from sluice.engine.advance import Run, advance
from sluice.operate.verify import faults
from sluice.spark.session import Spark

PIPELINE = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  sales: {path: "landing/{interval_start:%Y-%m-%d}/", format: json, schema: "item STRING, n INT"}
dimensions:
  products: {path: landing/products/, format: json, schema: "item STRING, price INT", key: [item]}
views:
  invoices: {kind: lookup, from: sales, join: [{dimension: products, on: item = products.item}],
    select: {item: item, total: n * products.price}}
  refreshed: {kind: lookup, from: sales, join: [{dimension: products, on: item = products.item}],
    select: {item: item, total: n * products.price}, refresh: true}
"""
ITEMS = [f"item {n}" for n in range(40)]


@pytest.fixture
def shop(tmp_path: Path, session: SparkSession) -> Shop:
    shop = Shop.create(tmp_path / "shop")
    (shop.config / "pipelines" / "shop.yaml").write_text(PIPELINE)
    land(shop, "2024-01-01", [{"item": item, "n": 2} for item in ITEMS])
    priced(shop, 1)
    return shop


def land(shop: Shop, folder: str, rows: list[dict[str, object]]) -> None:
    path = shop.folder / "landing" / folder / "rows.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)))


def priced(shop: Shop, price: int) -> None:
    land(shop, "products", [{"item": item, "price": price} for item in ITEMS])


def totals(shop: Shop, view: str) -> list[int]:
    """The different totals that a view shows."""
    return sorted({dict(row)["total"] for row in shop.rows(view)})


def test_a_load_that_never_ended_is_no_dimension(pool: Pool, shop: Shop) -> None:
    pool.killed(shop, day(1), at="created:products")
    project = shop.project
    for name in ("invoices", "refreshed"):
        found = advance(Spark(project.spark), project, project.graph.table(name), Run("early"))
        assert [report.outcome for report in found] == ["waiting"]
    shop.run(day(1))
    assert totals(shop, "invoices") == totals(shop, "refreshed") == [2]


def test_a_load_that_was_killed_before_it_was_noted_is_mended(pool: Pool, shop: Shop) -> None:
    shop.run(day(1))
    priced(shop, 5)
    pool.killed(shop, day(1), at="committed:products")
    assert shop.rows("products") == counted({"item": item, "price": 5} for item in ITEMS)
    assert totals(shop, "refreshed") == [2]
    shop.run(day(1))
    assert (totals(shop, "invoices"), totals(shop, "refreshed")) == ([2], [10])
    assert {outcome.split()[1] for outcome in shop.run(day(1))} == {"unchanged"}


def test_a_table_that_is_replaced_whole_is_so_once(pool: Pool, shop: Shop) -> None:
    settings = (shop.config / "sluice.yaml").read_text()
    few = settings.replace("spark:\n", "spark:\n  small_changelog: 10\n")
    (shop.config / "sluice.yaml").write_text(few)
    shop.run(day(1))
    priced(shop, 5)
    pool.killed(shop, day(1), at="committed:refreshed")
    assert totals(shop, "refreshed") == [10]
    shop.run(day(1))
    assert totals(shop, "refreshed") == [10]
    assert {outcome.split()[1] for outcome in shop.run(day(1))} == {"unchanged"}
    assert not any(faults(shop.project, shop.project.graph.table("refreshed")).values())
