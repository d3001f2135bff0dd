# ruff: noqa: E501 - messages stand here as they are printed
"""What people get wrong in unions and selects, and the line that each gets."""

from collections.abc import Callable
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from sluice.declare.table import Table
from sluice.language.typed.coercion import widened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Mistakes = Callable[..., list[str]]
OfViews = Callable[[str], Table]


@pytest.mark.parametrize(
    ("parts", "messages"),
    [
        (
            "[sales, clicks]",
            [
                "from: clicks lacks id, price, tags; clicks has where_from, which sales lacks: `select` the common columns"
            ],
        ),
        (
            "[{table: sales, select: {i: at}}, {table: clicks, select: {i: item}}]",
            ["from: i is STRING here and TIMESTAMP in sales: cast one"],
        ),
        ("[sales]", ["a union has at least two inputs; for one, declare a select"]),
        (
            "[{table: sales, select: {i: id}}, {table: clicks, select: {i: item}}]",
            ["from: i is STRING here and INT in sales: cast one"],
        ),
        (
            "[{table: sales, select: {i: item}}, {table: clicks, select: {i: item}}], tag: i",
            ["tag: the inputs have a column 'i' already; use another name"],
        ),
        (
            "[{table: sales, where: id, select: {i: item}}, {table: clicks, select: {i: item}}]",
            ["from[0].where: 'id' is INT; a condition is true or false"],
        ),
        (
            "[sales, {table: sales, where: id > 1}], tag: t",
            [
                "two inputs are named 'sales' in the tag; give one another name: `{table: sales, as: another_name}`"
            ],
        ),
        (
            "[sales, sales], retention: 7 days",
            ["`retention` needs a window; a union keeps its inputs' rows"],
        ),
    ],
)
def test_a_union(mistakes: Mistakes, parts: str, messages: list[str]) -> None:
    found = mistakes(f"v: {{kind: union, from: {parts}}}")
    assert [line.removeprefix("11: views.v").lstrip(".: ") for line in found] == messages


def test_types_widen_to_a_common_one(table: OfViews) -> None:
    parts = "[{table: sales, select: {i: id, d: at}}, {table: items, select: {i: price, d: cast('2024-01-01' as timestamp)}}]"
    found = table(f"v: {{kind: union, from: {parts}}}")
    assert dict(found.columns) == {"i": "DECIMAL(12, 2)", "d": "TIMESTAMP"}


TYPES = (
    *("TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "DECIMAL(38, 0)"),
    *("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "BOOLEAN", "BINARY", "STRING"),
)


CUT = ("DECIMAL(10, 2)", "DECIMAL(38, 0)")  # Spark would drop the cents


@pytest.mark.usefixtures("real_spark")
def test_types_widen_by_sparks_rules_unless_texts_are_read_or_places_cut(
    spark: "SparkSession",
) -> None:
    assert widened(CUT) == ""
    for one, other in combinations(TYPES, 2):
        try:
            rows = spark.sql(f"SELECT CAST(NULL AS {one}) x UNION ALL SELECT CAST(NULL AS {other})")
            theirs = rows.schema["x"].dataType.simpleString()
        except AnalysisException:
            theirs = ""
        if other != "STRING" and (one, other) != CUT:
            assert widened([one, other]).lower().replace(" ", "") == theirs, (one, other)


def test_equal_keys_share_columns_and_others_do_not(table: OfViews) -> None:
    shared = table("v: {kind: union, from: [sales, sales]}")
    assert shared.key == ("_sluice_from", "id")
    parts = "[{table: sales, select: {i: item}}, {table: items, select: {i: item}}]"
    found = table(f"v: {{kind: union, from: {parts}}}")
    assert found.key == ("_sluice_from", "_sluice_from_0_id", "_sluice_from_1_item")
