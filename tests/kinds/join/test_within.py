"""Joins of events that belong together, bounded in time, against brute force."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st
from tests.support.contract import Case, hold, local
from tests.support.lake import Lake, Row, State, away, counted
from tests.support.oracle import present
from tests.support.rows import HOUR, NOON, ids, maybe, row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARED = """
sources:
  orders:
    path: "orders/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, k INT, at TIMESTAMP"
  payments:
    path: "payments/{interval_start:%Y-%m-%d}/"
    key: [pid]
    schema: "pid INT, k INT, at TIMESTAMP"
views:
"""
KEEP, WITHIN = 3 * HOUR, HOUR
TIMES = maybe(st.integers(-40, 40).map(lambda n: NOON + n * HOUR / 4))
FEW = maybe(st.integers(1, 2))
ROWS = {
    "orders": row(id=ids, k=FEW, at=TIMES),
    "payments": row(pid=ids, k=FEW, at=TIMES),
}
NOBODY: Row = dict.fromkeys(("id", "k", "at", "pid"))


def view(how: str, more: str = "") -> str:
    shown = "id: o.id" if how in ("semi", "anti") else "id: o.id, pid: p.pid"
    return f"""
  paid:
    kind: join
    type: {how}
    left: {{table: orders, as: o, time: at}}
    right: {{table: payments, as: p, time: at}}
    on: [k]
    within: 1 hour
    select: {{{shown}}}
{more}"""


RETAINED = "    retention: 3 hours\n"


def meet(a: Row, b: Row) -> bool:
    return a["k"] is not None and a["k"] == b["k"] and abs(a["at"] - b["at"]) <= WITHIN


def pairs_of(lefts: list[Row], rights: list[Row], how: str) -> list[tuple[Row, Row]]:
    if how in ("semi", "anti"):
        wanted = how == "semi"
        return [(a, NOBODY) for a in lefts if any(meet(a, b) for b in rights) == wanted]
    pairs = [(a, b) for a in lefts for b in rights if meet(a, b)]
    if how in ("left", "full"):
        pairs += [(a, NOBODY) for a in lefts if not any(meet(a, b) for b in rights)]
    if how in ("right", "full"):
        pairs += [(NOBODY, b) for b in rights if not any(meet(a, b) for a in lefts)]
    return pairs


def query(how: str, keep: timedelta | None) -> Callable[[State], list[Row]]:
    """The pairs of rows with a time; with `keep`, those whose later row is recent enough."""

    def found(state: State) -> list[Row]:
        sides = [[r for r in state[s] if r["at"] is not None] for s in ("orders", "payments")]
        pairs = pairs_of(*sides, how)
        if keep is not None:
            newest = max(present([*sides[0], *sides[1]], "at"), default=NOON)
            pairs = [(a, b) for a, b in pairs if max(present([a, b], "at")) + keep > newest]
        columns = ("id",) if how in ("semi", "anti") else ("id", "pid")
        return [{c: (a if c == "id" else b)[c] for c in columns} for a, b in pairs]

    return found


def case(how: str, keep: timedelta | None, more: str = "") -> Case:
    name = f"{how}, {'for ever' if keep is None else 'expiring'}"
    return Case(name, DECLARED + view(how, more), "paid", ROWS, lambda: query(how, keep))


CASES = [
    case("left", None),
    *[case(how, KEEP, RETAINED) for how in ("inner", "left", "full", "anti")],
]


@pytest.mark.parametrize("case", local(CASES), ids=str)
def test_the_rows_equal_the_query_after_any_batches(case: Case, spark: "SparkSession") -> None:
    hold(case, spark)


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_rows_equal_the_query_after_any_batches_by_either_engine(
    case: Case, spark: "SparkSession"
) -> None:
    hold(case, spark)


def order(id_: int, at: datetime) -> Row:
    return {"id": id_, "k": id_, "at": at}


def payment(id_: int, at: datetime) -> Row:
    return {"pid": id_, "k": id_, "at": at}


def test_what_comes_too_late_to_match_anything_living_is_counted(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = Lake(tmp_path, DECLARED + view("left", RETAINED), spark)
    lake.put("payments")
    lake.put("orders", order(1, NOON), order(2, NOON - 5 * HOUR), order(3, NOON - 3 * HOUR))
    (built,) = lake.advance()
    assert built.expired == 1, "order 2; order 3 is not shown, yet may still be paid"
    assert lake.rows("paid") == [{"id": 1, "pid": None}]
    lake.put("payments", payment(3, NOON - 2 * HOUR), payment(2, NOON - 4 * HOUR))
    (late,) = lake.advance()
    assert late.expired == 1, "payment 2"
    assert counted(lake.rows("paid")) == counted([{"id": 1, "pid": None}, {"id": 3, "pid": 3}])


def test_rows_leave_as_time_goes_on_and_return_when_it_is_corrected(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = Lake(tmp_path, DECLARED + view("inner", RETAINED), spark)
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


def test_rows_return_whose_own_row_might_still_have_matched(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = Lake(tmp_path, DECLARED + view("left", RETAINED), spark)
    lake.put("payments")
    lake.put("orders", order(1, NOON), order(2, NOON + 3.5 * HOUR))
    lake.advance()
    assert lake.rows("paid") == [{"id": 2, "pid": None}]
    lake.put("orders", order(2, NOON + 2 * HOUR))
    lake.advance()
    shown = [{"id": 1, "pid": None}, {"id": 2, "pid": None}]
    assert counted(lake.rows("paid")) == counted(shown)


@pytest.mark.usefixtures("real_spark")
def test_files_of_expired_rows_are_not_opened(tmp_path: Path, spark: "SparkSession") -> None:
    lake = Lake(tmp_path, DECLARED + view("inner", RETAINED), spark)
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
