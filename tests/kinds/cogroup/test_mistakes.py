# ruff: noqa: E501 - a mistake stands in one line
"""What people get wrong in cogroups, and the line that each gets; what is taken beside it."""

import pytest
from tests.support.declaring import Mistakes, OfViews
from tests.support.wording import Wording, cells, each

COUNT = "aggregates: {n: count(*)}"
DAILY = "{type: tumbling, time: at, size: 1 day}"
AGE = "at - timestamp'2024-01-01'"


def over_sales(stream: str, more: str = "") -> str:
    """A cogroup of one stream with these keys; `more` keys are the view's."""
    return f"v: {{kind: cogroup, key: [item], streams: {{s: {{from: sales, {stream}}}}}, {more}}}"


COGROUP = """\
carts:
  kind: cogroup
  key: [item]
  streams:
    sold: {from: sales, aggregates: {total: sum(price), n: count(*)}}
    seen: {from: clicks, aggregates: {clicks: count(*)}}
"""


@each(
    "old, new, told",
    *cells("""
        sum(price) | sum(prise) | 15: views.carts.streams.sold.aggregates.total: … prise … id, item, price
        sum(price) | first(price) | 15: views.carts.streams.sold.aggregates.total: … sequence
        sum(price) | sum(price) filter (where id) | 15: views.carts.streams.sold.aggregates.total: … id … INT
        sum(price) | shop.mean:Mean(price) | 15: views.carts.streams.sold.aggregates.total: … shop.mean … (none)
        [item] | [itm] | 13: views.carts.key: … itm … item … id, item, price, at, tags
        [item] | [item, item] | 13: views.carts.key: … item
        from: sales | from: sales, key: [item, id] | 15: views.carts.streams.sold.key: … 2 … 1
        clicks: count | total: count | 16: views.carts.streams.seen.aggregates.total: … total
        clicks: count | item: count | 16: views.carts.streams.seen.aggregates.item: … item
        from: sales | from: sales, initial: {totl: 0} | 15: views.carts.streams.sold.initial.totl: … totl … total, n
        from: sales | from: sales, where: price | 15: views.carts.streams.sold.where: … price … DECIMAL(12, 2)
        from: sales | from: sales, time: at | 11: views.carts: … time … sold … window
        from: sales, aggregates: {total: sum(price), n: count(*)} | from: sales | 15: views.carts.streams.sold: … aggregates
    """),
    ("key: [item]", "key: [item]\n  retention: 1 day", "11: views.carts: … retention … window"),
    (
        "key: [item]",
        "key: [item]\n  select: {rate: totl / n}",
        "14: views.carts.select.rate: … totl … total … item, total, n, clicks",
    ),
)
def test_a_cogroup(mistakes: Mistakes, wording: Wording, old: str, new: str, told: str) -> None:
    found = mistakes(COGROUP.replace(old, new))
    wording([m for m in found if "item, at, where_from" not in m], told)


@pytest.mark.parametrize(
    ("aggregate", "value", "type_"),
    [
        ("sum(id)", "abc", "BIGINT"),
        ("sum(id)", "0.5", "BIGINT"),
        ("sum(id)", "true", "BIGINT"),
        ("sum(id)", "9223372036854775808", "BIGINT"),
        ("min(id)", "2147483648", "INT"),
        ("sum(price)", "0.001", "DECIMAL(22, 2)"),
        ("sum(price)", ".nan", "DECIMAL(22, 2)"),
        ("sum(price)", "-.inf", "DECIMAL(22, 2)"),
        ("min(cast(price as decimal(2, 2)))", "1", "DECIMAL(2, 2)"),
        ("min(price)", "10000000000", "DECIMAL(12, 2)"),
        ("avg(id)", "x", "DOUBLE"),
        ("max(item)", "5", "STRING"),
        ("any(id > 1)", "1", "BOOLEAN"),
        ("max(at)", "soon", "TIMESTAMP"),
        ("collect_set(id)", "0", "ARRAY<INT>"),
        ("collect_set(id)", "[1, x]", "ARRAY<INT>"),
    ],
)
def test_an_initial_value_is_of_its_aggregates_type(
    mistakes: Mistakes, aggregate: str, value: str, type_: str
) -> None:
    found = mistakes(over_sales(f"aggregates: {{x: '{aggregate}'}}, initial: {{x: {value}}}"))
    assert [f"is not a valid {type_}, the aggregate's type" in m for m in found] == [True]


@pytest.mark.parametrize(
    ("aggregate", "value"),
    [
        ("sum(id)", "-9223372036854775808"),
        ("sum(id)", "null"),
        ("sum(price)", "-1"),
        ("min(price)", "9999999999.99"),
        ("min(cast(price as decimal(2, 2)))", "0"),
        ("avg(id)", "0"),
        ("avg(id)", ".inf"),
        ("max(at)", "2024-01-01"),
        ("max(item)", "''"),
        ("every(id > 1)", "false"),
        ("collect_set(id)", "[]"),
        ("collect_set(item)", "[a, null]"),
        ("approx_percentile(id, 0.5)", "0"),
    ],
)
def test_an_initial_value_that_fits_is_taken(table: OfViews, aggregate: str, value: str) -> None:
    found = table(over_sales(f"aggregates: {{x: '{aggregate}'}}, initial: {{x: {value}}}"))
    assert list(found.columns) == ["item", "x"]


