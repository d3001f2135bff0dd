# ruff: noqa: E501 - messages stand here as they are printed
"""What people get wrong in window functions, and the line that each gets."""

from collections.abc import Callable

import pytest

from sluice.declare.meaning.definition import definition
from sluice.declare.table import Table

Mistakes = Callable[..., list[str]]
OfViews = Callable[[str], Table]
KNOWN = (
    "row_number, rank, dense_rank, ntile, percent_rank, cume_dist, any_value, array_agg, avg, "
    "bit_and, bit_or, bit_xor, bool_and, bool_or, collect_list, corr, count, count_if, covar_pop, "
    "covar_samp, every, first, first_value, kurtosis, lag, last, last_value, lead, max, max_by, "
    "mean, min, min_by, nth_value, percentile, regr_avgx, regr_avgy, regr_count, regr_intercept, "
    "regr_r2, regr_slope, regr_sxx, regr_sxy, regr_syy, skewness, some, std, stddev, stddev_pop, "
    "stddev_samp, sum, try_avg, try_sum, var_pop, var_samp, variance"
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
            (
                f".select.x: 'MEDIAN(id) OVER w' is not a supported window function; these are: "
                f"{KNOWN}"
            ),
        ),
        (
            of("lag(idd) OVER w"),
            ".select.x: unknown column 'idd'; did you mean 'id'? columns are: id, item, price, at, tags",
        ),
        (of("lag(id, id) OVER w"), ".select.x: 'LAG(id, id) OVER w': id is not a number of rows"),
        (of("lag() OVER w"), ".select.x: 'LAG() OVER w': lag takes 1 to 3 arguments"),
        (of("rank(id) OVER w"), ".select.x: 'RANK(id) OVER w': rank takes no argument"),
        (
            of("rank() OVER p"),
            ".select.x: 'RANK() OVER p': p has no order; only aggregates without a frame go over it",
        ),
        (
            of("sum(double(id)) OVER w"),
            (
                ".select.x: SUM(DOUBLE(id)) of DOUBLE depends on the order of ties; write OVER (w "
                "ROWS UNBOUNDED PRECEDING)"
            ),
        ),
        (
            of("sum(double(id)) over (w range unbounded preceding)"),
            (
                ".select.x: SUM(DOUBLE(id)) of DOUBLE depends on the order of ties; write OVER (w "
                "ROWS UNBOUNDED PRECEDING)"
            ),
        ),
        (
            of("last_value(id) over (w range unbounded preceding)"),
            (
                ".select.x: 'LAST_VALUE(id) OVER (w range BETWEEN UNBOUNDED preceding AND CURRENT "
                "ROW)': the result would depend on the order of ties; write ROWS"
            ),
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
        (of("ntile(0) OVER w"), ".select.x: 'NTILE(0) OVER w': 0 is not a number of rows"),
        (
            of("lag(id, 1, item) OVER w"),
            ".select.x: LAG(id, 1, item): its default is STRING, not INT",
        ),
        (
            of("min(distinct id) OVER w"),
            ".select.x: 'MIN(DISTINCT id) OVER w': Spark has no DISTINCT in window functions",
        ),
        (
            of("count(*) FILTER (WHERE id > 1) OVER w"),
            ".select.x: 'COUNT(*) FILTER(WHERE id > 1) OVER w': Spark has no FILTER in window functions; aggregate CASE WHEN id > 1 THEN … END",
        ),
        (
            of("collect_list(id ORDER BY at) OVER w"),
            ".select.x: 'COLLECT_LIST(id ORDER BY at) OVER w': its rows come in the order of the window; drop its ORDER BY",
        ),
        (
            of("rank() IGNORE NULLS OVER w"),
            ".select.x: 'RANK() IGNORE NULLS OVER w': rank has no IGNORE NULLS; these have: any_value, first, first_value, lag, last, last_value, lead, nth_value",
        ),
        (
            of("sum(id) OVER (w RANGE 7 PRECEDING)"),
            ".select.x: SUM(id): the order's 'at' is TIMESTAMP; a RANGE of it goes by an interval, such as INTERVAL '7' DAYS, not by 7",
        ),
        (
            of("sum(id) OVER (w RANGE 7 PRECEDING)", "order_by: [item]"),
            ".select.x: SUM(id): the order's 'item' is STRING; a RANGE of it goes by UNBOUNDED and CURRENT ROW, not by 7",
        ),
        (
            of("sum(id) OVER (w RANGE 7 PRECEDING)", "order_by: [at, id]"),
            ": SUM(id): RANGE BETWEEN 7 PRECEDING AND CURRENT ROW goes by the values of one expression; `order_by` has 2",
        ),
        (
            of(
                "sum(id) OVER (w RANGE BETWEEN 1 PRECEDING AND INTERVAL 2 DAYS FOLLOWING)",
                "order_by: [date(at)]",
            ),
            """.select.x: "SUM(id) OVER (w RANGE BETWEEN 1 PRECEDING AND INTERVAL '2' DAYS FOLLOWING)": write both bounds of a RANGE in one unit, as Spark wants them""",
        ),
        (
            of(
                "sum(id) OVER (w RANGE BETWEEN INTERVAL 1 DAY FOLLOWING AND INTERVAL 2 HOURS FOLLOWING)"
            ),
            """.select.x: "SUM(id) OVER (w RANGE BETWEEN INTERVAL '1' DAY FOLLOWING AND INTERVAL '2' HOURS FOLLOWING)": the frame ends before it begins""",
        ),
        (
            of("sum(id) OVER (w RANGE at PRECEDING)"),
            ".select.x: 'SUM(id) OVER (w RANGE BETWEEN at PRECEDING AND CURRENT ROW)': at is neither a number nor INTERVAL '7' DAYS",
        ),
        (
            of("stddev(id) OVER w"),
            (
                ".select.x: STDDEV(id) depends on the order of ties; write OVER (w ROWS UNBOUNDED "
                "PRECEDING)"
            ),
        ),
        (of("corr(id, at) OVER p"), ".select.x: CORR(id, at): 'at' is TIMESTAMP, not a number"),
        (of("corr(id) OVER p"), ".select.x: 'CORR(id) OVER p': corr takes 2 argument(s)"),
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
        "c: count(*) OVER w, s: cume_dist() OVER w, b: bit_or(id) OVER w, "
        "l: collect_list(item) OVER p, m: 'max_by(item, at) OVER p', r: 'corr(id, price) OVER p'}}"
    )
    types = {"id": "INT", "n": "INT", "before": "TIMESTAMP", "c": "BIGINT", "s": "DOUBLE"}
    types |= {"b": "INT", "l": "ARRAY<STRING>", "m": "STRING", "r": "DOUBLE"}
    assert {name: found.columns[name] for name in types} == types
    assert found.columns["part"].startswith("DECIMAL(")
    assert found.key == ("id",)


def test_a_frame_of_rows_means_what_it_meant_before_distances(table: OfViews) -> None:
    """A view that was built by an earlier version is not built again."""
    declared = "order_by: [at], select: {id: id, x: 'sum(id) OVER (w ROWS 2 PRECEDING)'}"
    found = table(f"v: {{kind: over, from: sales, {declared}}}")
    assert definition(found) == "dc363df92762f6d0"
