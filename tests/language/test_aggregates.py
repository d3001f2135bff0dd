"""Aggregates as they are written, taken apart."""

from collections.abc import Callable

import pytest
from tests.support.wording import Wording, each

from sluice.language.expression import Aggregate
from sluice.language.inference import aggregate_type

Refusal = Callable[..., str]


def read(text: str) -> tuple[str, str | None, str, str | None, tuple[object, ...]]:
    """Function, argument, order, filter, parameters."""
    aggregate = Aggregate.parse(text)
    return (
        aggregate.function,
        aggregate.argument.sql if aggregate.argument else None,
        ", ".join(key.sql for key in aggregate.order_by),
        aggregate.filter.sql if aggregate.filter else None,
        aggregate.parameters,
    )


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("count(*)", ("count", None, "", None, ())),
        ("COUNT(x)", ("count", "x", "", None, ())),
        ("count(distinct x)", ("count_distinct", "x", "", None, ())),
        ("count_distinct(x)", ("count_distinct", "x", "", None, ())),
        ("sum(price * quantity)", ("sum", "price * quantity", "", None, ())),
        ("sum(x) filter (where y > 1)", ("sum", "x", "", "y > 1", ())),
        ("count(*) filter (where y)", ("count", None, "", "y", ())),
        ("mean(x)", ("avg", "x", "", None, ())),
        (
            "collect_list(item ORDER BY at)",
            ("collect_list", "item", "at ASC NULLS FIRST", None, ()),
        ),
        (
            "array_agg(item order by at desc, id)",
            ("collect_list", "item", "at DESC NULLS LAST, id ASC NULLS FIRST", None, ()),
        ),
        ("collect_set(x)", ("collect_set", "x", "", None, ())),
        ("collect_list(distinct x)", ("collect_set", "x", "", None, ())),
        ("first(x ORDER BY at desc)", ("first", "x", "at DESC NULLS LAST", None, ())),
        ("last_value(x order by at)", ("last", "x", "at ASC NULLS FIRST", None, ())),
        ("last_value(x, false)", ("last", "x", "", None, ())),
        ("last(x, true)", ("last", "x", "", "NOT (x) IS NULL", ())),
        (
            "first(x order by at) ignore nulls",
            ("first", "x", "at ASC NULLS FIRST", "NOT (x) IS NULL", ()),
        ),
        ("any(x)", ("bool_or", "x", "", None, ())),
        ("every(x > 1)", ("bool_and", "x > 1", "", None, ())),
        ("approx_count_distinct(x, 0.01)", ("approx_count_distinct", "x", "", None, (0.01,))),
        ("approx_percentile(x, 0.5)", ("approx_percentile", "x", "", None, (0.5,))),
        (
            "percentile_approx(x, array(0.5, 0.9), 100)",
            ("approx_percentile", "x", "", None, ((0.5, 0.9), 100)),
        ),
        ("max_by(a, b + 1)", ("last", "a", "b + 1 ASC NULLS FIRST", "NOT (b + 1) IS NULL", ())),
        (
            "min_by(a, b) filter (where c > 0)",
            ("first", "a", "b ASC NULLS FIRST", "(NOT (b) IS NULL) AND (c > 0)", ()),
        ),
        ("percentile(x, array(0, 0.5))", ("percentile", "x", "", None, ((0, 0.5),))),
        ("median(x)", ("median", "x", "", None, ())),
        ("stddev(x)", ("stddev_samp", "x", "", None, ())),
        ("variance(x)", ("var_samp", "x", "", None, ())),
        ("mode(x)", ("mode", "x", "", None, ())),
        ("approx_top_k(x, 5)", ("approx_top_k", "x", "", None, (5,))),
        ("shop.baskets:Median(x)", ("shop.baskets:Median", "x", "", None, ())),
        (
            "shop.baskets:Rate(x, 2, 'a') filter (where y)",
            ("shop.baskets:Rate", "x", "", "y", (2, "a")),
        ),
        ("shop:Count", ("shop:Count", None, "", None, ())),
    ],
)
def test_an_aggregate_is_taken_apart(text: str, parts: tuple[object, ...]) -> None:
    assert read(text) == parts


