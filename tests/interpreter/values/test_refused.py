"""Numbers that Spark may compute otherwise are left to it."""

import pytest
from tests.interpreter.refusing import refused

LONG = "CAST('12345678901234567890123456789012345.12' AS DECIMAL(38, 2))"


@pytest.mark.parametrize(
    "sql",
    [
        f"-{LONG}",
        f"abs({LONG})",
        "CAST(id AS DECIMAL(38, 0)) * 10000000000 % CAST(1e-30 AS DECIMAL(38, 38))",
        "CAST(CAST('0.99999999999999999999' AS DECIMAL(30, 20)) AS INT)",
        "CAST(CAST(33554433 + id AS FLOAT) AS STRING)",
        "CAST(CAST(16777216 + id AS FLOAT) AS DOUBLE)",
        "date_add(DATE'2024-01-01', 2147483647) > DATE'2024-01-01'",
        "DATE'2024-01-01' + 2147483647 > DATE'2024-01-01'",
    ],
)
def test_numbers_that_spark_rounds_wraps_or_writes_otherwise(sql: str) -> None:
    refused(sql)
