# ruff: noqa: E501 - a mistake stands in one line
"""What people get wrong in joins, and the line that each gets."""

from tests.support.declaring import Mistakes, OfViews
from tests.support.wording import Wording, each

SHOWN = "select: {id: sales.id}"
NO_CROSS_JOIN = "v: `on` is missing: every row would match every other; write `on: left.a = right.b`, or `on: [a]` for a column that both sides have"


def of(on: str, more: str = SHOWN) -> str:
    return f"v: {{kind: join, left: sales, right: clicks, on: {on}, {more}}}"


def timed(left: str, right: str, more: str = ", within: 2 hours") -> str:
    sides = f"left: {{table: sales, time: {left}}}, right: {{table: clicks, time: {right}}}"
    return f"v: {{kind: join, {sides}, on: [item]{more}, {SHOWN}}}"


@each(
    "view, told",
    (of("sales.item = clicks.itm"), "v.on: … itm … item … item, at, where_from"),
    (of("sales.item < clicks.item"), "v.on: … sales.item < clicks.item … on: left.a = right.b"),
    (of("sales.item = sales.item"), "v.on: … sales.item"),
    (of("sales.id = 5"), "v.on: … 5"),
    (of("sales.id = clicks.item"), "v.on: … sales.id … INT … clicks.item … STRING"),
    (of("sales.tags = clicks.item"), "v.on: … sales.tags … MAP<STRING, STRING> … clicks.item"),
    (of("[price]"), "v.on: … price … item, at, where_from"),
    (of("[]"), "v: … on … on: left.a = right.b … on: [a]"),
    (
        f"v: {{kind: join, left: sales, right: clicks, {SHOWN}}}",
        "v: … on … on: left.a = right.b … on: [a]",
    ),
    (of("true"), "v.on: … on: left.a = right.b"),
    (
        of("sales.item = clicks.item or sales.id = 1"),
        "v.on: … sales.item = clicks.item OR sales.id = 1 … on: left.a = right.b",
    ),
    (of("sales.item = item"), "v.on: … item … sales.item … clicks.item"),
    (of("[item]", f"where: at is null, {SHOWN}"), "v.where: … at … sales.at … clicks.at"),
    (
        of("[item]", f"where: clicks.at > sales.price, {SHOWN}"),
        "v.where: … clicks.at > sales.price … TIMESTAMP … DECIMAL(12, 2)",
    ),
    (of("[item]", "type: inner"), "v: … select … {at: sales.at}"),
    (of("[item]", "select: {id: id}"), "v.select.id: … id … sales.id"),
    (
        of("[item]", "type: semi, select: {id: clicks.item}"),
        "v.select.id: … clicks.item … type: semi",
    ),
    (of("[item]", "type: outer"), "v.type: … outer … inner, left, right, full, semi, anti"),
    (of("[item]", f"where: sales.id, {SHOWN}"), "v.where: … sales.id … INT"),
    (of("[item]", f"retention: 7 days, {SHOWN}"), "v: … retention … within: 2 hours … time"),
    (of("[item]", f"within: 2 hours, {SHOWN}"), "v: … within … left: {table: sales, time: at}"),
    (timed("at", "at", ""), "v: … time … within"),
    (timed("att", "at"), "v.left.time: … att … at … id, item, price, at, tags"),
    (timed("at", "item"), "v.right.time: … STRING … TIMESTAMP … DATE"),
    (timed("at", "at", ", within: 2 horus"), "v.within: … 2 horus … 2 hours … 30 minutes"),
    (
        "v: {kind: join, left: sales, right: sales, on: [item]}",
        "v: … sales … right: {table: sales, as: other}",
    ),
    (
        "v: {kind: join, left: sales, right: click, on: [item]}",
        "v.right: … click … clicks … sales, clicks, items, prices",
    ),
    ("v: {kind: join, left: sales, right: v, on: [item]}", "v:"),
    (
        "v: {kind: join, left: {table: sales, as: a}, right: {table: sales, as: b}, on: [id]}",
        "v: … select … {item: a.item}",
    ),
    (
        "v: {kind: join, left: {tabel: sales, table: sales}, right: clicks, on: [item]}",
        "v.left.tabel: … tabel … table … table, as, time",
    ),
)
def test_a_join(mistakes: Mistakes, wording: Wording, view: str, told: str) -> None:
    wording(mistakes(view), f"11: views.{told}")


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
