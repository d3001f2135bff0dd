"""Operators that Spark binds otherwise are left to it."""

import pytest
from tests.interpreter.refusing import refused

ONE = "CAST(id AS INT)"


@pytest.mark.parametrize(
    "sql",
    [
        f"4 | {ONE} & 1",
        f"4 | {ONE} ^ 1",
        f"4 ^ {ONE} & 1",
        "false = id < 2",
        "false <> (id = 1) > false",
        "false = id IN (1, 2)",
    ],
)
def test_operators_that_spark_binds_in_another_order(sql: str) -> None:
    refused(sql)
