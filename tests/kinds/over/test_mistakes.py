# ruff: noqa: E501 - a mistake stands in one line
"""What people get wrong in window functions, and the line that each gets."""

import pytest
from tests.support.declaring import Load, Mistakes, OfViews
from tests.support.wording import Wording, each

from sluice.declare.meaning import definition
from sluice.errors import ConfigError


def of(expression: str, more: str = "order_by: [at]") -> str:
    return f"v: {{kind: over, from: sales, {more}, select: {{x: '{expression}'}}}}"


@each(
    "view, told",
    (of("id"), ":"),
    (of("lag(id) OVER w", "partition_by: [item]"), ": … order_by"),
    (of("sum(id) OVER (PARTITION BY item)"), ".select.x: … SUM(id) OVER (PARTITION BY item)"),
    (of("median(id) OVER w"), ".select.x: … MEDIAN(id) OVER w … row_number, rank, dense_rank"),
    (of("lag(idd) OVER w"), ".select.x: … idd … id … id, item, price, at, tags"),
    (of("lag(id, id) OVER w"), ".select.x: … LAG(id, id) OVER w"),
    (of("lag() OVER w"), ".select.x: … LAG() OVER w … 1 … 3"),
    (of("rank(id) OVER w"), ".select.x: … RANK(id) OVER w"),
    (of("rank() OVER p"), ".select.x: … RANK() OVER p"),
    (of("sum(double(id)) OVER w"), ".select.x: … SUM(DOUBLE(id)) … ROWS UNBOUNDED"),
    (
        of("sum(double(id)) over (w range unbounded preceding)"),
        ".select.x: … SUM(DOUBLE(id)) … ROWS UNBOUNDED PRECEDING",
    ),
    (
        of("last_value(id) over (w range unbounded preceding)"),
        ".select.x: … LAST_VALUE(id) OVER (w range BETWEEN UNBOUNDED preceding AND CURRENT ROW) … ROWS",
    ),
    (of("count(distinct id) OVER p"), ".select.x: … COUNT(DISTINCT id) OVER p … DISTINCT"),
    (
        of("sum(id) OVER (w ROWS BETWEEN 3 FOLLOWING AND 1 PRECEDING)"),
        ".select.x: … SUM(id) OVER (w ROWS BETWEEN 3 FOLLOWING AND 1 PRECEDING)",
    ),
    (
        of("sum(id) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW)"),
        ".select.x: … SUM(id) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) … ROWS",
    ),
    (of("ntile(0) OVER w"), ".select.x: … NTILE(0) OVER w … 0"),
    (of("lag(id, 1, item) OVER w"), ".select.x: … LAG(id, 1, item) … STRING … INT"),
    (of("min(distinct id) OVER w"), ".select.x: … MIN(DISTINCT id) OVER w … DISTINCT"),
    (
        of("count(*) FILTER (WHERE id > 1) OVER w"),
        ".select.x: … COUNT(*) FILTER(WHERE id > 1) OVER w … FILTER",
    ),
    (of("collect_list(id ORDER BY at) OVER w"), ".select.x: … COLLECT_LIST(id ORDER BY at) OVER w"),
    (of("rank() IGNORE NULLS OVER w"), ".select.x: … RANK() IGNORE NULLS OVER w … IGNORE"),
    (of("sum(id) OVER (w RANGE 7 PRECEDING)"), ".select.x: … SUM(id) … at … TIMESTAMP … RANGE"),
    (
        of("sum(id) OVER (w RANGE 7 PRECEDING)", "order_by: [item]"),
        ".select.x: … SUM(id) … item … STRING … RANGE … UNBOUNDED … CURRENT ROW … 7",
    ),
    (
        of("sum(id) OVER (w RANGE 7 PRECEDING)", "order_by: [at, id]"),
        ": … SUM(id) … RANGE BETWEEN 7 PRECEDING … order_by … 2",
    ),
    (
        of(
            "sum(id) OVER (w RANGE BETWEEN 1 PRECEDING AND INTERVAL 2 DAYS FOLLOWING)",
            "order_by: [date(at)]",
        ),
        ".select.x: … SUM(id) OVER (w RANGE BETWEEN 1 PRECEDING AND INTERVAL '2' DAYS FOLLOWING) … RANGE",
    ),
    (
        of(
            "sum(id) OVER (w RANGE BETWEEN INTERVAL 1 DAY FOLLOWING AND INTERVAL 2 HOURS FOLLOWING)"
        ),
        ".select.x: … SUM(id) OVER (w RANGE BETWEEN INTERVAL '1' DAY FOLLOWING AND INTERVAL '2' HOURS FOLLOWING)",
    ),
    (
        of("sum(id) OVER (w RANGE at PRECEDING)"),
        ".select.x: … SUM(id) OVER (w RANGE BETWEEN at PRECEDING AND CURRENT ROW) … INTERVAL",
    ),
    (of("stddev(id) OVER w"), ".select.x: … STDDEV(id) … ROWS UNBOUNDED PRECEDING"),
    (of("corr(id, at) OVER p"), ".select.x: … CORR(id, at) … at … TIMESTAMP"),
    (of("corr(id) OVER p"), ".select.x: … CORR(id) OVER p … 2"),
    (of("sum(sum(id) OVER w) OVER w"), ".select.x: … sum(sum(id) OVER w) OVER w"),
)
def test_an_over(mistakes: Mistakes, wording: Wording, view: str, told: str) -> None:
    wording(mistakes(view), f"11: views.v{told}")


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


FITTING = {
    "id": ("1",),
    "price": ("1", "2.5", "1e0"),
    "date(at)": ("1", "INTERVAL '7' DAYS", "INTERVAL '1' MONTH"),
    "at": ("INTERVAL '7' DAYS", "INTERVAL '1' HOUR", "INTERVAL '1' MONTH"),
    "item": (),
}


@pytest.mark.parametrize("order", [*FITTING, "of_unknown_type(id)"])
def test_a_range_goes_by_what_can_be_added_to_its_order(shop: Load, order: str) -> None:
    every = dict.fromkeys(d for some in FITTING.values() for d in some)
    for distance in every:
        call = f"count(*) OVER (w RANGE BETWEEN {distance} PRECEDING AND CURRENT ROW)"
        view = f'v: {{kind: over, from: sales, order_by: ["{order}"], select: {{id: id, x: "{call}"}}}}'
        try:
            shop(view)
            is_refused = False
        except ConfigError as error:
            is_refused = "a RANGE of it goes by" in str(error)
        assert is_refused is (distance not in FITTING.get(order, every)), distance
