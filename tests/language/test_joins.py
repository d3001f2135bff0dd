"""Join conditions of lookups, taken apart."""

from collections.abc import Callable

from tests.support.wording import Wording, each

from sluice.language.expression import read_pairs

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


@each(
    "text, told",
    ("a > products.a", "'a > products.a' … <fact expression> = products.<column>"),
    (
        "a = products.a or b = products.b",
        "'a = products.a OR b = products.b' … <fact expression> = products.<column>",
    ),
    ("a = b", "'a = b'"),
    ("a = upper(products.a)", "'a = UPPER(products.a)'"),
    ("products.a = products.b", "'products.a = products.b'"),
)
def test_what_is_no_such_equality_is_refused(
    refusal: Refusal, wording: Wording, text: str, told: str
) -> None:
    wording(refusal(read_pairs, text, "products"), told)
