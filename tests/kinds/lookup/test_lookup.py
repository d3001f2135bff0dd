"""Lookups against brute force: which dimension version a fact is joined with, and when again."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st
from tests.support.contract import Case, Query, hold
from tests.support.lake import Lake, Row, State, counted, frozen
from tests.support.rows import NOON, ids, maybe, numbers, row, times

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARED = """
sources:
  purchases:
    path: "purchases/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, product STRING, account INT, n INT, at TIMESTAMP"
  visits:
    path: "visits/{interval_start:%Y-%m-%d}/"
    schema: "account INT, page STRING"
dimensions:
  products: {path: p/, schema: "product STRING, price DECIMAL(6,2)", key: [product]}
  accounts: {path: a/, schema: "account INT, region STRING", key: [account]}
  regions: {path: r/, schema: "region STRING, country STRING", key: [region]}
  prices:
    path: h/
    schema: "product STRING, price DECIMAL(6,2)"
    key: [product]
    history: true
  tagged: {join: [{dimension: prices}], select: {product: prices.product, price: prices.price}}
  areas: {join: [{dimension: regions}], select: {area: regions.region, land: regions.country}}
  places:
    join:
      - {dimension: accounts}
      - {dimension: areas, on: accounts.region = areas.area}
    select: {account: accounts.account, region: accounts.region, country: areas.land}
  known_places:
    join: [{dimension: places}]
    where: places.region = 'north' or places.country = 'X'
    select: {account: places.account, country: places.country}
views:
"""
OF_HISTORY = """
  kept: &kept
    kind: lookup
    from: purchases
    join: [{dimension: prices, on: product = prices.product, type: left}]
    select: {id: id, price: prices.price}
  followed: {<<: *kept, refresh: true}
  through_a_view:
    kind: lookup
    from: purchases
    join: [{dimension: tagged, on: product = tagged.product, type: left}]
    select: {id: id, price: tagged.price}
    refresh: true
"""
PRODUCTS = st.sampled_from(["p", "q", "r"])
ACCOUNTS = st.integers(1, 3)
PRICE = maybe(st.integers(1, 4).map(Decimal))
ROWS = {
    "purchases": row(
        id=ids,
        product=maybe(PRODUCTS),
        account=maybe(st.integers(-3, 3)),
        n=numbers,
        at=times,
    ),
    "visits": row(
        _sluice_interval=st.just(NOON),
        _sluice_id=st.sampled_from(["p-1", "q-1", "q-2", "r-1"]),
        account=maybe(ACCOUNTS),
        page=maybe(st.sampled_from(["home", "help"])),
    ),
    "products": row(product=PRODUCTS, price=PRICE),
    "accounts": row(account=ACCOUNTS, region=maybe(st.sampled_from(["north", "south"]))),
    "regions": row(region=st.sampled_from(["north", "south"]), country=st.sampled_from("XY")),
}
SLOTS = [NOON + i * timedelta(hours=10) for i in range(-2, 3)]


def price_of_slot(found: Row) -> Row:
    """A version of a price that holds until the next slot; the last holds for ever."""
    slot = found.pop("slot")
    end = SLOTS[slot + 1] if slot + 1 < len(SLOTS) else None
    return {**found, "valid_from": SLOTS[slot], "valid_to": end, "is_current": end is None}


PRICES = row(product=PRODUCTS, price=PRICE, slot=st.integers(0, 4)).map(price_of_slot)

INVOICES = """
  invoices:
    kind: lookup
    from: purchases
    join:
      - {dimension: products, on: product = products.product}
      - {dimension: accounts, on: abs(account) = accounts.account, type: left}
    select: {id: id, total: n * products.price, region: accounts.region}
"""
PLACED = """
  placed:
    kind: lookup
    from: visits
    join: [{dimension: places, on: account = places.account, type: left}]
"""
KNOWN_PLACED = """
  placed:
    kind: lookup
    from: visits
    join: [{dimension: known_places, on: account = known_places.account}]
    refresh: true
