"""Views that are computed in the process, as far as their rows are few."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from tests.kinds.ways import SCANNED
from tests.support.in_duckdb import wrong
from tests.support.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = """
sources:
  sales:
    path: "s/{interval_start:%Y}/"
    key: [id]
    schema: "id INT, item INT, price INT, at TIMESTAMP"
dimensions:
  items: {path: i/, schema: "item INT, name STRING", key: [item]}
views:
"""
BEST = """
  best: {kind: topk, from: sales, partition_by: [item], order_by: [price desc], limit: 2}
"""
OTHERS = """
  totals:
    kind: cogroup
    key: [item]
    streams: {s: {from: sales, aggregates: {paid: sum(price), ids: collect_list(id ORDER BY id)}}}
  named:
    kind: lookup
    from: sales
    join: [{dimension: items, on: item = items.item}]
    select: {name: items.name}
    refresh: true
  stored: {kind: window_store, from: sales, key: [item], time: at, duplicates: true}
  pairs:
    kind: join
    left: {table: sales, as: s}
    right: {table: totals, as: t}
    on: s.item = t.item
    select: {price: s.price, paid: t.paid}
  dear: {kind: select, from: sales, where: price >= 0, select: {id: id, price: price}}
  both: {kind: union, from: [{table: sales}, {table: sales, as: more}]}
  steps:
    kind: over
    from: sales
    partition_by: [item]
    order_by: [at, id]
    select: {id: id, change: price - lag(price) OVER w}
"""
RANKED = SOURCES + BEST
DECLARED = RANKED + OTHERS
VIEWS = ("totals", "best", "named", "stored", "pairs", "dear")
ROWS, ITEMS, MOST = 900, 300, 100


def sale(number: int, price: int) -> dict[str, Any]:
    at = datetime(2024, 1, number % 28 + 1, tzinfo=UTC)
    return {"id": number, "item": number % ITEMS, "price": price, "at": at}


@pytest.fixture
def collected(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts of rows that came to this process, each time that any came."""
    counts: list[int] = []
    rows = type(spark.range(0))

    def counting(bring: Callable[..., Any]) -> Callable[..., Any]:
        def brought(self: Any) -> Any:
            found = bring(self)
            counts.append(len(found))
            return found

        return brought

    for name in ("collect", "toArrow", "toPandas"):
        monkeypatch.setattr(rows, name, counting(getattr(rows, name)))
    return counts


def hold(lake: Lake, collected: list[int]) -> None:
    """Every batch of that lake leaves its rows in Spark, and its views are those of DuckDB."""
    lake.limit(**{**SCANNED, "computed_here_bytes": -1})
    lake.put("items", *({"item": i, "name": f"n{i}"} for i in range(ITEMS)))
    for price in (1, 2):
        lake.put("sales", *(sale(i, price) for i in range(ROWS)))
        for report in lake.advance():
            assert report.inserted + report.updated >= ITEMS or price == 2, report
            most = max(collected, default=0)
            assert most <= MOST, f"{report.table}: {most} rows came to the driver"
            collected.clear()
    assert wrong(lake, *(table for table in VIEWS if table in lake.stored_names())) == {}
