"""The demo's lines, sent through a topic as Debezium would, end in the tables that files end in."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.sources.kafka.conftest import CONNECTION
from tests.support.kafka import Broker
from tests.support.lake import Row, counted, frozen
from tests.support.landed import RUN, Landed, day, folder_of, lines

import shopping
from sluice.operate.run import run
from sluice.sources.stream import ingest_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHAPE = """\
    schema: >-
      household_id BIGINT, basket_id BIGINT, product_id BIGINT, quantity BIGINT,
      sales_value DECIMAL(12,2), transaction_timestamp TIMESTAMP
    key: [basket_id, product_id]
    expect:
      - {type: expect_column_values_to_not_be_null, column: household_id, on_failure: quarantine}
views:
  product_sales:
    kind: cogroup
    key: [product_id]
    streams: {sales: {from: lines, aggregates: {sales: sum(sales_value), baskets: count(*)}}}
  top_products: {kind: topk, from: product_sales, order_by: [sales desc], limit: 10}
"""
FILES = "sources:\n  lines:\n    path: 'landing/{interval_start:%Y-%m-%d}/'\n    format: json\n"
TOPIC = (
    "sources:\n  lines:\n    kafka: {topic: shop.public.lines, connection: shop_kafka}\n"
    "    value: {format: debezium-json}\n"
)
TABLES = ("lines", "product_sales", "top_products")
Change = tuple[Row, Row]


def sold() -> list[Row]:
    columns = ["household_id", "basket_id", "product_id", "quantity", "sales_value"]
    some = shopping.transactions(date(2017, 5, 8)).slice(0, 400)
    named = some.select([*columns, "transaction_timestamp"])
    return named.set_column(4, "sales_value", named["sales_value"].cast(pa.string())).to_pylist()


def change(op: str, before: Row | None, after: Row | None) -> Change:
    row: dict[str, Any] = after or before or {}
    key = {name: row[name] for name in ("basket_id", "product_id")}
    return key, {"op": op, "before": before, "after": after}


def everything(lake: Landed) -> dict[str, object]:
    return {name: counted(frozen(row) for row in lake.rows(name)) for name in TABLES}


def test_lines_of_a_topic_end_in_the_same_tables_as_files(
    broker: Broker, tmp_path: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONNECTION, broker.connection)
    first = sold()
    landed, topical = (
        Landed(tmp_path / name, text + SHAPE, spark)
        for name, text in (("files", FILES), ("topic", TOPIC))
    )
    broker.topic("shop.public.lines", 2)
    landed.land(folder_of(0), a_json=lines(first))
    send(broker, [change("r", None, row) for row in first])
    settled(landed, topical)
    dropped, dearer = first[5:9], [{**row, "sales_value": "99.90"} for row in first[20:25]]
    landed.land(folder_of(0), a_json=lines([*first[:5], *first[9:20], *dearer, *first[25:]]))
    changed = [change("d", row, None) for row in dropped]
    changed += [change("u", old, new) for old, new in zip(first[20:25], dearer, strict=True)]
    send(broker, changed)
    settled(landed, topical)


def settled(landed: Landed, topical: Landed) -> None:
    """Run both pipelines, the second twice, and compare every table row by row."""
    run(landed.spark, landed.project, landed.project.pipelines["shop"], [day(0)])
    for _ in range(2):
        run(topical.spark, topical.project, topical.project.pipelines["shop"], [])
    assert everything(topical) == everything(landed)
    (report, _) = ingest_stream(topical.spark, topical.project, topical.table("lines"), RUN)
    assert report.outcome == "unchanged"


def send(broker: Broker, changes: list[Change]) -> None:
    message: Callable[[Row], bytes] = lambda row: lines([row]).encode()  # noqa: E731
    for partition in range(2):
        own = [c for c in changes if c[0]["basket_id"] % 2 == partition]
        sent = ((message(key), message(value)) for key, value in own)
        broker.send("shop.public.lines", sent, partition)