@each(
    "stream, more, told",
    (COUNT, f"window: {DAILY}, select: {{item: upper(item)}}", ".select.item: … 'item'"),
    (
        COUNT,
        f"window: {DAILY}, select: {{window_start: n}}",
        ".select.window_start: … 'window_start'",
    ),
    (
        COUNT,
        "window: {time: at, type: session, gap: 1 hour, timezone: UTC}",
        ".window: … `timezone`",
    ),
    (
        COUNT,
        "window: {time: at, type: hopping, size: 1 month, advance: 30 days}",
        ".window: … `advance` … `size`",
    ),
    (f"aggregates: {{x: min({AGE})}}", "", ".streams.s.aggregates.x: … timestampdiff"),
    (
        f"aggregates: {{x: first(item ORDER BY {AGE})}}",
        "",
        ".streams.s.aggregates.x: … timestampdiff",
    ),
    (
        f'sequence: ["{AGE}"], aggregates: {{x: first(item)}}',
        "",
        ".streams.s.aggregates.x: … timestampdiff",
    ),
)
def test_a_cogroup_of_one_stream(
    mistakes: Mistakes, wording: Wording, stream: str, more: str, told: str
) -> None:
    wording(mistakes(over_sales(stream, more)), f"11: views.v{told}")


def test_a_column_of_the_key_may_be_selected_as_it_is(table: OfViews) -> None:
    assert list(table(over_sales(COUNT, "select: [n, item]")).columns) == ["item", "n"]


def keys_of(mine: str, other: str) -> str:
    """A cogroup of two streams, whose keys are these expressions over sales."""
    streams = f"a: {{from: sales, key: [{mine!r}], {COUNT}}}"
    other = f"b: {{from: sales, key: [{other!r}], aggregates: {{m: count(*)}}}}"
    return f"v: {{kind: cogroup, key: [k], streams: {{{streams}, {other}}}}}"


@pytest.mark.parametrize(
    ("mine", "other"),
    [
        ("DATE", "TIMESTAMP"),
        ("TIMESTAMP", "DATE"),
        ("DATE", "TIMESTAMP_NTZ"),
        ("TIMESTAMP", "TIMESTAMP_NTZ"),
        ("STRING", "INT"),
        ("STRING", "DATE"),
        ("STRING", "BINARY"),
        ("STRING", "BOOLEAN"),
        ("BIGINT", "DOUBLE"),
        ("DECIMAL(12, 2)", "DOUBLE"),
        ("DECIMAL(38, 0)", "DECIMAL(38, 10)"),
        ("ARRAY<DATE>", "ARRAY<TIMESTAMP>"),
        ("STRUCT<a: DATE>", "STRUCT<a: TIMESTAMP>"),
        ("STRUCT<a: INT>", "STRUCT<b: INT>"),
    ],
)
def test_keys_that_would_not_keep_their_values_are_refused(
    mistakes: Mistakes, mine: str, other: str
) -> None:
    found = mistakes(keys_of(f"cast(null as {mine})", f"cast(null as {other})"))
    said = f"the key 'k' is {other} here and {mine} in the stream a; cast one of them"
    assert found == [f"11: views.v.streams.b.key: {said}"]


@pytest.mark.parametrize(
    ("mine", "other"),
    [
        ("TINYINT", "BIGINT"),
        ("INT", "DECIMAL(12, 2)"),
        ("DECIMAL(12, 2)", "DECIMAL(20, 4)"),
        ("INT", "DOUBLE"),
        ("FLOAT", "DOUBLE"),
        ("ARRAY<INT>", "ARRAY<BIGINT>"),
        ("STRUCT<a: INT>", "STRUCT<A: BIGINT>"),
    ],
)
def test_keys_of_one_width_or_another_are_one_column(table: OfViews, mine: str, other: str) -> None:
    found = table(keys_of(f"cast(null as {mine})", f"cast(null as {other})"))
    assert list(found.columns) == ["k", "n", "m"]


@each(
    "view, told",
    *cells("""
        v: {kind: cogroup, key: [item], streams: {s: {from: sales, aggregates: {n: first(cast(id as variant) order by at)}}}}
            | views.v.streams.s.aggregates.n: … CAST(id AS VARIANT) … VARIANT … to_json
        v: {kind: cogroup, key: [item], streams: {s: {from: sales, aggregates: {n: sum(item)}}}}
            | views.v.streams.s.aggregates.n: … sum(item) … STRING
        v: {kind: cogroup, key: [item], streams: {s: {from: sales, aggregates: {n: avg(at)}}}}
            | views.v.streams.s.aggregates.n: … avg(at) … TIMESTAMP
        v: {kind: cogroup, key: [item], streams: {s: {from: sales, where: id, aggregates: {n: count(*)}}}}
            | views.v.streams.s.where: … id … INT
        v: {kind: cogroup, key: [item], streams: {s: {from: sales, aggregates: {n: count(*) filter (where item)}}}}
            | views.v.streams.s.aggregates.n: … item … STRING
    """),
    (
        "v: {kind: cogroup, key: [item], streams: {a: {from: sales, aggregates: {n: count(*)}}, b: {from: clicks, key: [where_from], aggregates: {m: count(*)}}}}",
        "views.v.streams.b.key: … item … STRUCT<page: STRING> … STRING",
    ),
)
def test_types_that_do_not_fit(mistakes: Mistakes, wording: Wording, view: str, told: str) -> None:
    wording(mistakes(view), f"11: {told}")
