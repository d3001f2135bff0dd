"""TPC-H's queries as views, under refresh functions and moving keys, against Spark's answers."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.kinds.join.tpch import SOURCES, Tpch
from tests.kinds.sql.shop import advance_by_spark, asked_last, not_as_in_duckdb, view, wrong
from tests.kinds.sql.tpch import QUERIES
from tests.support.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("real_spark")


def test_tpchs_queries_are_kept(spark: "SparkSession", tmp_path: Path) -> None:
    """Until the last turn, Spark is asked only what DuckDB answers otherwise; then more."""
    views = "".join(view(name, sql) for name, sql in QUERIES.items())
    lake = Lake(tmp_path, f"{SOURCES}views:\n{views}", spark)
    data, seen = Tpch(lake, customers=30), set[str]()
    data.fill(60)
    for turn in range(3):
        if turn == 1:
            advance_by_spark(lake)
        else:
            lake.here().advance()
        choose = not_as_in_duckdb if turn < 2 else asked_last
        assert wrong(lake, spark, choose(lake, QUERIES)) == {}, turn
        seen |= {name for name in QUERIES.keys() - seen if lake.rows(name)}
        data.insert_orders(5)
        data.delete_orders(4)
        data.move_customers(2)
        data.move_suppliers(2)
        data.reassign_orders(3)
    assert seen == {*QUERIES}
