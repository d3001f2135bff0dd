"""Rows and types that an expression does not take end a batch in words."""

from typing import TYPE_CHECKING

import pytest

from sluice.engine.retries import naming_data_faults
from sluice.errors import ConfigError, QualityStop
from sluice.interpreter.local_session import Session, interpreting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("id / (id - id)", "Division by zero"),
        ("cast(concat('x', id) as int)", "The value 'x1' of the type \"STRING\" cannot be cast"),
        ("cast(id + 300 as tinyint)", 'The value 301L of the type "BIGINT" cannot be cast'),
    ],
)
def test_a_row_that_an_expression_can_not_take_is_named_with_it(
    spark: "SparkSession", expression: str, told: str
) -> None:
    rows = spark.range(1, 2).selectExpr(f"{expression} AS x")
    with pytest.raises(QualityStop) as stopped, naming_data_faults("shop.best"):
        rows.collect()
    assert stopped.value.message.startswith("shop.best: ")
    assert told in stopped.value.message
    assert expression.split("(", maxsplit=1)[0].strip() in stopped.value.message
    assert "\n" not in stopped.value.message
    assert "try_divide" in stopped.value.hint


@pytest.mark.parametrize("divided", ["1 / (v - v)", "2 + v DIV (v - 3)", "v % (v - 3)"])
def test_a_division_by_zero_has_the_same_message_without_spark(
    spark: "SparkSession", divided: str
) -> None:
    def refused(session: "SparkSession") -> QualityStop:
        rows = session.createDataFrame([(3,)], "v INT").selectExpr(f"{divided} AS x")
        with pytest.raises(QualityStop) as stopped, naming_data_faults("shop.best"):
            rows.collect()
        return stopped.value

    by_spark = refused(spark)
    with interpreting(Session()) as here:
        found = refused(here)
    assert (found.message, found.hint) == (by_spark.message, by_spark.hint)
    assert "by zero. Use `try_" in found.message
    assert found.hint.startswith("the table is unchanged")  # its state may be a commit ahead


@pytest.mark.usefixtures("real_spark")
def test_types_that_only_spark_could_know_are_a_mistake_of_the_configuration(
    spark: "SparkSession",
) -> None:
    with pytest.raises(ConfigError) as refused, naming_data_faults("shop.best"):
        spark.range(1).selectExpr("id + DATE'2017-01-01'")
    assert refused.value.message.startswith("shop.best: ")
    assert "due to data type mismatch" in refused.value.message
    assert "correct the expression" in refused.value.hint


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(KeyError), naming_data_faults("shop.best"):
        raise KeyError("x")
