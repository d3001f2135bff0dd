"""What a top-k can't be is refused before anything runs, and the field is named."""

from collections.abc import Callable

import pytest

Mistakes = Callable[..., list[str]]
TOP = "top: {kind: topk, from: sales, partition_by: [item], order_by: [price desc], limit: 10}"
LIMIT = "11: views.top.limit: "
ORDER = "11: views.top.order_by: "


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("limit: 10", "limit: 0", LIMIT + "0 is too small: at least 1 is wanted"),
        ("limit: 10", "limit: 2.5", LIMIT + "a number of rows or a column is wanted, not 2.5"),
        ("limit: 10", "limit: item", LIMIT + "item is STRING; a limit is a whole number"),
        (
            "limit: 10",
            "limit: 10, offset: -1",
            "11: views.top.offset: -1 is too small: at least 0 is wanted",
        ),
        (
            "limit: 10",
            "limit: 10, headroom: -1",
            "11: views.top.headroom: -1 is too small: at least 0 is wanted",
        ),
        (
            "limit: 10",
            "limit: 10, strategy: fast",
            (
                "11: views.top.strategy: unknown value 'fast'; values are: append, update, "
                "retract, full"
            ),
        ),
        (
            "price desc",
            "tags desc",
            "11: views.top.order_by: tags is a MAP, which has no order and can't be a key",
        ),
        (
            "price desc",
            "'shop.scores:worth(price) desc'",
            ORDER + "the module 'shop.scores' is not listed under `modules:` of sluice.yaml; "
            "modules are: (none)",
        ),
        (
            "price desc",
            "'shop.scores:worth() desc'",
            ORDER + "shop.scores:worth is to be called with expressions of the row and nothing "
            "behind it but asc or desc, nulls first or nulls last",
        ),
        (
            "limit: 10",
            "limit: 10, rank: price",
            (
                "11: views.top.rank: the rank column 'price' has the name of another column; "
                "set `rank:` to a new name, or to false for none"
            ),
        ),
    ],
)
def test_a_topk_names_the_field(mistakes: Mistakes, old: str, new: str, message: str) -> None:
    assert mistakes(TOP.replace(old, new)) == [message]


def test_a_function_reads_columns_that_are_there(mistakes: Mistakes) -> None:
    told = mistakes(TOP.replace("price desc", "'shop.scores:worth(prize + 1) desc'"))
    assert any(found.startswith(ORDER + "unknown column 'prize'") for found in told)
