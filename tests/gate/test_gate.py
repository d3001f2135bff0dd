"""The gate: what is quarantined, what stops a batch, and that no row is lost."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from tests.gate.rows import DEPARTMENTS, SCHEMA, expect, random_rows
from tests.gate.verdicts import COLUMNS, rules, verdict_on

from sluice.declare.table_spec import Expectation
from sluice.errors import ConfigError, ExitCode, QualityStop
from sluice.gate.gate import accepted_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]

# Each quarantine rule beside what it means, written down once more in Python: is the row kept?
BRUTE_FORCE: tuple[tuple[Expectation, Callable[[Row], bool]], ...] = (
    (
        expect("column_values_to_not_be_null", "quarantine", column="id"),
        lambda row: row["id"] is not None,
    ),
    (
        expect("column_values_to_be_between", "quarantine", column="quantity", min_value=0),
        lambda row: row["quantity"] is None or row["quantity"] >= 0,
    ),
    (  # NaN is above every number
        expect("column_values_to_be_between", "quarantine", column="weight", max_value=4),
        lambda row: row["weight"] is None or row["weight"] <= 4,
    ),
    (
        expect(
            "column_values_to_not_be_in_set", "quarantine", column="department", value_set=["a\\b"]
        ),
        lambda row: row["department"] != "a\\b",
    ),
    (
        expect(
            "column_values_to_match_like_pattern",
            "quarantine",
            column="other",
            like_pattern="%E%",
            row_condition="quantity = 3",
        ),
        lambda row: row["quantity"] != 3 or row["other"] is None or "E" in row["other"],
    ),
)


def test_rows_are_quarantined_as_a_rule_written_in_python_would(spark: "SparkSession") -> None:
    rows = random_rows(400, seed=7)
    gate = rules(*(expectation for expectation, _ in BRUTE_FORCE))
    split = gate.split(spark.createDataFrame(rows, SCHEMA).coalesce(1)).collect()
    for row, found in zip(rows, split, strict=True):
        as_dict = dict(zip(COLUMNS, row, strict=True))
        broken = [e.label for e, keeps in BRUTE_FORCE if not keeps(as_dict)]
        assert [reason.expectation for reason in found["_sluice_reasons"]] == broken


def test_read_is_accepted_plus_quarantined(spark: "SparkSession") -> None:
    gate = rules(*(expectation for expectation, _ in BRUTE_FORCE))
    split = gate.split(spark.createDataFrame(random_rows(400, seed=7), SCHEMA)).cache()
    verdict = gate.check(split)
    assert verdict.rows_read == 400
    assert verdict.rows_accepted == accepted_rows(split).count()
    assert 0 < verdict.rows_quarantined < 400
    assert accepted_rows(split).columns == COLUMNS


def test_a_null_or_a_row_out_of_the_condition_is_never_quarantined(spark: "SparkSession") -> None:
    rule = expect(
        "column_values_to_be_between",
        "quarantine",
        column="quantity",
        min_value=5,
        row_condition="quantity < 3",
    )
    assert verdict_on(spark, [None, 4, 2, 9], rule).rows_quarantined == 1


def test_every_row_that_breaks_a_rule_is_quarantined_whatever_mostly_says(
    spark: "SparkSession",
) -> None:
    rule = expect(
        "column_values_to_be_between", "quarantine", column="quantity", min_value=0, mostly=0.5
    )
    verdict = verdict_on(spark, [1, 2, -1], rule)
    assert verdict.rows_quarantined == 1
    assert verdict.outcomes[0].success


def test_stop_rules_judge_what_would_be_committed(spark: "SparkSession") -> None:
    verdict = verdict_on(
        spark,
        [1, 2, -1],
        expect("column_values_to_be_between", "quarantine", column="quantity", min_value=0),
        expect("column_min_to_be_between", "stop", column="quantity", min_value=0),
        expect("column_values_to_not_be_in_set", "stop", column="quantity", value_set=[-1]),
        expect("column_values_to_be_unique", "stop", column="quantity"),
        expect("table_row_count_to_equal", "stop", value=2),
    )
    verdict.enforce()
    assert [o.success for o in verdict.outcomes] == [False, True, True, True, True]


def test_a_stop_names_table_expectation_observation_and_rows(spark: "SparkSession") -> None:
    verdict = verdict_on(
        spark,
        [1, -7],
        expect("column_values_to_be_between", "stop", column="quantity", min_value=0),
    )
    with pytest.raises(QualityStop) as stopped:
        verdict.enforce()
    assert stopped.value.exit_code is ExitCode.QUALITY
    for part in ("retail.transactions", "quantity is at least 0", "1 of 2 rows", "-7"):
        assert part in str(stopped.value)


def test_a_warning_is_reported_and_stops_nothing(spark: "SparkSession") -> None:
    verdict = verdict_on(
        spark, [3, 3], expect("column_values_to_be_unique", "warn", column="quantity")
    )
    verdict.enforce()
    assert verdict.warnings == (
        "retail.transactions: expected that quantity is unique: 2 of 2 rows unexpected (100 %)",
    )


@pytest.mark.usefixtures("real_spark")
def test_outcomes_keep_the_order_of_the_configuration(spark: "SparkSession") -> None:
    expectations = (
        expect("column_values_to_be_unique", column="quantity"),
        expect("table_row_count_to_equal", value=1),
        expect("column_median_to_be_between", column="quantity", min_value=1),  # run by GX itself
        expect("column_values_to_not_be_null", column="quantity"),
    )
    verdict = verdict_on(spark, [1, 2], *expectations)
    assert tuple(o.expectation for o in verdict.outcomes) == expectations
    assert [o.success for o in verdict.outcomes] == [True, False, True, True]


@pytest.mark.usefixtures("real_spark")
def test_an_expectation_that_cannot_be_answered_fails_and_says_why(spark: "SparkSession") -> None:
    verdict = verdict_on(
        spark, [1], expect("column_median_to_be_between", "stop", column="nothing", min_value=1)
    )
    with pytest.raises(QualityStop, match="could not be evaluated"):
        verdict.enforce()


def test_a_gate_without_expectations_only_counts(spark: "SparkSession") -> None:
    verdict = verdict_on(spark, [1, None])
    assert (verdict.rows_read, verdict.rows_accepted, verdict.outcomes) == (2, 2, ())


def test_a_sample_shows_the_null_that_it_was_found_for(spark: "SparkSession") -> None:
    verdict = verdict_on(spark, [None], expect("column_values_to_not_be_null", column="quantity"))
    assert verdict.outcomes[0].unexpected_rows == [{"quantity": None}]


def test_long_text_is_cut_in_samples(spark: "SparkSession") -> None:
    gate = rules(expect("column_value_lengths_to_be_between", column="note", max_value=3))
    batch = spark.createDataFrame([("x" * 1_000_000,)], "note STRING")
    (outcome,) = gate.check(gate.split(batch)).outcomes
    assert len(outcome.unexpected_rows[0]["note"]) == 1000


def test_values_reach_spark_as_they_were_written(spark: "SparkSession") -> None:
    gate = rules(
        expect("column_values_to_be_in_set", column="department", value_set=list(DEPARTMENTS))
    )
    batch = spark.createDataFrame([(d,) for d in DEPARTMENTS], "department STRING")
    assert gate.check(gate.split(batch)).outcomes[0].success


@pytest.mark.parametrize(
    ("expectation", "told"),
    [
        (expect("column_values_to_be_unique", "quarantine", column="a"), "single row"),
        (expect("table_row_count_to_equal", "quarantine", value=1), "use stop or warn"),
        (expect("column_values_to_be_increasing", column="a"), "no order"),
        (expect("column_values_to_be_in_set", column="a", value_set=[1, None]), "null"),
    ],
)
def test_what_a_batch_cannot_answer_is_refused(expectation: Expectation, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        _ = rules(expectation).suite
