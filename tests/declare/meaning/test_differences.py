"""What differs between two definitions of a table, in words."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from sluice.declare.meaning.definition import fingerprint, meaning
from sluice.declare.meaning.differences import differences
from sluice.declare.table import Table

OfViews = Callable[[str], Table]

TOP = "t: {kind: topk, from: sales, partition_by: [item], order_by: [price desc], limit: 10}"
SUMS = "t: {kind: cogroup, key: [item], streams: {s: {from: sales, aggregates: {n: count(*)}}}}"
RUNNING = (
    "t: {kind: over, from: sales, partition_by: [item], order_by: [id], select: {id: id, item: "
    "item, total: 'sum(price) OVER w'}}"
)
LONG = " + ".join(["price"] * 40)
CHOSEN = f"t: {{kind: select, from: sales, select: {{id: id, x: '{LONG} + 1'}}}}"


def recorded(table: Table) -> dict[str, Any]:
    """A meaning as a commit carries it."""
    return json.loads(json.dumps(meaning(table)))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("declared", "old", "new", "said"),
    [
        (TOP, "limit: 10", "limit: 12", "limit 10 -> 12"),
        (TOP, "limit: 10", "limit: 10, offset: 1", "+ offset 1"),
        (TOP, "limit: 10", "limit: 10, rank: place", "+ place, - rank"),
        (TOP, "price desc", "price", "order_by [price desc] -> [price]"),
        (
            *(TOP, "price desc", "price desc nulls first, id"),
            "order_by [price desc] -> [price desc nulls first, id]",
        ),
        (TOP, "[item]", "[upper(item) as item]", "partition_by.item item -> UPPER(item)"),
        (SUMS, "n: count(*)", "n: count(*), paid: sum(price)", "+ paid"),
        (SUMS, "count(*)", "sum(price)", "streams.s.aggregates.n count() -> sum(price)"),
        (
            *(RUNNING, "sum(price) OVER w", "sum(price) OVER w + 1"),
            "select.total SUM(price) OVER w -> SUM(price) OVER w + 1",
        ),
        (
            CHOSEN,
            "+ 1'",
            "+ 2'",
            "select.x ...e + price + price + 1 -> ...e + price + price + 2",
        ),
        (CHOSEN, "from: sales", "from: sales, where: id > 1", "+ where id > 1"),
    ],
)
def test_what_differs_is_named_as_it_is_declared(
    table: OfViews, declared: str, old: str, new: str, said: str
) -> None:
    before = recorded(table(declared))
    assert differences(before, meaning(table(declared.replace(old, new)))) == said


def test_another_kind_says_so_with_the_columns(table: OfViews) -> None:
    said = differences(recorded(table(SUMS)), meaning(table(TOP)))
    assert said.startswith("kind cogroup -> topk, + ")
    assert said.endswith("- n")


def test_no_difference_of_fingerprints_goes_without_a_word(table: OfViews) -> None:
    before, now = recorded(table(TOP)), recorded(table(TOP))
    now["declared"] |= {"order_by": [{"name": "a"}, {"name": "b"}]}
    before["declared"] |= {"order_by": [{"name": "b"}, {"name": "a"}]}
    assert fingerprint(before) != fingerprint(now)
    assert differences(before, now) == "the order of its parts"


def test_a_table_of_an_older_release_says_that_nobody_knows(table: OfViews) -> None:
    assert "unknown" in differences({}, meaning(table(TOP)))
