"""Mistakes that one view or several have together: all are reported, and none that follows."""

from collections.abc import Callable
from textwrap import indent

import pytest
from tests.support.declaring import SCHEMAS, SHOP

Mistakes = Callable[..., list[str]]

LOOKUP = "v: {{kind: lookup, from: sales, join: [{}], {}}}"
SQL = "v:\n  kind: sql\n  sql: |\n    "


@pytest.mark.parametrize(
    ("view", "places"),
    [
        (
            "v: {kind: select, from: sales, where: price >, select: {p: prize}}",
            ["v.where: can't read", "v.select.p: unknown column 'prize'"],
        ),
        (
            "v: {kind: select, form: x, from: sales, where: prize > 1, retention: 3 dayz}",
            ["v.form: unknown key", "v.retention: ", "v.where: unknown column 'prize'"],
        ),
        (
            "v: {kind: select, from: sold, where: price, distinct: maybe}",
            ["v.from: unknown table 'sold'", "v.distinct: true or false"],
        ),
        (
            "v: {kind: topk, from: sales, order_by: [prize], limit: 3, function: rnk}",
            ["v.function: unknown value 'rnk'", "v.order_by: unknown column 'prize'"],
        ),
        (
            (
                "v: {kind: cogroup, key: [item], streams: {s: {from: sales, where: prize > 1, "
                "aggregates: {n: count(*), t: sun(price)}}}, having: t > 1 and m > 1}"
            ),
            ["aggregates.t: unknown aggregate", "s.where: unknown", "having: unknown column 'm'"],
        ),
        (
            LOOKUP.format("{dimension: items, on: item = item}", "select: {a: prize}"),
            ["v.join[0].on: ", "v.select.a: unknown column 'prize'"],
        ),
        (
            LOOKUP.format("{dimension: itms, on: item = itms.item}", "where: 5"),
            ["v.join[0].dimension: unknown dimension 'itms'", "v.where: '5' is INT"],
        ),
        (
            "v: {kind: window_store, from: sales, key: [itm], time: at, where: price >}",
            ["v.key: unknown column 'itm'", "v.where: can't read"],
        ),
        (
            (
                "v: {kind: join, left: {table: sales, as: s}, right: {table: clicks, as: c}, "
                "on: s.itm = c.item, type: lft}"
            ),
            ["v.on: unknown column 'itm'", "v.type: unknown value 'lft'"],
        ),
        (
            (
                "v: {kind: over, from: sales, partition_by: [itm], order_by: [at], "
                "select: {p: lagg(price) OVER w}}"
            ),
            ["v.partition_by: unknown column 'itm'", "v.select.p: 'LAGG(price) OVER w'"],
        ),
        (
            SQL + "SELECT soundx(item) AS x, itm, now() AS n, s.prize FROM sales s LIMIT 3",
            ["'soundx'", "'itm' is unknown", "NOW()", "unknown column 'prize'", "LIMIT without"],
        ),
        (
            SQL + "SELECT item FROM sales,\n    clicks",
            ["column 'item' is unknown, or more than one", "line 2: a join without an equality"],
        ),
        (
            SQL + "WITH a AS (SELECT item FROM sales LIMIT 3), b AS (SELECT item FROM clicks "
            "CLUSTER BY item)\n    SELECT a.item FROM a JOIN b ON a.item = b.item LIMIT 5",
            [
                "line 1: LIMIT without ORDER BY",
                "line 1: CLUSTER BY",
                "line 2: LIMIT without ORDER BY",
            ],
        ),
    ],
)
def test_a_view_with_several_mistakes_names_each(
    mistakes: Mistakes, view: str, places: list[str]
) -> None:
    found = mistakes(view)
    assert len(found) == len(places), found
    for place in places:
        assert any(place in mistake for mistake in found), (place, found)


