"""A lake for tests of the report: tables written without Spark, with positions as commits have."""

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from sluice.declare.project import Project, load
from sluice.delta.log.position import Position
from sluice.delta.places.lake_layout import layout

SHOP = """\
pipeline: shop
schedule: "@daily"
start_date: 2017-03-01
sources:
  sales:
    path: "landing/{interval_start:%%Y-%%m-%%d}/"
    schema: id INT, item STRING, price DECIMAL(12,2), weight DOUBLE, at TIMESTAMP
    key: [id]
    expect: [%s]
views:
  totals:
    kind: cogroup
    key: [item]
    streams: {sales: {from: sales, aggregates: {total: sum(price)}}}
    expect: [%s]
"""
SALES = pa.schema(
    [
        ("id", pa.int32()),
        ("item", pa.string()),
        ("price", pa.decimal128(12, 2)),
        ("weight", pa.float64()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)


def declare(folder: Path, sales: str = "", totals: str = "") -> Project:
    """The shop with these expectations."""
    path = folder / "config" / "pipelines" / "shop.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SHOP % (sales, totals), encoding="utf-8")
    return load(folder / "config")


def put(
    project: Project, name: str, rows: pa.Table, *, frontier: Mapping[str, int] | None = None
) -> str:
    """One more commit of these rows; the table's URI."""
    uri = layout(project).uri(f"shop.{name}")
    position = Position(1, uuid.uuid4().hex, "batch", frontier=frontier or {})
    metadata = CommitProperties(custom_metadata={"userMetadata": position.to_json()})
    write_deltalake(uri, rows, mode="append", commit_properties=metadata)
    return uri


def sales(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SALES)
