# ruff: noqa: E501 - a mistake stands in one line
"""What people get wrong in unions and selects, and the line that each gets."""

from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException
from tests.support.declaring import Mistakes, OfViews
from tests.support.wording import Wording, cells, each

from sluice.language.types import widened_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@each(
    "parts, told",
    *cells("""
        [sales, clicks] | .from: clicks … id, price, tags … where_from … sales … select
        [{table: sales, select: {i: at}}, {table: clicks, select: {i: item}}] | .from: i … STRING … TIMESTAMP … sales
        [sales] | : … select
        [{table: sales, select: {i: id}}, {table: clicks, select: {i: item}}] | .from: i … STRING … INT … sales
        [{table: sales, select: {i: item}}, {table: clicks, select: {i: item}}], tag: i | .tag: … 'i'
        [{table: sales, where: id, select: {i: item}}, {table: clicks, select: {i: item}}] | .from[0].where: … 'id' … INT
        [sales, {table: sales, where: id > 1}], tag: t | : … 'sales' … as: another_name
        [sales, sales], retention: 7 days | : … retention
    """),
)
def test_a_union(mistakes: Mistakes, wording: Wording, parts: str, told: str) -> None:
    wording(mistakes(f"v: {{kind: union, from: {parts}}}"), f"11: views.v{told}")


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
    assert widened_type(CUT) == ""
    for one, other in combinations(TYPES, 2):
        try:
            rows = spark.sql(f"SELECT CAST(NULL AS {one}) x UNION ALL SELECT CAST(NULL AS {other})")
            theirs = rows.schema["x"].dataType.simpleString()
        except AnalysisException:
            theirs = ""
        if other != "STRING" and (one, other) != CUT:
            assert widened_type([one, other]).lower().replace(" ", "") == theirs, (one, other)


def test_equal_keys_share_columns_and_others_do_not(table: OfViews) -> None:
    shared = table("v: {kind: union, from: [sales, sales]}")
    assert shared.key == ("_sluice_from", "id")
    parts = "[{table: sales, select: {i: item}}, {table: items, select: {i: item}}]"
    found = table(f"v: {{kind: union, from: {parts}}}")
    assert found.key == ("_sluice_from", "_sluice_from_0_id", "_sluice_from_1_item")
