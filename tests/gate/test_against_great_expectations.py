"""Great Expectations is the oracle: what is compiled answers as GX does on the same rows."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from tests.gate.rows import SCHEMA, expect, random_rows

from sluice.declare.table_spec import Expectation
from sluice.gate import engine
from sluice.gate.gate import Gate
from sluice.gate.results import ExpectationOutcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXPECTATIONS = (
    expect("column_values_to_not_be_null", column="department"),
    expect("column_values_to_not_be_null", column="department", mostly=0.7),
    expect("column_values_to_not_be_null", column="weight", row_condition="quantity > 3"),
    expect("column_values_to_be_null", column="other", mostly=0.1),
    expect("column_values_to_be_between", column="quantity", min_value=0, max_value=8),
    expect("column_values_to_be_between", column="weight", min_value=0),
    expect("column_values_to_be_between", column="weight", max_value=4.5, strict_max=True),
    expect("column_values_to_be_between", column="price", min_value=0.5, strict_min=True),
    expect("column_values_to_be_between", column="at", min_value="2017-03-01 12:00:00"),
    expect("column_values_to_be_between", column="day", max_value="2017-03-03"),
    expect("column_values_to_be_in_set", column="department", value_set=["DELI", "it's", "a\\b"]),
    expect("column_values_to_be_in_set", column="quantity", value_set=[1, 2, 3], mostly=0.25),
    expect("column_values_to_be_in_set", column="weight", value_set=[0.0]),
    expect("column_values_to_not_be_in_set", column="department", value_set=["", "DELI"]),
    expect("column_value_lengths_to_be_between", column="department", min_value=1, max_value=4),
    expect("column_value_lengths_to_equal", column="department", value=4),
    expect("column_values_to_match_regex", column="department", regex="^[A-Z]+(-\\w+)?$"),
    expect("column_values_to_match_regex", column="department", regex="\\\\|'"),
    expect("column_values_to_not_match_regex", column="department", regex="[a-zé]"),
    expect("column_values_to_match_regex_list", column="department", regex_list=["^D", "T$"]),
    expect(
        "column_values_to_match_regex_list",
        column="department",
        regex_list=["E", "^G"],
        match_on="all",
    ),
    expect("column_values_to_not_match_regex_list", column="department", regex_list=["^D", "^M"]),
    expect(
        "column_pair_values_a_to_be_greater_than_b", column_A="weight", column_B="limit", mostly=0.4
    ),
    expect(
        "column_pair_values_a_to_be_greater_than_b",
        column_A="weight",
        column_B="limit",
        or_equal=True,
        ignore_row_if="either_value_is_missing",
    ),
    expect("column_pair_values_to_be_equal", column_A="department", column_B="other"),
    expect(
        "column_pair_values_to_be_equal",
        column_A="department",
        column_B="other",
        ignore_row_if="neither",
        row_condition="quantity IS NOT NULL",
    ),
    expect(
        "column_pair_values_to_be_in_set",
        column_A="department",
        column_B="other",
        value_pairs_set=[["DELI", "DELI"], ["it's", ""]],
        ignore_row_if="either_value_is_missing",
    ),
    expect("multicolumn_sum_to_equal", column_list=["quantity", "id"], sum_total=20),
    expect("multicolumn_values_to_be_equal", column_list=["department", "other"], mostly=0.2),
    expect(
        "select_column_values_to_be_unique_within_record",
        column_list=["department", "other"],
        ignore_row_if="any_value_is_missing",
    ),
    expect("table_row_count_to_be_between", min_value=1, max_value=10),
    expect("table_row_count_to_equal", value=300),
    expect("column_min_to_be_between", column="quantity", min_value=-1),
    expect("column_max_to_be_between", column="price", max_value=19.5),
    expect("column_max_to_be_between", column="at", max_value="2017-03-03 00:00:00"),
    expect("column_sum_to_be_between", column="quantity", min_value=1, row_condition="id > 9"),
    expect("column_mean_to_be_between", column="quantity", min_value=3, max_value=4),
    expect("column_stdev_to_be_between", column="quantity", min_value=0, max_value=1),
    expect("column_proportion_of_non_null_values_to_be_between", column="id", min_value=0.9),
    expect("column_values_to_be_unique", column="id", mostly=0.3),
    expect("column_values_to_be_unique", column="department", row_condition="quantity = 3"),
    expect("compound_columns_to_be_unique", column_list=["department", "quantity"]),
    expect(
        "compound_columns_to_be_unique",
        column_list=["department", "quantity"],
        ignore_row_if="any_value_is_missing",
    ),
    expect("column_unique_value_count_to_be_between", column="department", min_value=7),
    expect("column_proportion_of_unique_values_to_be_between", column="id", max_value=0.5),
)
COMPARED = (
    "element_count",
    "unexpected_count",
    "unexpected_percent",
    "missing_count",
    "missing_percent",
    "unexpected_percent_total",
    "unexpected_percent_nonmissing",
    "observed_value",
)


def facts(outcome: ExpectationOutcome) -> dict[str, Any]:
    assert not outcome.result["exception_info"]["raised_exception"], outcome.observed
    found = {key: outcome.details[key] for key in COMPARED if key in outcome.details}
    return {"success": outcome.success, **{key: normal(value) for key, value in found.items()}}


def normal(value: Any) -> Any:
    """GX sums no rows to null, and drops the zone of a time."""
    if isinstance(value, float):
        return round(value, 9)
    return value.removesuffix("+00:00") if isinstance(value, str) else value or 0


Answers = dict[int, tuple[ExpectationOutcome, ExpectationOutcome]]
COUNTS_ONLY = {"result_format": "BASIC", "partial_unexpected_count": 0}


def answer(
    spark: "SparkSession",
    rows: int,
    expectations: Sequence[Expectation],
    result_format: str | dict[str, Any],
) -> Answers:
    """Of each expectation: ours, and Great Expectations' own."""
    batch = spark.createDataFrame(random_rows(rows), SCHEMA).coalesce(1).cache()
    gate = Gate("retail.transactions", tuple(expectations))
    assert not gate.suite.others
    ours = gate.check(gate.split(batch)).outcomes
    theirs = engine.validate(batch, expectations, result_format)
    batch.unpersist()
    return {id(e): pair for e, *pair in zip(expectations, ours, theirs, strict=True)}  # type: ignore[misc]


