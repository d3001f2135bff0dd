"""What a dimension's readers see, and what identifies its rows."""

from tests.support.declaring import Load


def test_a_dimension_with_history_has_a_row_per_version(shop: Load) -> None:
    prices = shop("").graph.table("prices")
    assert prices.key == ("item", "valid_from")
    assert list(prices.columns) == ["item", "price", "valid_from", "valid_to", "is_current"]
