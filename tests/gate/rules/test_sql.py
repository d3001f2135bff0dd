"""Literals mean to Spark what they mean in Python."""

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from sluice.gate.sql import as_json, every, literal, name, some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUES = (
    None,
    True,
    7,
    -(2**40),
    0.1,
    -1e300,
    Decimal("12.30"),
    'it\'s \\ "quoted" \n ü',
    dt.date(2017, 3, 1),
    dt.datetime(2017, 3, 1, 12, 30, 0, 250_000, tzinfo=dt.UTC),
)


def test_a_literal_comes_back_as_it_was(spark: "SparkSession") -> None:
    columns = [f"{literal(value)} AS c{i}" for i, value in enumerate(VALUES)]
    (row,) = spark.range(1).selectExpr(*columns).toArrow().to_pylist()
    assert tuple(row.values()) == VALUES


@pytest.mark.usefixtures("real_spark")
def test_a_row_as_json_keeps_the_microseconds_of_times(spark: "SparkSession") -> None:
    times = "TIMESTAMP_NTZ'2024-01-01 01:02:03.123456' AS n, TIMESTAMP'2024-01-01 00:00:00Z' AS t"
    row = spark.sql(f"SELECT struct({times}, CAST(NULL AS INT) AS i) AS row")
    assert row.selectExpr(as_json("row")).first() == (
        '{"n":"2024-01-01T01:02:03.123456","t":"2024-01-01T00:00:00.000000Z","i":null}',
    )


def test_a_value_without_a_literal_is_refused() -> None:
    with pytest.raises(TypeError, match="no SQL literal"):
        literal([1])


@pytest.mark.parametrize(
    ("column", "quoted"), [("a", "`a`"), ("a.b", "`a`.`b`"), ("a`b", "`a``b`")]
)
def test_names_are_quoted(column: str, quoted: Any) -> None:
    assert name(column) == quoted


def test_no_condition_is_true_of_every_and_false_of_some() -> None:
    assert (every([]), some([])) == ("true", "false")
