# ruff: noqa: E501 - messages stand here as they are printed
"""What people get wrong in window functions, and the line that each gets."""

from collections.abc import Callable

import pytest

from sluice.declare.table import Table

Mistakes = Callable[..., list[str]]
OfViews = Callable[[str], Table]
KNOWN = (
    "row_number, rank, dense_rank, ntile, percent_rank, cume_dist, avg, bool_and, bool_or, count, "
    "first_value, lag, last_value, lead, max, min, nth_value, sum"
)


def of(expression: str, more: str = "order_by: [at]") -> str:
    return f"v: {{kind: over, from: sales, {more}, select: {{x: '{expression}'}}}}"


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (of("id"), ": no window function (… OVER w) is selected: declare a select"),
        (
            of("lag(id) OVER w", "partition_by: [item]"),
            ": `order_by` is missing: OVER w goes by it",
        ),
        (
            of("sum(id) OVER (PARTITION BY item)"),
            ".select.x: 'SUM(id) OVER (PARTITION BY item)': write OVER w for the view's partition in its order, or OVER p for its whole partition",
        ),
        (
            of("median(id) OVER w"),
            f".select.x: 'MEDIAN(id) OVER w' is no window function here; these are: {KNOWN}",
        ),
        (
            of("lag(idd) OVER w"),
            ".select.x: unknown column 'idd'; did you mean 'id'? columns are: id, item, price, at, tags",
        ),
        (of("lag(id, id) OVER w"), ".select.x: 'LAG(id, id) OVER w': id is no number of rows"),
        (of("lag() OVER w"), ".select.x: 'LAG() OVER w': lag takes 1 to 3 arguments"),
        (of("rank(id) OVER w"), ".select.x: 'RANK(id) OVER w': rank takes no argument"),
        (
            of("rank() OVER p"),
            ".select.x: 'RANK() OVER p': p has no order; only aggregates without a frame go over it",
        ),
        (
            of("sum(double(id)) OVER w"),
            ".select.x: SUM(DOUBLE(id)) of DOUBLE depends on the order of rows that tie; write OVER (w ROWS UNBOUNDED PRECEDING)",
        ),
        (
            of("sum(double(id)) over (w range unbounded preceding)"),
            ".select.x: SUM(DOUBLE(id)) of DOUBLE depends on the order of rows that tie; write OVER (w ROWS UNBOUNDED PRECEDING)",
        ),
        (
            of("last_value(id) over (w range unbounded preceding)"),
            ".select.x: 'LAST_VALUE(id) OVER (w range BETWEEN UNBOUNDED preceding AND CURRENT ROW)': which of the rows that tie is meant? Write ROWS",
        ),
        (
            of("count(distinct id) OVER p"),
            ".select.x: 'COUNT(DISTINCT id) OVER p': Spark has no DISTINCT in window functions",
        ),
        (
            of("sum(id) OVER (w ROWS BETWEEN 3 FOLLOWING AND 1 PRECEDING)"),
            ".select.x: 'SUM(id) OVER (w ROWS BETWEEN 3 FOLLOWING AND 1 PRECEDING)': the frame ends before it begins",
        ),
        (
            of(
                "sum(id) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW)"
            ),
            ".select.x: 'SUM(id) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)': a frame is of ROWS or RANGE; EXCLUDE is not allowed",
        ),
        (of("ntile(0) OVER w"), ".select.x: 'NTILE(0) OVER w': 0 is no number of rows"),
        (
            of("lag(id, 1, item) OVER w"),
            ".select.x: LAG(id, 1, item): its default is STRING, not INT",
        ),
        (
            of("sum(sum(id) OVER w) OVER w"),
            ".select.x: 'sum(sum(id) OVER w) OVER w': a window function inside another; declare two views",
        ),
    ],
)
def test_an_over(mistakes: Mistakes, view: str, message: str) -> None:
    assert mistakes(view) == [f"11: views.v{message}"]


def test_types_follow_from_the_functions(table: OfViews) -> None:
    found = table(
        "v: {kind: over, from: sales, partition_by: [item], order_by: [at], select: {id: id, "
        "n: row_number() OVER w, part: price / sum(price) OVER p, before: lag(at) OVER w, "
        "c: count(*) OVER w, s: cume_dist() OVER w}}"
    )
    types = {"id": "INT", "n": "INT", "before": "TIMESTAMP", "c": "BIGINT", "s": "DOUBLE"}
    assert {name: found.columns[name] for name in types} == types
    assert found.columns["part"].startswith("DECIMAL(")
    assert found.key == ("id",)
