# ruff: noqa: E501 - messages stand here as they are printed
"""What a top-k can't be is refused before anything runs, and the field is named."""

import pytest
from tests.support.declaring import Mistakes

TOP = "top: {kind: topk, from: sales, partition_by: [item], order_by: [price desc], limit: 10}"
LIMIT = "11: views.top.limit: "
SELECT = "11: views.top.select"
RENAME = "select it under another name"
SHOUTED = (
    "SELECT upper(item) AS item FROM sales "
    "QUALIFY row_number() OVER (PARTITION BY item ORDER BY price) = 1"
)
ORDER = "11: views.top.order_by: "


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("limit: 10", "limit: 0", LIMIT + "0 is too small: at least 1 is expected"),
        ("limit: 10", "limit: 2.5", LIMIT + "a number of rows or a column is expected, not 2.5"),
        ("limit: 10", "limit: item", LIMIT + "item is STRING; a limit is a whole number"),
        (
            "limit: 10",
            "limit: 10, having: price",
            "11: views.top.having: 'price' is DECIMAL(12, 2); a condition is true or false",
        ),
        (
            "limit: 10",
            "limit: 10, having: rnk = 1",
            (
                "11: views.top.having: unknown column 'rnk'; did you mean 'rank'? columns are: "
                "item, id, price, at, tags, rank"
            ),
        ),
        (
            "limit: 10",
            "limit: 10, having: price > 1, rank: false",
            (
                "11: views.top: `having` leaves out ranks, and `rank: false` leaves no trace of "
                "which; drop one of them"
            ),
        ),
        (
            "limit: 10",
            "limit: 10, offset: -1",
            "11: views.top.offset: -1 is too small: at least 0 is expected",
        ),
        (
            "limit: 10",
            "limit: 10, headroom: -1",
            "11: views.top.headroom: -1 is too small: at least 0 is expected",
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
            ORDER
            + "shop.scores:worth takes expressions of the row, and only asc or desc, nulls first "
            "or nulls last may follow it",
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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "price desc",
            "prise desc",
            (
                "11: views.top.order_by: unknown column 'prise'; did you mean "
                "'price'? columns are: id, item, price, at, tags"
            ),
        ),
        (
            "[item]",
            "[itm]",
            (
                "11: views.top.partition_by: unknown column 'itm'; did you mean "
                "'item'? columns are: id, item, price, at, tags"
            ),
        ),
        (
            "from: sales",
            "from: sale",
            (
                "11: views.top.from: unknown table 'sale'; did you mean "
                "'sales'? tables are: sales, clicks, items, prices"
            ),
        ),
        (
            "topk",
            "topc",
            (
                "11: views.top.kind: unknown kind 'topc'; did you mean 'topk'? "
                "kinds are: topk, cogroup, lookup, window_store, join, select, union, over, sql"
            ),
        ),
        (
            "kind: topk, ",
            "",
            (
                "11: views.top: `kind` is missing: topk, cogroup, lookup, window_store, join, select, union, over, sql"
            ),
        ),
        ("limit: 10", "limit: 0", "11: views.top.limit: 0 is too small: at least 1 is expected"),
        (
            "limit: 10",
            "limit: 1.5",
            ("11: views.top.limit: a number of rows or a column is expected, not 1.5"),
        ),
        (
            "limit: 10",
            "limit: most",
            ("11: views.top.limit: unknown column 'most'; columns are: id, item, price, at, tags"),
        ),
        (
            "limit: 10",
            "limit: item",
            ("11: views.top.limit: item is STRING; a limit is a whole number"),
        ),
        (
            "limit: 10",
            "limit: 10, offset: -1",
            ("11: views.top.offset: -1 is too small: at least 0 is expected"),
        ),
        ("limit: 10", "limit: 10, name: x", "11: views.top.name: unknown key 'name'"),
        (
            "limit: 10",
            "limit: 10, function: ntile",
            (
                "11: views.top.function: unknown value "
                "'ntile'; values are: row_number, rank, dense_rank"
            ),
        ),
        (
            "[price desc]",
            "price desc",
            ("11: views.top.order_by: a list is expected, e.g. [price desc]"),
        ),
        ("[price desc]", "[]", "11: views.top.order_by: at least one is expected"),
        (
            "price desc",
            "tags",
            ("11: views.top.order_by: tags is a MAP, which has no order and can't be a key"),
        ),
        (
            "price desc",
            "reflect('a')",
            (
                "11: views.top.order_by: the function 'reflect' is "
                "not allowed; did you mean 'repeat'? (scalar, deterministic ones of Spark are)"
            ),
        ),
        (
            "limit: 10",
            "limit: 10, rank: item",
            (
                "11: views.top.rank: the rank column 'item' has the "
                "name of another column; set `rank:` to a new name, or to false for none"
            ),
        ),
        (
            "[item]",
            "[upper(item) as kind], select: {kind: item}",
            SELECT + ".kind: 'kind' is the partition's UPPER(item) already; " + RENAME,
        ),
        (
            "limit: 10",
            "limit: 10, select: {window_end: at}, window: {type: tumbling, time: at, size: 1 day}",
            SELECT + ".window_end: 'window_end' is the window's already; " + RENAME,
        ),
        (
            TOP,
            f"top: {{kind: topk, sql: {SHOUTED}}}",
            "11: views.top.sql: 'item' is the partition's item already; " + RENAME,
        ),
        (
            "limit: 10",
            "limit: 10, retention: 90 days",
            (
                "11: views.top.retention: `retention` is "
                "how long a window is kept: it needs a `window`"
            ),
        ),
        (
            "limit: 10",
            "limit: 10, window: {type: session, time: at, gap: 1 hour}",
            "11: views.top.window.type: a top-k's window is tumbling or hopping",
        ),
        (
            "limit: 10",
            "limit: 10, window: {type: tumbling, time: item, size: 1 hour}",
            "11: views.top.window.time: item is STRING; an event time is a TIMESTAMP or a DATE",
        ),
        (
            "limit: 10",
            "limit: 10, window: {type: hopping, time: at, size: 1 hour}",
            "11: views.top.window: a hopping window takes `size` and `advance`, not `size`",
        ),
        (
            "limit: 10",
            "limit: 10, window: {type: tumbling, time: at, size: 1 dya}",
            (
                "11: views.top.window.size: '1 dya' is not a duration; did you mean '1 days'? "
                "write e.g. '30 minutes' or '1 month'"
            ),
        ),
        (
            "limit: 10",
            "limit: 10, expect: [{type: expect_column_to_exist, column: prise}]",
            (
                "11: views.top.expect: unknown column 'prise'; did you mean 'price'? columns are: item, "
                "id, price, at, tags, rank"
            ),
        ),
        (
            "limit: 10",
            "limit: 10, expect: [{type: not_null, column: price}]",
            (
                "11: views.top.expect[0].type: 'not_null' is not an expectation: names of Great "
                "Expectations begin with expect_"
            ),
        ),
        (
            "limit: 10",
            "limit: 10, expect: [{type: expect_x, on_failure: quarantine}]",
            (
                "11: views.top.expect: a view takes on_failure: stop or warn; quarantine would make it "
                "differ from its query"
            ),
        ),
        (
            "top:",
            "Top:",
            ("11: views.Top: 'Top' is not a name: use lower case letters, digits and _"),
        ),
        (
            "top:",
            "top__state:",
            ("11: views.top__state: 'top__state': `__` is reserved for internal tables"),
        ),
        (
            "top:",
            "_sluice_top:",
            ("11: views._sluice_top: '_sluice_top': names starting with _sluice are reserved"),
        ),
        ("top:", "sales:", "11: views.sales: the name 'sales' is taken by sources.sales"),
        (
            "[item]",
            "[upper(item)]",
            (
                "11: views.top.partition_by: 'upper(item)' needs a name; "
                "write 'upper(item) as <name>'"
            ),
        ),
        (TOP, "top: 3", "11: views.top: a mapping is expected"),
        (
            TOP,
            "top: {kind: topk, sql: SELECT * FROM sales LIMIT 3}",
            (
                "11: views.top: LIMIT is not "
                "supported in a top-k's sql; write SELECT * FROM (SELECT *, ROW_NUMBER() OVER "
                "(PARTITION BY p ORDER BY s DESC) AS rank FROM input) WHERE rank <= 10"
            ),
        ),
    ],
)
def test_a_topk(mistakes: Mistakes, old: str, new: str, message: str) -> None:
    assert old in TOP
    assert mistakes(TOP.replace(old, new)) == [message]


def test_an_unknown_key_lists_those_that_are_known(mistakes: Mistakes) -> None:
    (message,) = mistakes(TOP.replace("limit: 10", "limit: 10, ofset: 3"))
    assert message == (
        "11: views.top.ofset: unknown key 'ofset'; did you mean 'offset'? keys are: kind, "
        "description, expect, retention, from, where, partition_by, order_by, limit, offset, having, "
        "select, rank, function, window, headroom, strategy, sql"
    )


def test_a_view_over_a_broken_one_is_not_blamed(mistakes: Mistakes) -> None:
    broken = TOP.replace("price desc", "upper(")
    found = mistakes(f"{broken}\nafter: {{kind: topk, from: top, order_by: [item], limit: 1}}")
    assert len(found) == 1
    assert found[0].startswith("11: views.top.order_by: can't read 'upper('")


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
    ],
)
def test_types_that_do_not_fit(mistakes: Mistakes, view: str, message: str) -> None:
    assert mistakes(view) == [message]
