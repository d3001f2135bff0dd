"""A batch's counts come from the pass that judges its rows."""

from typing import TYPE_CHECKING

import pytest
from tests.gate.rows import SCHEMA, expect, random_rows
from tests.gate.verdicts import COLUMNS, verdict_on

from sluice.gate.gate import Gate, accepted_rows, find_repeats
from sluice.gate.suite import compile_uniqueness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_accepted_rows_are_counted_in_the_same_pass(spark: "SparkSession") -> None:
    gate = Gate(
        "retail.transactions",
        (expect("column_values_to_be_between", "quarantine", column="quantity", min_value=0),),
        key=("id", "day"),
    )
    split = gate.split(spark.createDataFrame(random_rows(400, seed=7), SCHEMA)).cache()
    counts = gate.check(split).counts
    rows = accepted_rows(split).collect()
    assert counts is not None
    assert counts.rows == len(rows)
    assert counts.nulls == {c: sum(row[c] is None for row in rows) for c in COLUMNS}
    assert counts.keys == pytest.approx(len({(row.id, row.day) for row in rows}), rel=0.15)


def test_nothing_is_counted_where_no_key_is_given(spark: "SparkSession") -> None:
    assert verdict_on(spark, [1, 2]).counts is None


def test_values_are_counted_that_repeat_and_that_differ(spark: "SparkSession") -> None:
    rows = spark.range(6).selectExpr("CASE WHEN id < 3 THEN 0 WHEN id < 5 THEN 1 END AS n")
    rule = expect("column_unique_value_count_to_be_between", column="n", min_value=1)
    (found,) = find_repeats(rows, [compile_uniqueness(rule)])
    assert (found.elements, found.considered, found.distinct, found.repeated) == (6, 5, 2, 5)
