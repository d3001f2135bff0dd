"""Queries that can't be kept are computed whole if the view permits it, and `plan` says so."""

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.kinds.sql.shop import SOURCES, change, wrong
from tests.support.lake import HEAD, Lake, counted

from sluice.declare.project import load
from sluice.kinds.sql.operator import WholeQuery
from sluice.operate.explain import explain
from sluice.operate.why import why
from sluice.operate.why_not import why_not
from sluice.read.lake import Lake as Reads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("real_spark")

LESS = "SELECT o.id, p.pid FROM orders o JOIN people p ON o.v < p.n"
SPLIT = "SELECT g, e FROM orders LATERAL VIEW explode(split(g, '')) x AS e"
KEPT = "SELECT id FROM orders WHERE v > 0"
VIEWS = f"""
  less: {{kind: sql, incremental: preferred, sql: "{LESS}"}}
  parts: {{kind: sql, incremental: preferred, sql: "{SPLIT}"}}
  counted: {{kind: sql, sql: "SELECT id, count(*) AS n FROM less GROUP BY id"}}
  kept: {{kind: sql, incremental: preferred, sql: "{KEPT}"}}
"""


def test_preferred_queries_are_computed_whole_only_where_they_must_be(
    spark: "SparkSession", tmp_path: Path
) -> None:
    lake, chance = Lake(tmp_path, SOURCES + VIEWS, spark), random.Random(5)
    for source in ("orders", "people", "events"):
        lake.put(source)
    for _ in range(3):
        lake.advance()
        assert wrong(lake, spark, {"less": LESS, "parts": SPLIT, "kept": KEPT}) == {}
        spark.createDataFrame(
            [(r["id"],) for r in lake.rows("less")] or [], "id INT"
        ).createOrReplaceTempView("less")
        of_less = spark.sql("SELECT id, count(*) AS n FROM less GROUP BY id").collect()
        assert counted(lake.rows("counted")) == counted(row.asDict() for row in of_less)
        change(lake, chance)
    lake.put("orders", {"id": 20, "v": 1})
    (step,) = explain(lake.project, lake.table("less"))
    assert step.next == "recompute"
    assert step.reason.startswith("the whole query, because of line 1: a join without an equality")
    reader = Reads(lake.project)
    absent = why_not(reader, "counted", 99)
    assert absent is not None
    (reason,) = absent.reasons
    assert (reason.table, reason.why) == ("shop.less", "not explained")
    assert reason.what.startswith(
        "every batch computes its whole query, because of line 1: a join without"
    )
    row = lake.rows("counted")[0]
    made = why(reader, "counted", row["id"])
    assert made is not None
    sources = {source.table: source for source in made.sources}
    assert sources["shop.less"].rows.num_rows == row["n"]
    assert sources["shop.less"].untraced.startswith(
        "every batch computes its whole query, because of"
    )
    assert "shop.orders" not in sources
    (step,) = explain(lake.project, lake.table("kept"))
    assert step.next == "row-wise"


def test_tables_of_one_name_in_two_pipelines_are_two_tables(
    spark: "SparkSession", tmp_path: Path
) -> None:
    folder = tmp_path / "config" / "pipelines"
    folder.mkdir(parents=True)
    sources = (
        "sources:\n"
        '  orders: {path: "NAME/{interval_start:%Y-%m-%d}/", key: [id], schema: "id INT, v INT"}\n'
    )
    query = (
        "WITH eu__orders AS (SELECT id FROM us.orders WHERE v > 2) "
        "SELECT a.id AS a, b.id AS b FROM orders a JOIN us.orders b ON a.v < b.v "
        "WHERE a.id NOT IN (SELECT id FROM eu__orders) AND '{}' <> ''"
    )
    view = (
        f"views:\n  less:\n    kind: sql\n    incremental: preferred\n    sql: |\n      {query}\n"
    )
    for name, views in (("eu", view), ("us", "")):
        head = HEAD.replace("shop", name)
        (folder / f"{name}.yaml").write_text(head + sources.replace("NAME", name) + views)
    less = WholeQuery(load(tmp_path / "config").graph.table("eu.less"))
    rows = {"eu.orders": [(1, 1), (2, 2), (100, 1)], "us.orders": [(100, 3), (200, 2)]}
    stored = {name: spark.createDataFrame(of, "id INT, v INT") for name, of in rows.items()}
    found = {(row.a, row.b) for row in less.combine(stored, {}).collect()}
    assert found == {(1, 100), (1, 200), (2, 100)}
