# ruff: noqa: E501 - messages stand here as they are printed
"""What people get wrong in joins, and the line that each gets."""

from collections.abc import Callable

import pytest

from sluice.declare.table import Table

Mistakes = Callable[..., list[str]]
OfViews = Callable[[str], Table]
SHOWN = "select: {id: sales.id}"
NO_CROSS_JOIN = "v: `on` is missing: every row would match every other; write `on: left.a = right.b`, or `on: [a]` for a column that both sides have"


def of(on: str, more: str = SHOWN) -> str:
    return f"v: {{kind: join, left: sales, right: clicks, on: {on}, {more}}}"


def timed(left: str, right: str, more: str = ", within: 2 hours") -> str:
    sides = f"left: {{table: sales, time: {left}}}, right: {{table: clicks, time: {right}}}"
    return f"v: {{kind: join, {sides}, on: [item]{more}, {SHOWN}}}"


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (
            of("sales.item = clicks.itm"),
            "v.on: unknown column 'itm' of clicks; did you mean 'item'? columns are: item, at, where_from",
        ),
        (
            of("sales.item < clicks.item"),
            (
                "v.on: 'sales.item < clicks.item' is not an equality: every row might match every "
                "other; write `on: left.a = right.b`, and further conditions in `where`"
            ),
        ),
        (
            of("sales.item = sales.item"),
            "v.on: 'sales.item': each side of = reads one of the tables, sales or clicks",
        ),
        (of("sales.id = 5"), "v.on: '5': each side of = reads one of the tables, sales or clicks"),
        (
            of("sales.id = clicks.item"),
            "v.on: 'sales.id' is INT and 'clicks.item' is STRING, which are not the same values: cast one of them",
        ),
        (
            of("sales.tags = clicks.item"),
            "v.on: 'sales.tags' is MAP<STRING, STRING> and 'clicks.item' is STRING: they can't be compared; cast one of them",
        ),
        (
            of("[price]"),
            "v.on: unknown column 'price' of clicks; columns are: item, at, where_from",
        ),
        (of("[]"), NO_CROSS_JOIN),
        (f"v: {{kind: join, left: sales, right: clicks, {SHOWN}}}", NO_CROSS_JOIN),
        (of("true"), "v.on: True is not an equality; write `on: left.a = right.b`"),
        (
            of("sales.item = clicks.item or sales.id = 1"),
            (
                "v.on: 'sales.item = clicks.item OR sales.id = 1' is not an equality: every row might "
                "match every other; write `on: left.a = right.b`, and further conditions in `where`"
            ),
        ),
        (
            of("sales.item = item"),
            "v.on: column 'item' is in both sales and clicks; write sales.item or clicks.item",
        ),
        (
            of("[item]", f"where: at is null, {SHOWN}"),
            "v.where: column 'at' is in both sales and clicks; write sales.at or clicks.at",
        ),
        (
            of("[item]", f"where: clicks.at > sales.price, {SHOWN}"),
            "v.where: 'clicks.at > sales.price': TIMESTAMP can't be compared with DECIMAL(12, 2)",
        ),
        (
            of("[item]", "type: inner"),
            "v: both sides have at: `select` the wanted columns, e.g. {at: sales.at}",
        ),
        (
            of("[item]", "select: {id: id}"),
            "v.select.id: column 'id' belongs to sales; write sales.id",
        ),
        (
            of("[item]", "type: semi, select: {id: clicks.item}"),
            "v.select.id: 'clicks.item': `type: semi` shows rows of sales alone",
        ),
        (
            of("[item]", "type: outer"),
            "v.type: unknown value 'outer'; values are: inner, left, right, full, semi, anti",
        ),
        (
            of("[item]", f"where: sales.id, {SHOWN}"),
            "v.where: 'sales.id' is INT; a condition is true or false",
        ),
        (
            of("[item]", f"retention: 7 days, {SHOWN}"),
            "v: `retention` needs `within: 2 hours` and the `time` of both sides; without them a join keeps its inputs' rows",
        ),
        (
            of("[item]", f"within: 2 hours, {SHOWN}"),
            "v: `within` compares the event times of both sides: name them, as in `left: {table: sales, time: at}`",
        ),
        (
            timed("at", "at", ""),
            "v: `time` is for `within`, the greatest time between two rows of a pair; add it, or drop `time`",
        ),
        (
            timed("att", "at"),
            "v.left.time: unknown column 'att'; did you mean 'at'? columns are: id, item, price, at, tags",
        ),
        (
            timed("at", "item"),
            "v.right.time: item is STRING; an event time is a TIMESTAMP or a DATE",
        ),
        (
            timed("at", "at", ", within: 2 horus"),
            "v.within: '2 horus' is not a duration; did you mean '2 hours'? write e.g. '30 minutes' or '1 month'",
        ),
        (
            "v: {kind: join, left: sales, right: sales, on: [item]}",
            (
                "v: both sides are named 'sales': give one another name, as in `right: "
                "{table: sales, as: other}`"
            ),
        ),
        (
            "v: {kind: join, left: sales, right: click, on: [item]}",
            "v.right: unknown table 'click'; did you mean 'clicks'? tables are: sales, clicks, items, prices",
        ),
        ("v: {kind: join, left: sales, right: v, on: [item]}", "v: a cycle: v -> v"),
        (
            "v: {kind: join, left: {table: sales, as: a}, right: {table: sales, as: b}, on: [id]}",
            (
                "v: both sides have item, price, at, tags: `select` the wanted columns, e.g. "
                "{item: a.item}"
            ),
        ),
        (
            "v: {kind: join, left: {tabel: sales, table: sales}, right: clicks, on: [item]}",
            "v.left.tabel: unknown key 'tabel'; did you mean 'table'? keys are: table, as, time",
        ),
    ],
)
def test_a_join(mistakes: Mistakes, view: str, message: str) -> None:
    assert mistakes(view) == [f"11: views.{message}"]


def test_keys_of_both_sides_are_its_key_as_far_as_they_are_shown(table: OfViews) -> None:
    found = table(
        "v: {kind: join, left: sales, right: items, on: [item], "
        "select: {number: sales.id, item: items.item, price: items.price}}"
    )
    assert found.key == ("number", "item")
    hidden = table(of("[item]", "select: {at: clicks.at}"))
    left, *right = hidden.key
    assert left == "_sluice_left_key_id"
    assert right == ["_sluice_right_key__sluice_interval", "_sluice_right_key__sluice_id"]


def test_a_column_that_on_names_is_shown_once(table: OfViews) -> None:
    found = table("v: {kind: join, left: items, right: {table: sales, as: s}, on: [item, price]}")
    assert list(found.columns) == ["item", "department", "price", "id", "at", "tags"]
