"""A fingerprint that changes when a table's meaning does, and only then."""

from collections.abc import Callable

import pytest

from sluice.declare.meaning import definition, meaning
from sluice.declare.table import Table

OfViews = Callable[[str], Table]

TOP = "t: {kind: topk, from: sales, partition_by: [item], order_by: [price desc], limit: 10}"


@pytest.mark.parametrize(
    "same",
    [
        (
            "t:\n  limit: 10\n  order_by:\n    - 'PRICE   DESC nulls last'\n"
            "  partition_by: [item as item]\n  from: sales # comment\n  kind: topk"
        ),
        TOP.replace("limit: 10", "limit: 10, description: x, headroom: 5, strategy: full"),
        TOP.replace("limit: 10", "limit: 10, offset: 0, rank: rank, function: row_number"),
        TOP.replace("limit: 10", "limit: 10, expect: [{type: expect_column_to_exist}]"),
    ],
)
def test_another_spelling_means_the_same(table: OfViews, same: str) -> None:
    assert definition(table(same)) == definition(table(TOP))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("limit: 10", "limit: 11"),
        ("limit: 10", "limit: 10, offset: 1"),
        ("limit: 10", "limit: 10, rank: place"),
        ("limit: 10", "limit: 10, rank: false"),
        ("limit: 10", "limit: 10, function: rank"),
        ("limit: 10", "limit: 10, select: [price]"),
        ("price desc", "price"),
        ("price desc", "price desc nulls first"),
        ("[item]", "[id]"),
        ("[item]", "[upper(item) as item]"),
    ],
)
def test_another_meaning_has_another_fingerprint(table: OfViews, old: str, new: str) -> None:
    assert definition(table(TOP.replace(old, new))) != definition(table(TOP))


def test_a_fingerprint_is_stable_over_runs(table: OfViews) -> None:
    assert definition(table(TOP)) == "65f2eb4ccec6f07b"


def test_where_files_lie_is_not_what_a_source_means(shop: Callable[..., object]) -> None:
    sales = shop("").graph.table("sales")  # type: ignore[attr-defined]
    moved = sales.spec.model_copy(update={"path": "elsewhere/", "missing": "fail"})
    assert meaning(sales)["declared"] == meaning(_with(sales, moved))["declared"]


def _with(table: Table, spec: object) -> Table:
    from dataclasses import replace

    return replace(table, spec=spec)  # type: ignore[arg-type]
