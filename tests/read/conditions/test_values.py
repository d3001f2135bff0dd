"""Values of keys, in the types of their columns."""

from decimal import Decimal

import pyarrow as pa
import pytest

from sluice.errors import UsageError
from sluice.read.values import from_text, values_of_columns

PRICE = pa.decimal128(20, 4)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5", "1.5"),
        ("1.50000000", "1.5"),
        ("-2.0001", "-2.0001"),
        ("1e15", "1000000000000000"),
        ("0e-999999", "0"),
    ],
)
def test_numbers_within_a_decimals_digits_are_taken(text: str, value: str) -> None:
    assert from_text(text, PRICE, "price") == Decimal(value)


@pytest.mark.parametrize(
    "text", ["1e-999999", "1e-999999999", "1e999999999", "1e16", "0.00001", "NaN", "Infinity"]
)
def test_numbers_beyond_a_decimals_digits_are_refused(text: str) -> None:
    """Arrow ends the process for some of them."""
    with pytest.raises(UsageError, match=r"does not fit column 'price' \(DECIMAL\(20,4\)\)"):
        from_text(text, PRICE, "price")


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), PRICE])
@pytest.mark.parametrize("text", ["1_0", "٣", "１"])
def test_numbers_have_the_ten_digits_alone(text: str, kind: pa.DataType) -> None:
    with pytest.raises(UsageError, match=f"'{text}' is not a value of column 'n'"):
        from_text(text, kind, "n")


def test_values_of_columns_are_equal_where_they_are_nan() -> None:
    rows = [{"d": float("nan"), "n": 1, "x": 1}, {"d": float("nan"), "n": 1, "x": 2}]
    first, second = (values_of_columns(row, ("d", "n")) for row in rows)
    assert first == second
