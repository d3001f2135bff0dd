"""Operators that Spark binds otherwise, and intervals that it reads otherwise, are left to it."""

import pytest
from tests.interpreter.refusing import refused

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.local_session import Session, interpreting

ONE = "CAST(id AS INT)"


@pytest.mark.parametrize(
    "sql",
    [
        "false = id < 2",
        "false <> (id = 1) > false",
        "false = id IN (1, 2)",
    ],
)
def test_operators_that_spark_binds_in_another_order(sql: str) -> None:
    refused(sql)


@pytest.mark.parametrize(
    "written",
    [
        "1 day 2 months",
        "1 day 2.5 hours",
        "1day 2 hours",
        "1 day 2 hours, ",
        "1 day 2 h",
    ],
)
def test_intervals_of_such_a_form(written: str) -> None:
    refused(f"TIMESTAMP'2024-01-01 00:00:00' + INTERVAL '{written}'")


@pytest.mark.parametrize("written", ["'one' DAY", "'1.5' DAY", "'1.5' HOUR", "'1' CENTURY"])
def test_an_interval_of_such_a_number_or_unit(written: str) -> None:
    refused(f"TIMESTAMP'2024-01-01 00:00:00' + INTERVAL {written}")


def test_a_quotient_by_zero() -> None:
    by_zero = "CAST(id AS DECIMAL(5, 2)) / CAST(id - 1 AS DECIMAL(5, 2))"
    session = Session()
    with interpreting(session), pytest.raises(UnsupportedLocally, match="try_divide"):
        session.range(1, 2).selectExpr(f"{by_zero} AS found").toArrow()


def test_a_sum_one_beyond_the_largest() -> None:
    refused("sum(id * 0 + 4611686018427387904)", count=2)


def test_a_field_of_a_struct_that_no_table_has() -> None:
    session = Session()
    with interpreting(session):
        rows = session.range(1).selectExpr(
            "CAST(TIMESTAMP'2024-03-01 00:00:00' + named_struct('i', INTERVAL '1' DAY).i AS STRING)"
        )
        assert rows.collect()[0] == ("2024-03-02 00:00:00",)


def test_an_interval_followed_by_another_unit() -> None:
    refused("INTERVAL '1 day 2 hours' DAY > INTERVAL '1' DAY")


def test_an_interval_of_several_parts_in_one_text() -> None:
    session = Session()
    sums = {
        "1 day 2 hours": "2024-03-02 02:00:00",
        "-1 day +90 minutes": "2024-02-29 01:30:00",
        " INTERVAL 1 Week - 3.5 SECONDS ": "2024-03-07 23:59:56.5",
        "1 month -1 year": "2023-04-01 00:00:00",
    }
    with interpreting(session):
        rows = session.range(1).selectExpr(
            *(f"CAST(TIMESTAMP'2024-03-01 00:00:00' + INTERVAL '{i}' AS STRING)" for i in sums)
        )
        assert rows.collect()[0] == tuple(sums.values())
