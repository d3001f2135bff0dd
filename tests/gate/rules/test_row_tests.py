"""Each test of one column fails the rows that it should, and nulls only where it says so."""

from typing import TYPE_CHECKING, Any

import pytest

from sluice.gate.row_rules import SINGLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = (None, "", "a", "b", "ab", "abc")
NUMBERS = (None, -1, 0, 1, 2)


@pytest.mark.parametrize(
    ("name", "arguments", "failing"),
    [
        ("values_to_not_be_null", {}, [None]),
        ("values_to_be_null", {}, ["", "a", "b", "ab", "abc"]),
        ("values_to_be_in_set", {"value_set": ["a", ""]}, ["b", "ab", "abc"]),
        ("values_to_not_be_in_set", {"value_set": ["a", ""]}, ["", "a"]),
        ("value_lengths_to_be_between", {"min_value": 1, "max_value": 2}, ["", "abc"]),
        ("value_lengths_to_equal", {"value": 1}, ["", "ab", "abc"]),
        ("values_to_match_regex", {"regex": "^a"}, ["", "b"]),
        ("values_to_not_match_regex", {"regex": "^a"}, ["a", "ab", "abc"]),
        ("values_to_match_regex_list", {"regex_list": ["^a", "c"]}, ["", "b"]),
        (
            "values_to_match_regex_list",
            {"regex_list": ["a", "b"], "match_on": "all"},
            ["", "a", "b"],
        ),
        (
            "values_to_match_regex_list",
            {"regex_list": ["a", "b"], "match_on": "any"},
            [""],
        ),
        ("values_to_not_match_regex_list", {"regex_list": ["a", "b"]}, ["a", "b", "ab", "abc"]),
    ],
)
def test_texts(
    spark: "SparkSession", name: str, arguments: dict[str, Any], failing: list[str | None]
) -> None:
    assert failed(spark, name, arguments, TEXTS, "STRING") == failing


@pytest.mark.parametrize(
    ("arguments", "failing"),
    [
        ({"min_value": 0, "max_value": 1}, [-1, 2]),
        ({"min_value": 0, "max_value": 1, "strict_min": True}, [-1, 0, 2]),
        ({"min_value": 0, "max_value": 1, "strict_max": True}, [-1, 1, 2]),
        ({"min_value": 1}, [-1, 0]),
        ({"max_value": 0}, [1, 2]),
    ],
)
def test_bounds(spark: "SparkSession", arguments: dict[str, Any], failing: list[int]) -> None:
    assert failed(spark, "values_to_be_between", arguments, NUMBERS, "INT") == failing


def failed(
    spark: "SparkSession", name: str, arguments: dict[str, Any], values: tuple[Any, ...], type_: str
) -> list[Any]:
    """The values that are unexpected: not ignored, and the test does not hold."""
    test = SINGLE[f"expect_column_{name}"]({"column": "c", **arguments})
    rows = spark.createDataFrame([(value,) for value in values], f"c {type_}")
    found = rows.selectExpr("c", f"{test.holds} AS holds", f"{test.ignored or 'false'} AS ignored")
    return [row.c for row in found.collect() if not row.holds and not row.ignored]
