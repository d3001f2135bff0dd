"""Digits beyond a microsecond: those that a source takes and can't keep are counted."""

from collections.abc import Callable

import pyarrow as pa
import pytest
from tests.support.landed import Content, NewLanded, folder_of

pytestmark = pytest.mark.usefixtures("real_spark")

Deliver = Callable[..., tuple[str, ...]]
PATTERN = "timestampFormat: 'yyyy-MM-dd HH:mm:ss[.SSSSSSSSS]'"
TIMES = ["2024-07-01 10:00:00.123456789", "2024-07-01 10:00:00.123456000", "2024-07-01 10:00:00"]
ONE = ("shop.events: 1 time(s) had digits beyond a microsecond, which were cut",)


@pytest.fixture
def deliver(new_landed: NewLanded) -> Deliver:
    def deliver(format_: str, content: Content, type_: str = "TIMESTAMP") -> tuple[str, ...]:
        declared = (
            "path: 'landing/{interval_start:%Y-%m-%d}/', expect: [{type: "
            "expect_column_values_to_be_between, column: n, max_value: 9, on_failure: quarantine}]"
        )
        options = f", options: {{{PATTERN}}}" if format_ != "parquet" else ""
        columns = f"format: {format_}, schema: 'n INT, t {type_}'{options}"
        lake = new_landed(f"sources:\n  events: {{{declared}, {columns}}}\n")
        lake.land(folder_of(0), **{f"a_{format_}": content})
        return lake.deliver()[0].warnings

    return deliver


def test_nanoseconds_of_parquet_are_counted_where_they_are_not_zero(deliver: Deliver) -> None:
    nanos = [1_720_000_000_123_456_789, 1_720_000_000_123_456_000, None, -1, 1 - 2**63]
    rows = {"n": [1, 2, 3, 4, 5], "t": pa.array(nanos, pa.timestamp("ns", "UTC"))}
    three = ONE[0].replace("1 time", "3 time")
    assert deliver("parquet", pa.table(rows)) == (three,)


def test_digits_that_a_pattern_accepts_are_counted(deliver: Deliver) -> None:
    rows = "".join(f"{n},{time}\n" for n, time in enumerate(TIMES))
    assert deliver("csv", f"n,t\n{rows}") == ONE


def test_digits_inside_nested_values_are_counted(deliver: Deliver) -> None:
    rows = "".join(f'{{"n":{n}.0,"t":["{time}"]}}\n' for n, time in enumerate(TIMES))
    assert deliver("json", rows, "ARRAY<TIMESTAMP>") == ONE


def test_only_rows_that_arrive_count(deliver: Deliver) -> None:
    (told,) = deliver("csv", f"n,t\n10,{TIMES[0]}\n1,{TIMES[2]}\n")
    assert "cut" not in told
