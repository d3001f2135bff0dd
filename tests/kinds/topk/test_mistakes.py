# ruff: noqa: E501 - a mistake stands in one line
"""What a top-k can't be is refused before anything runs, and the field is named."""

from tests.support.declaring import Mistakes
from tests.support.wording import Wording, cells, each

TOP = "top: {kind: topk, from: sales, partition_by: [item], order_by: [price desc], limit: 10}"
ORDER = "11: views.top.order_by: "


@each(
    "old, new, told",
    ("limit: 10", "limit: 0", "top.limit: … 0 … 1"),
    ("limit: 10", "limit: 2.5", "top.limit: … 2.5"),
    ("limit: 10", "limit: item", "top.limit: … STRING"),
    ("price desc", "tags desc", "top.order_by: … MAP"),
    ("price desc", "'shop.scores:worth(price) desc'", "top.order_by: … shop.scores … (none)"),
    ("price desc", "'shop.scores:worth() desc'", "top.order_by: … shop.scores"),
    ("price desc", "prise desc", "top.order_by: … prise … price … id, item, price"),
    ("[item]", "[itm]", "top.partition_by: … itm … item … id, item, price, at, tags"),
    ("from: sales", "from: sale", "top.from: … sale … sales … sales, clicks, items"),
    ("topk", "topc", "top.kind: … topc … topk … topk, cogroup, lookup"),
    ("kind: topk, ", "", "top: … kind … window_store"),
    ("limit: 10", "limit: 1.5", "top.limit: … 1.5"),
    ("limit: 10", "limit: most", "top.limit: … most … id, item, price, at, tags"),
    ("[price desc]", "price desc", "top.order_by:"),
    ("[price desc]", "[]", "top.order_by:"),
    ("price desc", "tags", "top.order_by: … MAP"),
    ("price desc", "reflect('a')", "top.order_by: … reflect … repeat"),
    (
        "[item]",
        "[upper(item) as kind], select: {kind: item}",
        "top.select.kind: … kind … UPPER(item)",
    ),
    ("top:", "Top:", "Top: … Top"),
    ("top:", "top__state:", "top__state: … top__state … __"),
    ("top:", "_sluice_top:", "_sluice_top: … _sluice_top … _sluice"),
    ("top:", "sales:", "sales: … sales … sources.sales"),
    ("[item]", "[upper(item)]", "top.partition_by: … upper(item) … upper(item) as <name>"),
    (TOP, "top: 3", "top:"),
)
def test_a_topk(mistakes: Mistakes, wording: Wording, old: str, new: str, told: str) -> None:
    assert old in TOP
    wording(mistakes(TOP.replace(old, new)), f"11: views.{told}")


@each(
    "more, told",
    *cells("""
        having: price | .having: … price … DECIMAL(12, 2)
        having: rnk = 1 | .having: … rnk … item, id, price
        having: price > 1, rank: false | : … having … rank: false
        offset: -1 | .offset: … 1 … 0
        headroom: -1 | .headroom: … 1 … 0
        strategy: fast | .strategy: … fast … append, update, retract
        rank: price | .rank: … price … rank
        name: x | .name: … name
        ofset: 3 | .ofset: … 'ofset' … 'offset' … kind, description, expect
        function: ntile | .function: … ntile … row_number, rank, dense_rank
        rank: item | .rank: … item … rank
        select: {window_end: at}, window: {type: tumbling, time: at, size: 1 day} | .select.window_end: … window_end
        retention: 90 days | .retention: … retention … window
        window: {type: session, time: at, gap: 1 hour} | .window.type:
        window: {type: tumbling, time: item, size: 1 hour} | .window.time: … STRING … TIMESTAMP … DATE
        window: {type: hopping, time: at, size: 1 hour} | .window: … size … advance
        window: {type: tumbling, time: at, size: 1 dya} | .window.size: … 1 dya … 1 days … 30 minutes … 1 month
        expect: [{type: expect_column_to_exist, column: prise}] | .expect: … prise … price … item, id, price, at, tags, rank
        expect: [{type: not_null, column: price}] | .expect[0].type: … not_null … expect_
        expect: [{type: expect_x, on_failure: quarantine}] | .expect: … on_failure
    """),
)
def test_a_topk_with(mistakes: Mistakes, wording: Wording, more: str, told: str) -> None:
    wording(mistakes(TOP.replace("limit: 10", f"limit: 10, {more}")), f"11: views.top{told}")


def test_a_function_reads_columns_that_are_there(mistakes: Mistakes) -> None:
    told = mistakes(TOP.replace("price desc", "'shop.scores:worth(prize + 1) desc'"))
    assert any(found.startswith(ORDER + "unknown column 'prize'") for found in told)


def test_a_view_over_a_broken_one_is_not_blamed(mistakes: Mistakes) -> None:
    broken = TOP.replace("price desc", "upper(")
    found = mistakes(f"{broken}\nafter: {{kind: topk, from: top, order_by: [item], limit: 1}}")
    assert len(found) == 1
    assert found[0].startswith("11: views.top.order_by: can't read 'upper('")


@each(
    "view, told",
    (
        "v: {kind: topk, from: sales, order_by: [price + at], limit: 1}",
        "views.v.order_by: … price + at … DATE … DECIMAL(12, 2) … TIMESTAMP",
    ),
    (
        "v: {kind: topk, from: sales, partition_by: [upper(tags) as t], order_by: [id], limit: 1}",
        "views.v.partition_by: … UPPER(tags) … STRING … MAP<STRING, STRING>",
    ),
    (
        "v: {kind: topk, from: sales, order_by: [id], limit: 1, select: {age: at - timestamp '2017-01-01'}}",
        "views.v.select.age: … at - timestamp '2017-01-01'",
    ),
)
def test_types_that_do_not_fit(mistakes: Mistakes, wording: Wording, view: str, told: str) -> None:
    wording(mistakes(view), f"11: {told}")
