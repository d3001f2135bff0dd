"""Rows of forgotten subjects lose their values when they are delivered again."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from sluice.engine.forgotten import Forgotten, withhold

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("column", ["mail", "who.mail", "id.mail"])
def test_a_table_that_has_lost_the_subjects_column_stays_as_it_is(
    spark: "SparkSession", column: str
) -> None:
    rows = spark.range(1).selectExpr("id", "struct(id AS name) AS who")
    note = Forgotten("n", (column,), "salt", ("hash",), datetime(2024, 1, 1, tzinfo=UTC))
    assert withhold(rows, [note]) is rows