"""
DATED = """
  dated:
    kind: lookup
    from: purchases
    as_of: event_time
    time: at
    join: [{dimension: prices, on: product = prices.product, type: left}]
    select: {n: n, product: product, price: prices.price}
"""


def matching(rows: list[Row], column: str, value: Any) -> Row | None:
    """The row with that value; a null matches nothing."""
    return next((r for r in rows if value is not None and r[column] == value), None)


def product(*factors: Any) -> Any:
    if None in factors:
        return None
    a, b = factors
    return a * b


def invoice(fact: Row, state: State) -> Row | None:
    account = None if fact["account"] is None else abs(fact["account"])
    priced = matching(state["products"], "product", fact["product"])
    region = matching(state["accounts"], "account", account)
    if priced is None:
        return None
    total = product(fact["n"], priced["price"])
    return {"id": fact["id"], "total": total, "region": region and region["region"]}


def cheap_or_north(fact: Row, state: State) -> Row | None:
    found = invoice(fact, state)
    priced = matching(state["products"], "product", fact["product"])
    price = priced and priced["price"]
    is_met = found and (found["region"] == "north" or None not in (price, fact["n"]))
    return found if is_met and (found["region"] == "north" or price < fact["n"]) else None


def placed(fact: Row, state: State) -> Row:
    account = matching(state["accounts"], "account", fact["account"])
    region = account and account["region"]
    country = matching(state["regions"], "region", region)
    return {
        "account": fact["account"],
        "page": fact["page"],
        "region": region,
        "country": country and country["country"],
    }


def known_placed(fact: Row, state: State) -> Row | None:
    found = placed(fact, state)
    region, country = found.pop("region"), found["country"]
    return found if region == "north" or country == "X" else None


def dated(fact: Row, state: State) -> Row:
    at = fact["at"]
    versions = [
        r
        for r in state["prices"]
        if at is not None and r["valid_from"] <= at and (not r["valid_to"] or at < r["valid_to"])
    ]
    priced = matching(versions, "product", fact["product"])
    return {"n": fact["n"], "product": fact["product"], "price": priced and priced["price"]}


Join = Callable[[Row, State], Row | None]


def of_current(facts: str, join: Join) -> Callable[[], Query]:
    """Every fact with the dimensions as they are now."""
    return lambda: lambda state: [r for r in (join(f, state) for f in state[facts]) if r]


def of_its_batch(facts: str, key: tuple[str, ...], used: tuple[str, ...], join: Join) -> Any:
    """Every fact with the dimensions of the batch in which its used columns last changed."""

    def fresh() -> Query:
        joined: dict[Any, tuple[Any, Row | None]] = {}

        def query(state: State) -> list[Row]:
            rows = {frozen([f[c] for c in key]): f for f in state[facts]}
            for gone in joined.keys() - rows.keys():
                del joined[gone]
            for identity, fact in rows.items():
                values = frozen([fact[c] for c in used])
                if identity not in joined or joined[identity][0] != values:
                    joined[identity] = (values, join(fact, state))
            return [found for _, found in joined.values() if found]

        return query

    return fresh


def rows_of(*names: str) -> Mapping[str, st.SearchStrategy[Row]]:
    return {name: {**ROWS, "prices": PRICES}[name] for name in names}


REFRESHED = "    refresh: true\n"
WHERE = "    where: accounts.region = 'north' or products.price < n\n"
HIDDEN = ("_sluice_interval", "_sluice_id")
CASES = [
    Case(
        "a fact keeps the dimensions of its batch",
        DECLARED + INVOICES,
        "invoices",
        rows_of("purchases", "products", "accounts"),
        of_its_batch("purchases", ("id",), ("product", "account", "n"), invoice),
        depends_on_batches=True,
    ),
    Case(
        "a condition over the fact and its dimensions of its batch",
        DECLARED + INVOICES + WHERE,
        "invoices",
        rows_of("purchases", "products", "accounts"),
        of_its_batch("purchases", ("id",), ("product", "account", "n"), cheap_or_north),
        depends_on_batches=True,
    ),
    Case(
        "a condition that follows its dimensions",
        DECLARED + INVOICES + WHERE + REFRESHED,
        "invoices",
        rows_of("purchases", "products", "accounts"),
        of_current("purchases", cheap_or_north),
    ),
    Case(
        "facts without a key, joined with a view over dimensions",
        DECLARED + PLACED,
        "placed",
        rows_of("visits", "accounts", "regions"),
        of_its_batch("visits", HIDDEN, ("account", "page"), placed),
        depends_on_batches=True,
    ),
    Case(
        "a refreshed lookup follows its dimensions",
        DECLARED + INVOICES + REFRESHED,
        "invoices",
        rows_of("purchases", "products", "accounts"),
        of_current("purchases", invoice),
    ),
    Case(
        "a refreshed lookup follows what is behind a view over dimensions",
        DECLARED + PLACED + REFRESHED,
        "placed",
        rows_of("visits", "accounts", "regions"),
        of_current("visits", placed),
    ),
    Case(
        "a refreshed lookup follows a view over dimensions that leaves out rows",
        DECLARED + KNOWN_PLACED,
        "placed",
        rows_of("visits", "accounts", "regions"),
        of_current("visits", known_placed),
    ),
    Case(
        "as of event time, also when a version comes late",
        DECLARED + DATED,
        "dated",
        rows_of("purchases", "prices"),
        of_current("purchases", dated),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_lookup_equals_its_query_after_any_batches(case: Case, spark: "SparkSession") -> None:
    hold(case, spark)


def test_of_a_history_a_lookup_of_the_latest_takes_the_row_that_stands(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = Lake(tmp_path, DECLARED + OF_HISTORY, spark)
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
    assert all(verdict.is_equal for verdict in lake.verdicts())


def priced(lake: Lake, view: str) -> dict[int, Any]:
    """The one price of each purchase."""
    rows = lake.rows(view)
    assert len({r["id"] for r in rows}) == len(rows)
    return {r["id"]: r["price"] for r in rows}


@pytest.fixture
def shop(tmp_path: Path, spark: "SparkSession") -> Lake:
    """Two facts, one with a product and one with none, and a price of 2."""
    lake = Lake(tmp_path, DECLARED + INVOICES, spark)
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
    assert all(verdict.is_equal for verdict in shop.verdicts())


def test_a_fact_without_a_match_stays_away_until_it_changes(shop: Lake) -> None:
    shop.put("purchases", {"id": 5, "product": "q", "n": 2})
    shop.advance()
    shop.put("products", {"product": "q", "price": Decimal(1)})
    shop.put("purchases", {"id": 1, "product": "p", "n": 4})
    shop.advance()
    assert invoiced(shop) == [{"id": 1, "total": 8}]
    assert all(verdict.is_equal for verdict in shop.verdicts())
    shop.put("purchases", {"id": 5, "product": "q", "n": 7})
    shop.advance()
    assert invoiced(shop) == [{"id": 1, "total": 8}, {"id": 5, "total": 7}]


def test_no_fact_is_joined_before_its_dimensions_are_there(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = Lake(tmp_path, DECLARED + INVOICES, spark)
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


def test_a_refresh_touches_only_the_facts_concerned(tmp_path: Path, spark: "SparkSession") -> None:
    lake = Lake(tmp_path, DECLARED + INVOICES + REFRESHED, spark)
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


def test_what_a_condition_leaves_out_is_not_computed(tmp_path: Path, spark: "SparkSession") -> None:
    quotient = """
  shares:
    kind: lookup
    from: purchases
    join: [{dimension: products, on: product = products.product}]
    where: n <> 0
    select: {id: id, share: products.price / n}
"""
    lake = Lake(tmp_path, DECLARED + quotient, spark)
    purchase = {"id": 1, "product": "p", "account": 1, "n": 2, "at": None}
    lake.put("products", {"product": "p", "price": Decimal(4)})
    lake.put("purchases", purchase)
    lake.advance("shares")
    lake.put("purchases", {**purchase, "n": 0}, {**purchase, "id": 2})
    lake.advance("shares")
    assert [(r["id"], int(r["share"])) for r in lake.rows("shares")] == [(2, 2)]
