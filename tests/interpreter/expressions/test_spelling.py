"""Texts of SQL mean what Spark 4 reads in them: the answers are Spark's."""

import pytest
from pyspark.sql import SparkSession

from sluice.interpreter import UnsupportedLocally

ANSWERS = {
    "1 | 2 & 4 ^ 1": 1,
    "3 ^ 1 & 2": 3,
    "7 & 3 ^ 1": 2,
    "6 & 3 | 8 ^ 1": 11,
    "CAST(1 || 2 AS INT) + 3": 15,
    "1 + 1 || 2": "22",
    "3 || 4 * 2": "38",
    "array(7, 8)[1]": 8,
    "array(array(7), array(8, 9))[1][0]": 8,
    "array(named_struct('z', 8))[0].z": 8,
    "'it''s'": "it's",
    "'a''''b'": "a''b",
    "''''": "'",
    '"x""y"': 'x"y',
    "'a\"\"b'": 'a""b',
    r"'a\'b'": "a'b",
}


@pytest.mark.parametrize(("text", "answer"), ANSWERS.items())
def test_signs_and_quotes_are_read_as_by_spark(
    spark: SparkSession, text: str, answer: object
) -> None:
    assert spark.range(1).selectExpr(f"{text} AS x").collect()[0].x == answer


def test_texts_are_joined_before_what_is_behind_them_is_added(spark: SparkSession) -> None:
    """Spark answers 15 and 104; sums of texts are left to it."""
    for text in ("1 || 2 + 3", "10 || 5 - 1"):
        with pytest.raises(UnsupportedLocally, match=r"string [-+] int"):
            spark.range(1).selectExpr(text).collect()


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("-2147483648", "int"),
        ("2147483647", "int"),
        ("2147483648", "bigint"),
        ("-2147483649", "bigint"),
        ("- -2147483648", "int"),
        ("-9223372036854775807", "bigint"),
        ("-2147483648L", "bigint"),
        ("-5S", "smallint"),
        ("-5Y", "tinyint"),
        ("-1.50", "decimal(3,2)"),
        ("-1.5D", "double"),
        ("-15e-1", "double"),
    ],
)
def test_the_type_of_a_number_is_that_of_its_digits(
    spark: SparkSession, text: str, type_: str
) -> None:
    rows = spark.range(1).selectExpr(f"{text} AS x")
    assert rows.schema["x"].dataType.simpleString() == type_
    if text.count("-") == 1:
        number = text.rstrip("LSYD")
        assert float(rows.collect()[0].x) == float(number)