BELOW_A_BROKEN_TABLE = """
a: {kind: select, from: broken, where: item = 'x', select: {i: item, anything: other}}
b: {kind: topk, from: a, order_by: [i, nothing], limit: 3, where: 5}
c: {kind: cogroup, key: [i], streams: {s: {from: a, aggregates: {n: last(i)}}}}
d: {kind: union, from: [{table: sales}, {table: a, where: 6}]}
e: {kind: over, from: broken, order_by: [y], select: {p: "lag(z, 1, 2, 3) OVER w"}}
f: {kind: join, left: {table: a, as: x}, right: {table: sales, as: y}, on: x.i = y.item, where: 7}
g: {kind: sql, sql: "SELECT item, count(*) AS n FROM broken JOIN sales USING (item) GROUP BY item"}
h: {kind: sql, sql: SELECT b.z FROM a JOIN broken b ON a.i = b.item LIMIT 3}
i: {kind: sql, sql: SELECT item FROM g CLUSTER BY item}
j: {kind: window_store, from: broken, key: [x], time: t, where: 8}
k: {kind: lookup, from: broken, join: [{dimension: items, on: x = items.item}], where: 9}
l: {kind: select, from: neither, where: 10}
m: {kind: sql, sql: SELECT * FROM broken WHERE other = 1}
n: {kind: sql, sql: "SELECT x, y FROM m LIMIT 3"}
"""
EACH = {
    "b.where: '5' is INT",
    "c.streams.s.aggregates.n: last depends on the order",
    "d.from[1].where: '6' is INT",
    "e.select.p: 'LAG(z, 1, 2, 3) OVER w': lag takes 1 to 3",
    "f.where: '7' is INT",
    "h.sql: line 1: LIMIT without ORDER BY",
    "i.sql: line 1: CLUSTER BY",
    "j.where: '8' is INT",
    "k.where: '9' is INT",
    "l.where: '10' is INT",
    "n.sql: line 1: LIMIT without ORDER BY",
}


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("{kind: select, from: sales, select: {item: item, x: item +}, form: y}", "broken.form"),
        ("{kind: topkk, from: sales}", "broken.kind: unknown kind 'topkk'"),
        ("{kind: sql, sql: SELECT item FROM}", "broken.sql: "),
        ("{kind: sql, sql: SELECT * FROM sold}", "broken.sql: line 1: unknown table 'sold'"),
    ],
)
def test_views_over_a_table_with_mistakes_are_checked_but_for_its_columns(
    mistakes: Mistakes, broken: str, why: str
) -> None:
    found = mistakes(f"broken: {broken}\n{BELOW_A_BROKEN_TABLE}")
    below = [one for one in found if "views.broken." not in one and "'neither'" not in one]
    assert any(why in mistake for mistake in found), found
    assert len(below) == len(EACH), below
    assert all(any(each in mistake for mistake in below) for each in EACH), below


LOST = "sources:\n  lost: {path: 'l/{interval_start:%Y-%m-%d}/', schema: item STRNG}\n"


def test_views_over_a_source_without_a_readable_schema_are_checked(wrong: Mistakes) -> None:
    views = BELOW_A_BROKEN_TABLE.replace("broken", "lost").replace("neither", "lost")
    shop = SHOP.replace("sources:\n", LOST) + indent(views, "  ")
    found = wrong({"pipelines/shop.yaml": shop}, **SCHEMAS)
    assert len(found) == len(EACH) + 1, found


def test_a_view_over_one_whose_condition_is_unreadable_knows_its_columns(
    mistakes: Mistakes,
) -> None:
    found = mistakes(
        "a: {kind: select, from: sales, where: price >, select: {p: price}}\n"
        "b: {kind: select, from: a, where: q > 1}\n"
        "c: {kind: sql, sql: 'SELECT p, r FROM a'}"
    )
    places = [": ".join(mistake.split(": ")[:2]) for mistake in found]
    assert places == ["11: views.a.where", "12: views.b.where", "13: views.c.sql"]
