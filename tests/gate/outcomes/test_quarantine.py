"""The quarantine table holds every row that was not accepted, whole and with its reason."""

import datetime as dt
import json
from typing import TYPE_CHECKING

from tests.gate.rows import expect

from sluice.engine import judging
from sluice.gate.gate import Gate, accepted_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

DAY = dt.datetime(2017, 3, 1, tzinfo=dt.UTC)
NOW = dt.datetime(2017, 3, 2, 4, 30, 0, 123456, tzinfo=dt.UTC)
GATE = Gate(
    "retail.transactions",
    (
        expect("column_values_to_not_be_null", "quarantine", column="household"),
        expect("column_values_to_be_between", "quarantine", column="quantity", min_value=0),
    ),
)
PARSED = (
    "household INT, quantity INT, _sluice_id STRING, _sluice_reason STRING, _sluice_raw STRING,"
    " _sluice_file STRING"
)


def split(spark: "SparkSession") -> "DataFrame":
    rows = [
        (1, 2, "a", None, None, "day.json"),
        (None, -1, "b", None, None, "day.json"),
        (7, -3, "c", None, None, "day.json"),
        (None, None, "d", "does not parse", '{"household": 1,', "bad.json"),
    ]
    return GATE.split(spark.createDataFrame(rows, PARSED))


def quarantined(batch: "DataFrame") -> list["Row"]:
    return judging.quarantine_rows(
        batch, interval_start=DAY, batch=3, run="run-1", quarantined_at=NOW
    ).collect()


def test_accepted_and_quarantined_rows_are_all_the_rows(spark: "SparkSession") -> None:
    batch = split(spark)
    assert len(quarantined(batch)) + accepted_rows(batch).count() == batch.count() == 4


def test_accepted_rows_lose_only_what_the_reader_and_the_gate_added(spark: "SparkSession") -> None:
    assert accepted_rows(split(spark)).columns == ["household", "quantity", "_sluice_id"]


def test_a_row_has_all_its_reasons_and_is_kept_whole(spark: "SparkSession") -> None:
    both, one, unread = quarantined(split(spark))
    assert both.reason == (
        "expected that household is not null; expected that quantity is at least 0"
    )
    assert both.expectation == (
        "column values to not be null (household); column values to be between (quantity)"
    )
    assert json.loads(one.raw) == {"household": 7, "quantity": -3}
    assert one.expectation == "column values to be between (quantity)"
    assert (unread.reason, unread.expectation) == ("does not parse", None)
    assert unread.raw == '{"household": 1,'
    assert unread.file == "bad.json"


def test_a_row_that_could_not_be_read_is_held_against_no_rule(spark: "SparkSession") -> None:
    verdict = GATE.check(split(spark))
    assert [outcome.element_count for outcome in verdict.outcomes] == [3, 3]
    assert verdict.rows_quarantined == 3


def test_rows_name_interval_batch_and_run(spark: "SparkSession") -> None:
    batch = split(spark)
    table = judging.quarantine_rows(
        batch, interval_start=DAY, batch=3, run="run-1", quarantined_at=NOW
    )
    assert (
        table.schema.simpleString()
        == spark.createDataFrame([], judging.SCHEMA).schema.simpleString()
    )
    row = table.toArrow().to_pylist()[0]
    assert (row["_sluice_interval"], row["quarantined_at"]) == (DAY, NOW)
    assert (row["batch"], row["run"]) == (3, "run-1")


def test_a_row_is_kept_to_the_microsecond(spark: "SparkSession") -> None:
    parsed = spark.createDataFrame([(None, 1, NOW)], "household INT, quantity INT, at TIMESTAMP")
    (row,) = quarantined(GATE.split(parsed))
    assert dt.datetime.fromisoformat(json.loads(row.raw)["at"]) == NOW


def test_a_reader_that_marks_nothing_needs_no_columns_of_ours(spark: "SparkSession") -> None:
    batch = GATE.split(spark.createDataFrame([(None, 1)], "household INT, quantity INT"))
    (row,) = quarantined(batch)
    assert (row.raw, row.file) == ('{"household":null,"quantity":1}', None)