@pytest.fixture(scope="module")
def answers(real_spark: "SparkSession") -> Answers:
    return answer(real_spark, 300, EXPECTATIONS, COUNTS_ONLY)


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize(
    "expectation", EXPECTATIONS, ids=[f"{i}: {e.label}" for i, e in enumerate(EXPECTATIONS)]
)
def test_a_compiled_expectation_answers_as_great_expectations_does(
    expectation: Expectation, answers: Answers
) -> None:
    ours, theirs = answers[id(expectation)]
    assert facts(ours) == facts(theirs)


@pytest.mark.usefixtures("real_spark")
def test_an_empty_batch_is_answered_as_great_expectations_does(spark: "SparkSession") -> None:
    for ours, theirs in answer(spark, 0, EXPECTATIONS[::6], COUNTS_ONLY).values():
        assert facts(ours) == facts(theirs)


def test_results_have_the_fields_of_great_expectations_own(spark: "SparkSession") -> None:
    for ours, theirs in answer(spark, 50, EXPECTATIONS[4::15], "SUMMARY").values():
        assert set(theirs.result) <= set(ours.result)
        assert set(theirs.details) - {"partial_unexpected_index_list"} <= set(ours.details)
        assert ours.result["expectation_config"] == theirs.result["expectation_config"]
        assert json.loads(json.dumps(ours.result)) == ours.result
