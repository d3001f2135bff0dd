"""Columns that Arrow reads at once have the values that the rules in SQL give to each text."""

import random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from sluice.files.spelled import Texts
from sluice.sources.kafka.rows import plain_values

DAYS = ("2024-02-29", "1000-01-01", "9999-12-31", "2024-2-1", "0001-01-01", "2023-02-29")
CLOCKS = ("00:00:00", "23:59:59.9", "10:00:00.000001", "24:00:00", "1:00", "10:00:60", "10:00")
TIMES = [f"{day}{sep}{clock}" for day in DAYS for sep in " T" for clock in CLOCKS]
NUMBERS = (
    "0",
    "-0",
    "7",
    "-12",
    "007",
    "1.5",
    "1.50",
    "-0.25",
    "12345678901.25",
    "1e2",
    "+1",
    ".5",
)
WIDE = ("32767", "32768", "-129", "2147483648", "999999999999999999", "9223372036854775808", "0x1F")
TEXTS = {
    "TINYINT": (*NUMBERS, *WIDE),
    "INT": (*NUMBERS, *WIDE),
    "BIGINT": (*NUMBERS, *WIDE),
    "DECIMAL(12,2)": (*NUMBERS, *WIDE, "0.125", "1234567890.12", "0000000001.10"),
    "DECIMAL(3,0)": (*NUMBERS, *WIDE, "999"),
    "DECIMAL(2,2)": NUMBERS,
    "DOUBLE": (*NUMBERS, *WIDE, "0.1", "123456789012345.123456789012345", "NaN"),
    "BOOLEAN": ("true", "false", "TRUE", "1", "no"),
    "DATE": (*DAYS, "2024-02-29T00:00"),
    "TIMESTAMP": (*TIMES, *(f"{time}Z" for time in TIMES), "2024-02-29 10:00:00+01:00"),
    "TIMESTAMP_NTZ": (*TIMES, "2024-02-29 10:00:00Z"),
    "STRING": ("", "x", " 1"),
}


@pytest.mark.parametrize("type_", TEXTS)
def test_plain_texts_are_what_the_rules_say(type_: str, spark: SparkSession) -> None:
    every = TEXTS[type_]
    declared = spark.createDataFrame([], f"v {type_}").schema["v"].dataType
    plain = [t for t in every if plain_values(pa.array([t]), declared) is not None]
    assert plain, "some texts are plain"
    texts = [*plain, None, *random.Random(7).choices(plain, k=5)]
    read = plain_values(pa.array(texts, pa.string()), declared)
    assert read is not None
    rows = spark.createDataFrame(list(enumerate(texts)), "n INT, v STRING")
    for step in Texts(mark="CAST(NULL AS STRING)").steps(declared):
        rows = rows.withColumn("v", F.expr(step("v")))
    assert rows.schema["v"].dataType == declared
    assert read.to_pylist() == rows.orderBy("n").toArrow()["v"].to_pylist()


def test_one_text_that_is_not_plain_leaves_the_column_to_the_rules(spark: SparkSession) -> None:
    for type_, every in TEXTS.items():
        declared = spark.createDataFrame([], f"v {type_}").schema["v"].dataType
        odd = [t for t in every if plain_values(pa.array([t]), declared) is None]
        assert bool(odd) != isinstance(declared, StringType)
        for text in odd:
            assert plain_values(pa.array([None, text]), declared) is None
        empty = plain_values(pa.array([None], pa.string()), declared)
        assert empty is not None
        assert empty.to_pylist() == [None]
