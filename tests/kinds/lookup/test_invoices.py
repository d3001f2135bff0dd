"""KIP-99's example from files to invoices: purchases, their products and their customers."""

from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.support.lake import Row, counted
from tests.support.landed import START, Landed, NewLanded, day, folder_of

from sluice.engine import BatchReport
from sluice.operate.run import run

DECLARED = """
sources:
  purchases:
    path: "landing/{interval_start:%Y-%m-%d}/"
    format: json
    schema: "account_id INT, product_id INT, at TIMESTAMP"
dimensions:
  products:
    path: landing/products/
    format: json
    schema: "product_id INT, name STRING, description STRING, price DECIMAL(6,2)"
    key: [product_id]
  customers:
    path: landing/customers/
    format: json
    schema: "account_id INT, name STRING, address STRING"
    key: [account_id]
  tariffs:
    path: landing/tariffs/
    format: json
    schema: "product_id INT, price DECIMAL(6,2), since TIMESTAMP"
    key: [product_id]
    history: true
    valid_from: since
views:
  invoices: {kind: lookup, from: purchases, join: &joins [
      {dimension: products, on: product_id = products.product_id},
      {dimension: customers, on: account_id = customers.account_id}],
    select: &shown {customer: customers.name, address: customers.address, product: products.name,
      description: products.description, price: products.price}}
  refreshed: {kind: lookup, from: purchases, join: *joins, select: *shown, refresh: true}
  dated: {kind: lookup, from: purchases, as_of: event_time, time: at,
    join: [{dimension: tariffs, on: product_id = tariffs.product_id}],
    select: {price: tariffs.price}}
"""
CUSTOMERS = [
    {"account_id": 1, "name": "Ann", "address": "1 High St"},
    {"account_id": 2, "name": "Bob", "address": "2 Low Rd"},
]
LATE = START.replace(hour=6).isoformat()
TEA, OIL = 10, 20
ANN_TEA, BOB_OIL, BOB_TEA = (1, TEA), (2, OIL), (2, TEA)


@pytest.fixture
def shop(new_landed: NewLanded) -> Landed:
    """Two purchases of the first day, and one of nobody known."""
    shop = new_landed(DECLARED)
    shop.land("customers", a_json=CUSTOMERS)
    price(shop, tea=3)
    shop.land("tariffs", a_json=[since(0, 3)])
    sell(shop, 0, ANN_TEA, BOB_OIL, (9, TEA))
    return shop


def price(shop: Landed, tea: int) -> None:
    rows = [
        {"product_id": TEA, "name": "tea", "description": "green", "price": tea},
        {"product_id": OIL, "name": "oil", "description": "olive", "price": 7},
    ]
    shop.land("products", a_json=rows)


def since(nth: int, tea: int, hour: int = 0) -> Row:
    return {"product_id": TEA, "price": tea, "since": noon(nth, hour).isoformat()}


def noon(nth: int, hour: int = 12) -> datetime:
    return day(nth).start.replace(hour=hour)


def sell(shop: Landed, nth: int, *purchases: tuple[int, int]) -> None:
    at = noon(nth).isoformat()
    rows = [{"account_id": account, "product_id": item, "at": at} for account, item in purchases]
    shop.land(folder_of(nth), a_json=rows)


def ran(shop: Landed, *days: int) -> dict[str, BatchReport]:
    """The last report of each table."""
    found: dict[str, BatchReport] = {}
    pipeline = shop.project.pipelines["shop"]
    run(shop.spark, shop.project, pipeline, map(day, days), lambda r: found.update({r.table: r}))
    return found


def prices(shop: Landed, view: str) -> list[int]:
    return sorted(int(row["price"]) for row in shop.rows(view))


def invoice(customer: str, address: str, product: str, description: str, cost: int) -> Any:
    return {
        "customer": customer,
        "address": address,
        "product": product,
        "description": description,
        "price": Decimal(cost),
    }


def test_purchases_become_invoices_at_the_price_of_their_batch_of_today_or_of_their_day(
    shop: Landed,
) -> None:
    ran(shop, 0)
    expected = [
        invoice("Ann", "1 High St", "tea", "green", 3),
        invoice("Bob", "2 Low Rd", "oil", "olive", 7),
    ]
    assert counted(shop.rows("invoices")) == counted(shop.rows("refreshed")) == counted(expected)
    price(shop, tea=4)
    begun = since(1, 4, hour=12)  # at the moment of a purchase
    shop.land("tariffs", a_json=[since(0, 3), begun])
    assert ran(shop, 0)["shop.invoices"].outcome == "unchanged", "the same facts, a new price"
    sell(shop, 0, ANN_TEA, BOB_OIL, (9, TEA), BOB_TEA)
    sell(shop, 1, ANN_TEA)
    ran(shop, 0, 1)
    assert prices(shop, "invoices") == [3, 4, 4, 7], "of its batch: the first fact kept its price"
    assert prices(shop, "refreshed") == [4, 4, 4, 7], "of today"
    assert prices(shop, "dated") == [3, 3, 3, 4], "of the day, whoever bought"
    shop.land("tariffs", a_json=[since(0, 3), begun, {**since(0, 2), "since": LATE}])
    report = ran(shop, 0)["shop.dated"]
    assert (report.inserted, report.updated, report.deleted) == (0, 3, 0)
    assert prices(shop, "dated") == [2, 2, 2, 4], "a version that came late"


def test_a_field_of_a_dimensions_struct_is_shown(new_landed: NewLanded) -> None:
    shop = new_landed("""
sources:
  purchases: {path: "landing/{interval_start:%Y-%m-%d}/", format: json, schema: "account_id INT"}
dimensions:
  customers: {path: landing/customers/, format: json, key: [account_id],
    schema: "account_id INT, address STRUCT<city: STRING, zip: STRING>"}
views:
  cities: {kind: lookup, from: purchases,
    join: [{dimension: customers, on: account_id = customers.account_id}],
    select: {city: customers.address.city}}
""")
    shop.land("customers", a_json=[{"account_id": 1, "address": {"city": "Bath", "zip": "BA1"}}])
    shop.land(folder_of(0), a_json=[{"account_id": 1}])
    ran(shop, 0)
    assert shop.rows("cities") == [{"city": "Bath"}]
