# ruff: noqa: E501 - messages stand here as they are printed
"""What people get wrong in lookups and window stores, and types anywhere in a view."""

from collections.abc import Callable

import pytest

Mistakes = Callable[..., list[str]]

LOOKUP = """\
bills:
  kind: lookup
  from: sales
  join: [{dimension: items, on: item = items.item, type: left}]
  select: {id: id, department: items.department}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "items.department",
            "items.departmnt",
            (
                "15: views.bills.select.department: unknown column "
                "'departmnt' of items; did you mean 'department'? columns are: item, department, price"
            ),
        ),
        (
            "items.department",
            "department",
            (
                "15: views.bills.select.department: column 'department' "
                "belongs to items; write items.department"
            ),
        ),
        (
            "items.department",
            "brands.name",
            (
                "15: views.bills.select.department: unknown table or "
                "struct 'brands'; known ones are: items, id, item, price, at, tags"
            ),
        ),
        (
            "item = items.item",
            "itm = items.item",
            (
                "14: views.bills.join[0].on: unknown column "
                "'itm'; did you mean 'item'? columns are: id, item, price, at, tags"
            ),
        ),
        (
            "item = items.item",
            "item = items.department",
            (
                "14: views.bills.join[0].on: items is "
                "unique by item: join on item as well, or rows multiply"
            ),
        ),
        (
            "item = items.item",
            "[item]",
            (
                "14: views.bills.join[0].on: "
                "an equality is expected, such as 'id = items.id', not a list"
            ),
        ),
        (
            "item = items.item",
            "item > items.item",
            (
                "14: views.bills.join[0].on: 'item > items.item' "
                "is not `<fact expression> = items.<column>`: only equalities can join here"
            ),
        ),
        (
            "dimension: items, on: item = items.item",
            "dimension: sales, on: item = sales.item",
            (
                "14: views.bills.join[0].dimension: sales is not under `dimensions:`, and only "
                "tables there can be joined here (declare the table there as well, with format: "
                "delta)"
            ),
        ),
        (
            "dimension: items, on: item = items.item",
            "dimension: itmes, on: item = items.item",
            (
                "14: views.bills.join[0].dimension: unknown dimension 'itmes'; "
                "did you mean 'items'? dimensions are: items, prices"
            ),
        ),
        (
            "dimension: items, on: item = items.item",
            "dimension: sales, on: item = items.item",
            (
                "14: views.bills.join[0].dimension: sales is not under `dimensions:`, and only "
                "tables there can be joined here (declare the table there as well, with format: "
                "delta)"
            ),
        ),
        (
            "type: left",
            "type: outer",
            ("14: views.bills.join[0].type: unknown value 'outer'; values are: inner, left"),
        ),
        (
            "from: sales",
            "from: sales\n  as_of: event_time\n  time: at",
            (
                "16: views.bills.join[0].dimension: as_of: event_time needs the past of items: declare "
                "it with history: true"
            ),
        ),
        (
            "from: sales",
            "from: sales\n  as_of: event_time",
            ("11: views.bills: `time` names the fact's event time: it goes with as_of: event_time"),
        ),
        (
            "from: sales",
            "from: sales\n  retention: 1 day",
            ("11: views.bills: `retention` needs a window; a lookup keeps its facts' rows"),
        ),
        (
            "type: left}",
            "type: left}, {dimension: items, on: item = items.item}",
            (
                "11: views.bills: items is joined twice; declare a dimension view of another name "
                "for one"
            ),
        ),
    ],
)
def test_a_lookup(mistakes: Mistakes, old: str, new: str, message: str) -> None:
    found = mistakes(LOOKUP.replace(old, new))
    assert [m for m in found if "select" not in m or "select" in message] == [message]


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (
            "{kind: window_store, from: sales, key: [item], time: att}",
            (
                "11: views.s.time: unknown "
                "column 'att'; did you mean 'at'? columns are: id, item, price, at, tags"
            ),
        ),
        (
            "{kind: window_store, from: sales, key: [at], time: at}",
            ("11: views.s.key: at is already the event time: drop it from the key"),
        ),
        (
            "{kind: window_store, from: sales, key: [window_start], time: at}",
            (
                "11: views.s.key: "
                "window_start and window_end are the store's own columns, not its key"
            ),
        ),
        (
            "{kind: window_store, from: sales, key: [tags], time: at}",
            ("11: views.s.key: tags is a MAP, which has no order and can't be a key"),
        ),
        (
            "{kind: window_store, from: sales, key: [item], time: at, select: {item: id}}",
            "11: views.s.select.item: item is the store's key as it is; use another name",
        ),
    ],
)
def test_a_window_store(mistakes: Mistakes, view: str, message: str) -> None:
    assert mistakes(f"s: {view}") == [message]


def test_a_window_stores_key_is_not_nested(mistakes: Mistakes) -> None:
    groups = "{streams: {s: {from: sales, aggregates: {ids: collect_set(id), last: max(at)}}}"
    told = mistakes(
        f"g: {groups}, kind: cogroup, key: [item]}}\n"
        "s: {kind: window_store, from: g, key: [ids], time: last}"
    )
    assert told == ["12: views.s.key: ids is ARRAY; reads sort by plain values: select those"]


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (
            "v: {kind: topk, from: sales, order_by: [price + at], limit: 1}",
            (
                "11: views.v.order_by: 'price + at': + takes two numbers, a time and an interval, "
                "or a DATE and a number of days, not DECIMAL(12, 2) and TIMESTAMP"
            ),
        ),
        (
            "v: {kind: topk, from: sales, partition_by: [upper(tags) as t], order_by: [id], limit: 1}",
            (
                "11: views.v.partition_by: 'UPPER(tags)': upper takes a STRING, or a value that can "
                "be cast to one, not MAP<STRING, STRING>"
            ),
        ),
        (
            "v: {kind: topk, from: sales, order_by: [id], limit: 1, select: {age: at - timestamp '2017-01-01'}}",
            (
                "11: views.v.select.age: \"at - timestamp '2017-01-01'\" is an interval, which no table "
                "can hold; write it as a number, e.g. by timestampdiff(second, a, b)"
            ),
        ),
        (
            "v: {kind: select, from: sales, select: {v: parse_json(item)}}",
            (
                "11: views.v.select.v: 'parse_json(item)' is VARIANT, which can be neither compared nor "
                "read without Spark; write it by to_json(…), or a part of it by variant_get(…, '$.a', 'int')"
            ),
        ),
        (
            "v: {kind: cogroup, key: [item], streams: {s: {from: sales, aggregates: {n: first(cast(id as variant) order by at)}}}}",
            (
                "11: views.v.streams.s.aggregates.n: 'CAST(id AS VARIANT)' is VARIANT, which can be "
                "neither compared nor read without Spark; write it by to_json(…), or a part of it by "
                "variant_get(…, '$.a', 'int')"
            ),
        ),
        (
            "v: {kind: cogroup, key: [item], streams: {s: {from: sales, aggregates: {n: sum(item)}}}}",
            "11: views.v.streams.s.aggregates.n: 'sum(item)': sum takes a number, not STRING",
        ),
        (
            "v: {kind: cogroup, key: [item], streams: {s: {from: sales, aggregates: {n: avg(at)}}}}",
            "11: views.v.streams.s.aggregates.n: 'avg(at)': avg takes a number, not TIMESTAMP",
        ),
        (
            "v: {kind: cogroup, key: [item], streams: {s: {from: sales, where: id, aggregates: {n: count(*)}}}}",
            "11: views.v.streams.s.where: 'id' is INT; a condition is true or false",
        ),
        (
            "v: {kind: cogroup, key: [item], streams: {s: {from: sales, aggregates: {n: count(*) filter (where item)}}}}",
            "11: views.v.streams.s.aggregates.n: 'item' is STRING; a condition is true or false",
        ),
        (
            "v: {kind: cogroup, key: [item], streams: {a: {from: sales, aggregates: {n: count(*)}}, b: {from: clicks, key: [where_from], aggregates: {m: count(*)}}}}",
            (
                "11: views.v.streams.b.key: the key 'item' is STRUCT<page: STRING> here and STRING in "
                "the stream a; cast one of them"
            ),
        ),
        (
            "v: {kind: lookup, from: sales, join: [{dimension: items, on: tags = items.item}]}",
            (
                "11: views.v.join[0].on: 'tags' is MAP<STRING, STRING> and items.item is STRING: "
                "they can't be compared; cast one of them"
            ),
        ),
        (
            "v: {kind: lookup, from: sales, join: [{dimension: items, on: id = items.item}]}",
            (
                "11: views.v.join[0].on: 'id' is INT and items.item is STRING, which are not the same "
                "values; write cast(id as STRING)"
            ),
        ),
        (
            "v: {kind: lookup, from: sales, join: [{dimension: items, on: item = items.item}], select: {x: items.price > at}}",
            (
                "11: views.v.select.x: 'items.price > at': DECIMAL(12, 2) can't be compared with "
                "TIMESTAMP"
            ),
        ),
    ],
)
def test_types_that_do_not_fit(mistakes: Mistakes, view: str, message: str) -> None:
    assert mistakes(view) == [message]


def test_an_order_among_rows_that_all_stay_is_refused(mistakes: Mistakes) -> None:
    view = "s: {kind: window_store, from: sales, key: [item], time: at, duplicates: true, sequence: [id]}"
    assert mistakes(view) == [
        (
            "11: views.s.sequence: `sequence` chooses one of two rows; with `duplicates` both are "
            "kept: drop one"
        )
    ]
