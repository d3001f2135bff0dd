"""What a lookup's readers see, and what identifies its rows."""

import pytest
from tests.support.catalogue import CATALOGUE, CHAINED
from tests.support.declaring import OfViews, Write

from sluice.declare.meaning import definition
from sluice.declare.project import load

BILLS = "b: {kind: lookup, from: sales, join: [{dimension: items, on: item = items.item}]"


def test_a_lookup_without_select_adds_the_dimensions_new_columns(table: OfViews) -> None:
    bills = table(BILLS + "}")
    assert list(bills.columns) == ["id", "item", "price", "at", "tags", "department"]
    assert bills.key == ("id",)
    assert bills.hidden == {"_sluice_batch": "BIGINT"}
    assert bills.inputs == ("shop.sales", "shop.items")


def test_a_lookup_that_is_corrected_keeps_no_batch(table: OfViews) -> None:
    assert table(BILLS + ", refresh: true}").hidden == {}


def test_a_lookup_at_event_time_needs_only_the_key_without_the_version(table: OfViews) -> None:
    bills = table(
        "b: {kind: lookup, from: sales, as_of: event_time, time: at, "
        "join: [{dimension: prices, on: item = prices.item}], select: {p: prices.price}}"
    )
    assert bills.key == ("_sluice_key_id",)
    assert dict(bills.columns) == {"p": "DECIMAL(12, 2)"}
    assert bills.hidden == {"_sluice_key_id": "INT"}


def test_a_lookup_joins_a_view_of_dimensions(write: Write) -> None:
    graph = load(write({"pipelines/p.yaml": CATALOGUE})).graph
    assert graph.table("catalogue").key == ("sku",)
    assert dict(graph.table("bills").columns)["brand"] == "STRING"
    assert [t.name for t in graph.ancestors("p.bills")] == [
        "sales",
        "products",
        "brands",
        "catalogue",
    ]


@pytest.mark.parametrize(
    ("old", "new"), [("upper(", "lower("), ("brand: named.name", "brand: upper(named.name)")]
)
def test_what_a_view_of_dimensions_means_is_part_of_what_is_looked_up_in_it(
    write: Write, old: str, new: str
) -> None:
    found = {
        definition(load(write({"pipelines/p.yaml": text})).graph.table("bills"))
        for text in (CHAINED, CHAINED.replace(old, new))
    }
    assert len(found) == 2
