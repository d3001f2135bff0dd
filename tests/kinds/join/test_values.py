"""Joins of odd values, and inputs that come, go and come back, against brute force."""

import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from tests.support.contract import Case, hold
from tests.support.in_duckdb import wrong
from tests.support.lake import Lake, Row, State, counted
from tests.support.rows import ids, maybe, row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARED = """
sources:
  here:
    path: "here/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, x DOUBLE, n DECIMAL(4,1)"
  there:
    path: "there/{interval_start:%Y-%m-%d}/"
    key: [no]
    schema: "no INT, x DOUBLE, n BIGINT"
views:
"""
NUMBERS = maybe(st.sampled_from([math.nan, 0.0, -0.0, math.inf, 1.5]))
HERE = row(id=ids, x=NUMBERS, n=st.just(None))
THERE = row(no=ids, x=NUMBERS, n=st.just(None))
SHOWN = "select: {id: here.id, no: there.no}"
BOTH = f"  both: {{kind: join, left: here, right: there, type: full, on: [x], {SHOWN}}}\n"


def are_equal(a: Row, b: Row) -> bool:
    """Equality as Spark and PostgreSQL have it: NaN is a value, null is none."""
    x, y = a["x"], b["x"]
    return None not in (x, y) and (x == y or (math.isnan(x) and math.isnan(y)))


def on_numbers(state: State) -> list[Row]:
    here, there = state["here"], state["there"]
    pairs = [{"id": a["id"], "no": b["no"]} for a in here for b in there if are_equal(a, b)]
    pairs += [{"id": a["id"], "no": None} for a in here if not any(are_equal(a, b) for b in there)]
    return pairs + [
        {"id": None, "no": b["no"]} for b in there if not any(are_equal(a, b) for a in here)
    ]


def test_nan_equals_itself_and_zero_has_no_sign(spark: "SparkSession") -> None:
    rows = {"here": HERE, "there": THERE}
    hold(Case("doubles", DECLARED + BOTH, "both", rows, lambda: on_numbers), spark)


def lake_on(folder: Path, spark: "SparkSession", on: str, how: str) -> Lake:
    view = f"both: {{kind: join, left: here, right: there, type: {how}, on: {on}, {SHOWN}}}"
    return Lake(folder, f"{DECLARED}  {view}\n", spark)


def shown(lake: Lake) -> list[tuple[int | None, int | None]]:
    lake.advance()
    assert wrong(lake) == {}
    return sorted(((r["id"], r["no"]) for r in lake.rows("both")), key=repr)


def test_rows_leave_both_sides_in_one_batch_and_an_emptied_input_is_filled_again(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = lake_on(tmp_path, spark, "[x]", "full")
    here = [{"id": i, "x": 1.5} for i in (1, 2)]
    there = [{"no": i, "x": 1.5} for i in (1, 2)]
    lake.put("here", *here)
    lake.put("there", *there)
    assert shown(lake) == [(1, 1), (1, 2), (2, 1), (2, 2)], "duplicates on both sides"
    lake.put("here", gone=here[:1])
    lake.put("there", gone=there[1:])
    assert shown(lake) == [(2, 1)]
    lake.put("here", gone=here)
    assert shown(lake) == [(None, 1)]
    lake.put("here", *here)
    lake.put("there", {"no": 1, "x": None}, {"no": 2, "x": 1.5})
    assert shown(lake) == [(1, 2), (2, 2), (None, 1)], "filled again, and one moved to null"


def test_numbers_of_different_types_are_equal_by_value(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = lake_on(tmp_path, spark, "[n]", "inner")
    lake.put("here", {"id": 1, "n": 2}, {"id": 2, "n": Decimal("2.5")})
    lake.put("there", {"no": 1, "n": 2}, {"no": 2, "n": 10**15})
    assert counted(shown(lake)) == counted([(1, 1)])
