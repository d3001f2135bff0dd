"""The example that KIP-150 was published with, in one batch, item by item, and taken back."""

from itertools import pairwise
from random import Random

import pytest
from tests.support.lake import Lake, NewLake, counted

ITEM = 'path: "x/{interval_start:%Y-%m-%d}/", schema: "customer INT, item STRING", key: [item]'
CUSTOMERS = f"""
sources:
  cart: {{{ITEM}}}
  purchases: {{{ITEM}}}
  wish_list: {{{ITEM}}}
views:
  customers:
    kind: cogroup
    key: [customer]
    streams:
      in_cart: {{from: cart, aggregates: {{cart: collect_list(item ORDER BY item)}}}}
      bought: {{from: purchases, aggregates: {{purchases: collect_list(item ORDER BY item)}}}}
      wished: {{from: wish_list, aggregates: {{wish_list: collect_list(item ORDER BY item)}}}}
"""
PUBLISHED = {
    "cart": "1:01, 2:02, 1:03, 1:04, 2:05",
    "purchases": "2:06, 1:07, 1:08, 2:09, 2:10",
    "wish_list": "1:11, 2:12, 2:13, 2:14, 2:15",
}
ITEMS = [
    (stream, {"customer": int(pair.split(":")[0]), "item": pair.split(":")[1]})
    for stream, pairs in PUBLISHED.items()
    for pair in pairs.split(", ")
]
ONE = {"customer": 1, "cart": ["01", "03", "04"], "purchases": ["07", "08"], "wish_list": ["11"]}
TWO = {
    "customer": 2,
    "cart": ["02", "05"],
    "purchases": ["06", "09", "10"],
    "wish_list": ["12", "13", "14", "15"],
}


@pytest.fixture
def customers(new_lake: NewLake) -> Lake:
    lake = new_lake(CUSTOMERS)
    for stream in PUBLISHED:
        lake.put(stream)
    return lake


@pytest.mark.parametrize("batches", [1, 4, len(ITEMS)])
def test_the_published_example_in_any_order_and_batches(customers: Lake, batches: int) -> None:
    random = Random(batches)
    items = random.sample(ITEMS, len(ITEMS)) if batches > 1 else ITEMS
    cuts = sorted(random.sample(range(1, len(items)), batches - 1))
    for start, end in pairwise([0, *cuts, len(items)]):
        for stream, item in items[start:end]:
            customers.put(stream, item)
        customers.advance()
    assert counted(customers.rows("customers")) == counted([ONE, TWO])


def test_items_are_taken_back(customers: Lake) -> None:
    for stream, item in ITEMS:
        customers.put(stream, item)
    customers.advance()
    customers.put("purchases", gone=[{"item": "07"}])
    customers.advance()
    without = {**ONE, "purchases": ["08"]}
    assert counted(customers.rows("customers")) == counted([without, TWO])
    for stream, item in ITEMS:
        if item["customer"] == 2:
            customers.put(stream, gone=[item])
    customers.advance()
    assert customers.rows("customers") == [without]
