"""What differs between two definitions of a table, in words."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from sluice.declare.meaning import differences, fingerprint, meaning
from sluice.declare.table import Table

OfViews = Callable[[str], Table]

TOP = "t: {kind: topk, from: sales, partition_by: [item], order_by: [price desc], limit: 10}"
SUMS = "t: {kind: cogroup, key: [item], streams: {s: {from: sales, aggregates: {n: count(*)}}}}"
RUNNING = (
    "t: {kind: over, from: sales, partition_by: [item], order_by: [id], select: {id: id, item: "
    "item, total: 'sum(price) OVER w'}}"
)
TIED = TOP.replace("limit: 10", "function: rank, limit: 10")
FRAMED = "SUM(price) OVER (w ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)"
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
        (TOP, "limit: 10", "limit: 10, rank: place", "+ place, - rank, + rank place"),
        (TOP, "price desc", "price", "order_by [price desc] -> [price]"),
        (
            *(TOP, "price desc", "price desc nulls first, id"),
            "order_by [price desc] -> [price desc nulls first, id]",
        ),
        (TOP, "[item]", "[upper(item) as item]", "partition_by.item item -> UPPER(item)"),
        (SUMS, "n: count(*)", "n: count(*), paid: sum(price)", "+ paid"),
        (SUMS, "count(*)", "sum(price)", "streams.s.aggregates.n count(*) -> sum(price)"),
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
        (TOP, "limit: 10", "limit: 10, function: rank", "+ function rank"),
        (TIED, "limit: 10", "limit: 12", "limit 10 -> 12"),
        (TIED, "function: rank, ", "", "- function rank"),
        (
            *(SUMS, "count(*)", "first(id ORDER BY at) FILTER (WHERE id > 1)"),
            "streams.s.aggregates.n count(*) -> first(id ORDER BY at) FILTER (WHERE id > 1)",
        ),
        (
            *(RUNNING.replace("OVER w", "OVER (w ROWS 2 PRECEDING)"), "2 PREC", "3 PREC"),
            f"select.total {FRAMED} -> {FRAMED.replace('2', '3')}",
        ),
    ],
)
def test_what_differs_is_named_as_it_is_declared(
    table: OfViews, declared: str, old: str, new: str, said: str
) -> None:
    before = recorded(table(declared))
    assert differences(before, meaning(table(declared.replace(old, new)))) == said


@pytest.mark.parametrize("column", ["expression", "function", "name", "columns", "table", "total_"])
def test_columns_may_be_called_as_fields_are(table: OfViews, column: str) -> None:
    declared = (
        f"t: {{kind: select, from: sales, select: {{id: id, other: id, {column}: price + 1}}}}"
    )
    for old, new in (("price + 1", "price + 2"), ("other: id", "other: id + 1")):
        said = differences(recorded(table(declared)), meaning(table(declared.replace(old, new))))
        name = "other" if old.startswith("other") else column
        assert said == f"select.{name} {old.split(': ')[-1]} -> {new.split(': ')[-1]}"
    assert differences(recorded(table(declared)), meaning(table(CHOSEN))).startswith("+ x, ")


def test_a_column_hides_no_field_of_its_name(table: OfViews) -> None:
    declared = "t: {kind: select, from: sales, select: {id: id}}"
    now = "t: {kind: select, from: sales, where: id > 1, select: {id: id, where: id}}"
    said = differences(recorded(table(declared)), meaning(table(now)))
    assert said == "+ where, + where id > 1"


def test_null_and_numbers_are_shown_as_in_yaml(table: OfViews) -> None:
    streams = "s: {from: sales, initial: {n: 0}, aggregates: {n: sum(id)}}"
    declared = f"t: {{kind: cogroup, key: [item], streams: {{{streams}}}}}"
    now = table(declared.replace("n: 0", "n: null"))
    assert differences(recorded(table(declared)), meaning(now)) == "streams.s.initial.n 0 -> null"


def test_fields_that_a_model_no_longer_has_are_still_said(table: OfViews) -> None:
    before, now = recorded(table(TOP)), meaning(table(TOP))
    before["declared"] |= {"order_by": [{"price": "desc"}], "most": {"rows": 10}}
    said = differences(before, now)
    assert said == "order_by [{price: desc}] -> [price desc], - most.rows 10"


def test_another_kind_says_so_with_the_columns(table: OfViews) -> None:
    said = differences(recorded(table(SUMS)), meaning(table(TOP)))
    assert said.startswith("kind cogroup -> topk, + ")
    assert said.endswith("- n")


def test_no_difference_of_fingerprints_goes_without_a_word(table: OfViews) -> None:
    before, now = recorded(table(TOP)), recorded(table(TOP))
    parts = [{"name": name, "expression": name} for name in ("a", "b")]
    now["declared"] |= {"partition_by": parts}
    before["declared"] |= {"partition_by": parts[::-1]}
    assert fingerprint(before) != fingerprint(now)
    assert differences(before, now) == "the order of its parts"


def test_a_table_of_an_older_release_says_that_nobody_knows(table: OfViews) -> None:
    assert "unknown" in differences({}, meaning(table(TOP)))
