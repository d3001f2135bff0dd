"""Cogroups of which only some rows are shown, against brute force."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from tests.support.contract import Case, hold
from tests.support.lake import Row, State
from tests.support.oracle import column, grouped, total
from tests.support.rows import groups, ids, numbers, row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARED = """
sources:
  sales:
    path: "sales/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, v INT"
views:
  busy:
    kind: cogroup
    key: [g]
    streams: {s: {from: sales, aggregates: {n: count(*), v: sum(v), most: max(v)}}}
    having: n > 1 and v < 5
    select: {v: v, most: most}
"""
SALES = row(id=ids, g=groups, v=numbers)


def busy(state: State) -> list[Row]:
    found = []
    for (g,), rows in grouped(state["sales"], column("g")).items():
        v = total(rows, "v")
        if len(rows) > 1 and v is not None and v < 5:
            most = max(r["v"] for r in rows if r["v"] is not None)
            found.append({"g": g, "v": v, "most": most})
    return found


def test_the_rows_equal_the_query_after_any_batches(spark: "SparkSession") -> None:
    hold(Case("busy", DECLARED, "busy", {"sales": SALES}, lambda: busy), spark)


@pytest.mark.parametrize(
    ("having", "told"),
    [
        ("total", "'total' is DECIMAL(22, 2); a condition is true or false"),
        ("totl > 1", "unknown column 'totl'"),
        ("price > 1", "unknown column 'price'"),
    ],
)
def test_having_is_a_condition_over_the_cogroups_own_columns(
    mistakes: Callable[..., list[str]], having: str, told: str
) -> None:
    sold = "{s: {from: sales, aggregates: {total: sum(price)}}}"
    (found,) = mistakes(f"v: {{kind: cogroup, key: [item], having: {having}, streams: {sold}}}")
    assert found.startswith(f"11: views.v.having: {told}")