@each(
    "text, told",
    ("sum(x order by y)", "sum … ORDER BY"),
    ("sum()", "sum"),
    ("max_by(a)", "max_by … max_by(a, b)"),
    ("percentile(x, 2)", "percentile: … 2 … 0 … 1 … 0.5"),
    ("count_if(x > 1)", "count_if … count(*) FILTER (WHERE x > 1)"),
    ("percentile_cont(0.5) WITHIN GROUP (ORDER BY x)", "percentile_cont … percentile(x, 0.5)"),
    ("percentile(x)", "percentile takes 1"),
    ("sum(*)", "'*'"),
    ("count()", "count"),
    ("sum(x, 1)", "sum takes 0"),
    ("approx_percentile(x)", "approx_percentile … 1 … 2"),
    ("approx_percentile(x, y)", "'y'"),
    ("sum(distinct x)", "sum(DISTINCT ...) … count … collect_list"),
    ("count(distinct a, b)", "DISTINCT … struct(a, b)"),
    ("sum(sum(x))", "sum … `aggregates:`"),
    ("a:B(x order by y)", "a:B … ORDER BY"),
    ("a:B(distinct x)", "DISTINCT"),
    ("approx_percentile(x, array(0.5, 1.5))", "approx_percentile: … 1.5 … 0 … 1 … 0.5"),
    ("approx_percentile(x, array())", "approx_percentile: … 0 … 1"),
    ("approx_percentile(x, 0.5, 0)", "approx_percentile: … 0 … 1 … 20000"),
    ("approx_count_distinct(x, 0)", "approx_count_distinct: … 0 … 0.0008 … 1 … 0.05"),
    ("approx_top_k(x, -1)", "approx_top_k: … 1"),
    ("approx_top_k(x, 5, 3)", "approx_top_k: … 3 … 5"),
    ("sum(x) over ()", "a window function"),
)
def test_a_mistake_is_reported(refusal: Refusal, wording: Wording, text: str, told: str) -> None:
    wording(refusal(Aggregate.parse, text), told)


@pytest.mark.parametrize("text", ["x", "sum(x) + 1", "upper(x)", "reflect('a')", "1"])
def test_what_is_no_aggregate_is_refused_with_those_that_are(text: str) -> None:
    with pytest.raises(ValueError, match="aggregates are: any, approx_avg"):
        Aggregate.parse(text)


def test_every_column_that_it_reads_is_known() -> None:
    text = "first(a + b ORDER BY c desc) filter (where d > 1)"
    assert Aggregate.parse(text).columns == {"a", "b", "c", "d"}


@pytest.mark.parametrize(
    ("text", "argument", "expected"),
    [
        ("sum(x)", "DECIMAL(12, 2)", "DECIMAL(22, 2)"),
        ("sum(x)", "DECIMAL(38, 10)", "DECIMAL(38, 10)"),
        ("sum(x)", "INT", "BIGINT"),
        ("sum(x)", "FLOAT", "DOUBLE"),
        ("avg(x)", "DECIMAL(12, 2)", "DECIMAL(16, 6)"),
        ("avg(x)", "DECIMAL(27, 10)", "DECIMAL(31, 14)"),
        ("avg(x)", "DECIMAL(28, 10)", "DECIMAL(38, 14)"),
        ("avg(x)", "DECIMAL(38, 36)", "DECIMAL(38, 38)"),
        ("avg(x)", "BIGINT", "DOUBLE"),
        ("min(x)", "STRING", "STRING"),
        ("collect_set(x)", "INT", "ARRAY<INT>"),
        ("mode(x)", "STRING", "STRING"),
        ("max_by(x, y)", "STRING", "STRING"),
        ("percentile(x, 0.5)", "INT", "DOUBLE"),
        ("percentile(x, array(0.5))", "INT", "ARRAY<DOUBLE>"),
        ("stddev(x)", "DECIMAL(6, 2)", "DOUBLE"),
        ("count(*)", "", "BIGINT"),
        ("sum(x)", "", ""),
        ("a:B(x)", "INT", ""),
    ],
)
def test_an_aggregates_type_is_sparks(text: str, argument: str, expected: str) -> None:
    assert aggregate_type(Aggregate.parse(text), argument) == expected
