"""Lookups held to the contract of views, and their queries in plain Python."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st
from tests.support.contract import Case, Query, by_ways
from tests.support.lake import Row, State, frozen
from tests.support.rows import NOON, ids, maybe, numbers, row, times

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
  product: {join: [{dimension: products}], select: {product: products.product, price:
    products.price}}
  account: {join: [{dimension: accounts}], select: {account: accounts.account, region:
    accounts.region}}
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
ALIKE = """
  alike:
    kind: lookup
    from: purchases
    join:
      - {dimension: product, on: product = product.product}
      - {dimension: account, on: abs(account) = account.account, type: left}
    where: product.price > 1 and product <> 'r'
    select: {id: id, product: product, total: n * product.price, region: account.region}
    refresh: true
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


def alike(fact: Row, state: State) -> Row | None:
    found = invoice(fact, state)
    priced = matching(state["products"], "product", fact["product"])
    is_met = priced and priced["price"] is not None and priced["price"] > 1
    if not found or not is_met or fact["product"] == "r":
        return None
    return {**found, "product": fact["product"]}


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
    by_ways(
        Case(
            "a fact keeps the dimensions of its batch",
            DECLARED + INVOICES,
            "invoices",
            rows_of("purchases", "products", "accounts"),
            of_its_batch("purchases", ("id",), ("product", "account", "n"), invoice),
            depends_on_batches=True,
        )
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
    by_ways(
        Case(
            "facts whose columns are called as their dimensions",
            DECLARED + ALIKE,
            "alike",
            rows_of("purchases", "products", "accounts"),
            of_current("purchases", alike),
        )
    ),
    by_ways(
        Case(
            "facts without a key, joined with a view over dimensions",
            DECLARED + PLACED,
            "placed",
            rows_of("visits", "accounts", "regions"),
            of_its_batch("visits", HIDDEN, ("account", "page"), placed),
            depends_on_batches=True,
        )
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
    by_ways(
        Case(
            "a refreshed lookup follows a view over dimensions that leaves out rows",
            DECLARED + KNOWN_PLACED,
            "placed",
            rows_of("visits", "accounts", "regions"),
            of_current("visits", known_placed),
        )
    ),
    Case(
        "as of event time, also when a version comes late",
        DECLARED + DATED,
        "dated",
        rows_of("purchases", "prices"),
        of_current("purchases", dated),
    ),
]
