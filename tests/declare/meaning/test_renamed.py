"""A view whose input was renamed keeps the meaning by which it was built."""

from collections.abc import Callable

import pytest

from sluice.declare.meaning import definition, definitions_before
from sluice.declare.table import Table

OfViews = Callable[[str], Table]
JOINED = "t: {kind: join, left: sold, right: {table: clicks, as: c}, on: sold.item = c.item"
SOLD = "sold: {kind: select, from: sales, select: {id: id, item: item, price: price}}"


@pytest.mark.parametrize(
    "view",
    [
        "t: {kind: topk, from: sold, partition_by: [item], order_by: [price desc], limit: 1}",
        "t: {kind: cogroup, key: [item], streams: {out: {from: sold, aggregates: {n: count(*)}}}}",
        "t: {kind: cogroup, key: [item], streams: {from: {from: sold, aggregates: {n: count(*)}}}}",
        "t: {kind: union, from: [sold, {table: sold, as: again}]}",
        "t: {kind: union, from: [{table: sold, where: id > 1}, {table: sold, as: again}]}",
        f"{JOINED}, select: {{id: sold.id, seen: c.at}}}}",
        "t: {kind: lookup, from: sold, join: [{dimension: items, on: item = items.item}]}",
    ],
)
def test_a_definition_with_the_new_name_is_that_with_the_old_one(table: OfViews, view: str) -> None:
    before = definition(table(f"{SOLD}\n{view}"))
    now = table(f"{SOLD}\n{view}".replace("sold", "bought"))
    assert before in definitions_before(now, "shop.sold", "shop.bought")
    assert before != definition(now)


def test_another_change_is_not_taken_for_a_new_name(table: OfViews) -> None:
    view = "t: {kind: topk, from: sold, order_by: [price desc], limit: 1}"
    now = table(f"{SOLD}\n{view}".replace("sold", "bought").replace("limit: 1", "limit: 2"))
    assert definition(table(f"{SOLD}\n{view}")) not in definitions_before(
        now, "shop.sold", "shop.bought"
    )


def test_a_query_that_is_computed_whole_is_text_and_must_be_rebuilt(table: OfViews) -> None:
    text = "SELECT a.id, b.at FROM sold a JOIN clicks b ON a.item < b.item"
    whole = table(f'{SOLD}\nt: {{kind: sql, sql: "{text}", incremental: preferred}}')
    assert whole.spec.caution
    assert definition(whole) not in definitions_before(whole, "shop.bought", "shop.sold")
