"""Join conditions of lookups, taken apart."""

from collections.abc import Callable

import pytest

from sluice.language.join_syntax import read_pairs

Refusal = Callable[..., str]


def pairs(text: str) -> list[tuple[str, str]]:
    return [(tree.sql(), column) for tree, column in read_pairs(text, "products")]


def test_each_equality_is_a_fact_expression_and_a_dimension_column() -> None:
    assert pairs("product_id = products.id") == [("product_id", "id")]
    assert pairs("products.id = product_id") == [("product_id", "id")]
    assert pairs("(a = products.a and b + 1 = products.b) and (products.c = c)") == [
        ("a", "a"),
        ("b + 1", "b"),
        ("c", "c"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a > products.a",
            (
                "'a > products.a' is not `<fact expression> = products.<column>`: "
                "only equalities can join here"
            ),
        ),
        (
            "a = products.a or b = products.b",
            (
                "'a = products.a OR b = products.b' is not "
                "`<fact expression> = products.<column>`: only equalities can join here"
            ),
        ),
        ("a = b", "'a = b': one side must be a column of the dimension, as products.<column>"),
        (
            "a = upper(products.a)",
            (
                "'a = UPPER(products.a)': one side must be a column of the "
                "dimension, as products.<column>"
            ),
        ),
        (
            "products.a = products.b",
            ("'products.a = products.b': the fact's side reads products as well"),
        ),
    ],
)
def test_what_is_no_such_equality_is_refused(refusal: Refusal, text: str, message: str) -> None:
    said = refusal(read_pairs, text, "products")
    assert said == message
