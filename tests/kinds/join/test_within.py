"""Joins of events that belong together, bounded in time, against brute force."""

from datetime import datetime
from pathlib import Path

import pytest
from tests.kinds.join.cases_within import CASES, DECLARED, RETAINED, view
from tests.support.contract import held
from tests.support.lake import Lake, NewLake, Row, away, counted
from tests.support.rows import HOUR, NOON

test_the_rows_equal_the_query_after_any_batches, test_by_either_engine = held(CASES)


def order(id_: int, at: datetime) -> Row:
    return {"id": id_, "k": id_, "at": at}


def payment(id_: int, at: datetime) -> Row:
    return {"pid": id_, "k": id_, "at": at}


def test_what_comes_too_late_to_match_anything_living_is_counted(new_lake: NewLake) -> None:
    lake = new_lake(DECLARED + view("left", RETAINED))
    lake.put("payments")
    lake.put("orders", order(1, NOON), order(2, NOON - 5 * HOUR), order(3, NOON - 3 * HOUR))
    (built,) = lake.advance()
    assert built.expired == 1, "order 2; order 3 is not shown, yet may still be paid"
    assert lake.rows("paid") == [{"id": 1, "pid": None}]
    lake.put("payments", payment(3, NOON - 2 * HOUR), payment(2, NOON - 4 * HOUR))
    (late,) = lake.advance()
    assert late.expired == 1, "payment 2"
    assert counted(lake.rows("paid")) == counted([{"id": 1, "pid": None}, {"id": 3, "pid": 3}])


def test_rows_leave_as_time_goes_on_and_return_when_it_is_corrected(new_lake: NewLake) -> None:
    lake = new_lake(DECLARED + view("inner", RETAINED))
    lake.put("orders", order(1, NOON), order(2, NOON + 9 * HOUR))
    lake.put("payments", payment(1, NOON + HOUR))
    lake.advance()
    assert lake.stored("paid") == []
    lake.put("orders", gone=[order(2, NOON)])
    lake.advance()
    assert lake.rows("paid") == [{"id": 1, "pid": 1}]
    lake.put("orders", order(3, NOON + 5 * HOUR))
    lake.advance()
    assert lake.stored("paid") == [], "an expired pair is deleted, not hidden"


def test_rows_return_whose_own_row_might_still_have_matched(new_lake: NewLake) -> None:
    lake = new_lake(DECLARED + view("left", RETAINED))
    lake.put("payments")
    lake.put("orders", order(1, NOON), order(2, NOON + 3.5 * HOUR))
    lake.advance()
    assert lake.rows("paid") == [{"id": 2, "pid": None}]
    lake.put("orders", order(2, NOON + 2 * HOUR))
    lake.advance()
    shown = [{"id": 1, "pid": None}, {"id": 2, "pid": None}]
    assert counted(lake.rows("paid")) == counted(shown)


@pytest.mark.usefixtures("real_spark")
def test_files_of_expired_rows_are_not_opened(new_lake: NewLake) -> None:
    lake = new_lake(DECLARED + view("inner", RETAINED))
    lake.put("orders", order(1, NOON))
    lake.put("payments", payment(1, NOON))
    lake.advance()
    expired = [*files_of(lake, "orders"), *files_of(lake, "payments")]
    lake.put("orders", {**order(2, NOON + 9 * HOUR), "k": 1})
    lake.advance()
    lake.limit(read_here_bytes=-1)
    lake.put("payments", {**payment(2, NOON + 9 * HOUR), "k": 1})
    with away(expired):
        lake.advance()
    assert lake.rows("paid") == [{"id": 2, "pid": 2}]


def files_of(lake: Lake, name: str) -> list[Path]:
    return list(Path(lake.uri(name)).glob("*.parquet"))
