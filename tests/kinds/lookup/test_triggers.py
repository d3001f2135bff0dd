"""What joins a fact again: its own change, a refresh, a version that stands; no price alone."""

from decimal import Decimal
from typing import Any

import pytest
from tests.kinds.lookup.cases import DECLARED, INVOICES, OF_HISTORY, REFRESHED, price_of_slot
from tests.support.lake import Lake, NewLake, Row, counted
from tests.support.rows import NOON


def test_of_a_history_a_lookup_of_the_latest_takes_the_row_that_stands(new_lake: NewLake) -> None:
    lake = new_lake(DECLARED + OF_HISTORY)
    first, second, third = (
        price_of_slot({"product": "p", "price": Decimal(n), "slot": 5 - n}) for n in (3, 2, 1)
    )
    lake.put("prices", {**first, "valid_to": None, "is_current": True})
    lake.put("purchases", {"id": 1, "product": "p"}, {"id": 2, "product": "q"})
    lake.advance()
    lake.put("prices", first, {**second, "valid_to": None, "is_current": True})
    lake.put("prices", second, third)
    lake.put("purchases", {"id": 3, "product": "p"})
    lake.advance()
    assert priced(lake, "kept") == {1: 3, 2: None, 3: 1}
    assert priced(lake, "followed") == priced(lake, "through_a_view") == {1: 1, 2: None, 3: 1}
    lake.put("prices", {**third, "valid_to": NOON, "is_current": False})
    lake.advance()
    assert priced(lake, "followed") == priced(lake, "through_a_view") == {1: None, 2: None, 3: None}


def priced(lake: Lake, view: str) -> dict[int, Any]:
    """The one price of each purchase."""
    rows = lake.rows(view)
    assert len({r["id"] for r in rows}) == len(rows)
    return {r["id"]: r["price"] for r in rows}


@pytest.fixture
def shop(new_lake: NewLake) -> Lake:
    """Two facts, one with a product and one with none, and a price of 2."""
    lake = new_lake(DECLARED + INVOICES)
    lake.put("products", {"product": "p", "price": Decimal(2)})
    lake.put("accounts")
    lake.put("purchases", {"id": 1, "product": "p", "n": 3}, {"id": 2, "product": None, "n": 3})
    return lake


def invoiced(shop: Lake) -> list[Row]:
    return sorted(({k: r[k] for k in ("id", "total")} for r in shop.rows("invoices")), key=str)


def test_a_changed_price_triggers_nothing_by_itself(shop: Lake) -> None:
    shop.advance()
    version = shop.head("invoices").version
    shop.put("products", {"product": "p", "price": Decimal(9)})
    assert [report.outcome for report in shop.advance()] == ["unchanged"]
    assert shop.head("invoices").version == version
    assert invoiced(shop) == [{"id": 1, "total": 6}]


def test_facts_that_come_again_unchanged_keep_their_price(shop: Lake) -> None:
    shop.advance()
    shop.put("products", {"product": "p", "price": Decimal(9)})
    shop.put("purchases", gone=[{"id": 1}])
    shop.put("purchases", {"id": 1, "product": "p", "n": 3})
    assert [report.outcome for report in shop.advance()] == ["position"]
    shop.put("purchases", {"id": 4, "product": "p", "n": 1})
    shop.advance()
    assert invoiced(shop) == [{"id": 1, "total": 6}, {"id": 4, "total": 9}]


def test_a_fact_that_changed_is_joined_again_though_its_row_looks_the_same(shop: Lake) -> None:
    shop.put("purchases", {"id": 1, "product": "p", "n": None})
    shop.advance()
    shop.put("products", {"product": "q", "price": Decimal(1)})
    shop.put("purchases", {"id": 1, "product": "q", "n": None})
    (report,) = shop.advance()
    assert [(r["id"], r["total"], r["_sluice_batch"]) for r in shop.stored("invoices")] == [
        (1, None, report.batch)
    ]


def test_a_fact_without_a_match_stays_away_until_it_changes(shop: Lake) -> None:
    shop.put("purchases", {"id": 5, "product": "q", "n": 2})
    shop.advance()
    shop.put("products", {"product": "q", "price": Decimal(1)})
    shop.put("purchases", {"id": 1, "product": "p", "n": 4})
    shop.advance()
    assert invoiced(shop) == [{"id": 1, "total": 8}]
    shop.put("purchases", {"id": 5, "product": "q", "n": 7})
    shop.advance()
    assert invoiced(shop) == [{"id": 1, "total": 8}, {"id": 5, "total": 7}]


def test_no_fact_is_joined_before_its_dimensions_are_there(new_lake: NewLake) -> None:
    lake = new_lake(DECLARED + INVOICES)
    lake.put("purchases", {"id": 1, "product": "p", "n": 3})
    lake.put("accounts")
    (report,) = lake.advance()
    assert report.outcome == "waiting"
    assert "shop.products" in report.warnings[0]


def test_a_run_uses_the_dimension_version_that_it_pinned(shop: Lake) -> None:
    pinned = shop.head("products").version
    shop.put("products", {"product": "p", "price": Decimal(9)})
    shop.advance(pins={"shop.products": pinned})
    assert invoiced(shop) == [{"id": 1, "total": 6}]


def test_a_dimension_never_goes_back(shop: Lake) -> None:
    old = shop.head("products").version
    shop.put("products", {"product": "p", "price": Decimal(9)})
    shop.advance()
    shop.put("purchases", {"id": 6, "product": "p", "n": 1})
    shop.advance(pins={"shop.products": old})
    assert invoiced(shop) == [{"id": 1, "total": 27}, {"id": 6, "total": 9}]


def test_a_refresh_touches_only_the_facts_concerned(new_lake: NewLake) -> None:
    lake = new_lake(DECLARED + INVOICES + REFRESHED)
    lake.put("accounts")
    prices = [{"product": p, "price": Decimal(2)} for p in "pq"]
    lake.put("products", *prices)
    lake.put("purchases", *({"id": i, "product": "pq"[i % 2], "n": 1} for i in range(6)))
    lake.advance()
    lake.put("products", {"product": "p", "price": Decimal(5)})
    (report,) = lake.advance()
    assert (report.inserted, report.updated, report.deleted) == (0, 3, 0)
    assert counted(lake.rows("invoices")) == counted(
        [{"id": i, "total": Decimal([5, 2][i % 2]), "region": None} for i in range(6)]
    )


def test_what_a_condition_leaves_out_is_not_computed(new_lake: NewLake) -> None:
    quotient = """
  shares:
    kind: lookup
    from: purchases
    join: [{dimension: products, on: product = products.product}]
    where: n <> 0
    select: {id: id, share: products.price / n}
"""
    lake = new_lake(DECLARED + quotient)
    purchase = {"id": 1, "product": "p", "account": 1, "n": 2, "at": None}
    lake.put("products", {"product": "p", "price": Decimal(4)})
    lake.put("purchases", purchase)
    lake.advance("shares")
    lake.put("purchases", {**purchase, "n": 0}, {**purchase, "id": 2})
    lake.advance("shares")
    assert [(r["id"], int(r["share"])) for r in lake.rows("shares")] == [(2, 2)]
