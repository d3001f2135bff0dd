"""What a lookup's readers see, and what identifies its rows."""

from tests.support.declaring import OfViews

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
