"""Small lakes written without Spark: a configuration, and Delta tables with positions."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, WriterProperties, write_deltalake

from sluice.declare.project import Project, load
from sluice.delta.log.position import Pin, Position
from sluice.delta.places.lake_layout import layout
from sluice.read.keyed import KeyedTable
from sluice.read.snapshot import Snapshot

CONFIG = """
pipeline: shop
schedule: "@daily"
start_date: 2017-01-01
sources:
  events:
    path: "landing/events/"
    format: json
    schema: "user_id INT, what STRING, at TIMESTAMP"
    time: at
  sales:
    path: "landing/sales/"
    format: parquet
    schema: >-
      basket_id BIGINT, product_id INT, department STRING, amount DECIMAL(12,2), at TIMESTAMP
    time: at
    key: [basket_id, product_id]
dimensions:
  products:
    path: "landing/products/"
    schema: "product_id INT, name STRING, brand_id INT"
    key: [product_id]
  brands: {path: "landing/brands/", schema: "brand_id INT, brand STRING", key: [brand_id]}
  prices:
    path: "landing/prices/"
    schema: "product_id INT, price DECIMAL(9,2)"
    key: [product_id]
    history: true
  catalogue:
    join: [{dimension: products}, {dimension: brands, on: "products.brand_id = brands.brand_id"}]
    select:
      product_id: products.product_id
      name: upper(products.name)
      brand: coalesce(brands.brand, 'none')
views:
  totals:
    kind: cogroup
    key: [department, product_id]
    streams: {sales: {from: sales, aggregates: {total: "sum(amount)"}}}
  leaders:
    kind: topk
    from: totals
    partition_by: [department]
    order_by: ["total desc"]
    limit: 3
  unranked: {kind: topk, from: totals, partition_by: [department], order_by: ["total desc"],
    limit: 3, rank: false}
  tied: {kind: topk, from: totals, partition_by: [department], order_by: ["total desc"],
    limit: 3, function: rank}
  visits:
    kind: window_store
    from: events
    key: [user_id]
    time: at
    duplicates: true
    retention: 30 days
  latest: {kind: window_store, from: events, key: [user_id], time: at, backward_iteration: true}
"""


def day(number: int, hour: int = 0) -> datetime:
    """A time of January 2017."""
    return datetime(2017, 1, number, hour, tzinfo=UTC)


def project_at(folder: Path, config: str = CONFIG) -> Project:
    """The shop's project, its lake in that folder."""
    (folder / "config" / "pipelines").mkdir(parents=True, exist_ok=True)
    (folder / "config" / "sluice.yaml").write_text("lake: lake\n")
    (folder / "config" / "pipelines" / "shop.yaml").write_text(config)
    return load(folder / "config")


def position(
    batch: int = 1,
    inputs: Mapping[str, Pin] | None = None,
    *,
    run: str = "run-1",
    horizon: datetime | None = None,
    kind: str = "batch",
    unchanged_since: int | None = None,
) -> Position:
    """A position as a batch would write it."""
    return Position(
        batch=batch,
        attempt=f"attempt-{batch}",
        kind=kind,
        inputs=dict(inputs or {}),
        run=run,
        horizon=horizon,
        unchanged_since=unchanged_since,
    )


def write(
    uri: str | Path,
    rows: pa.Table,
    at: Position | None = None,
    *,
    mode: str = "append",
    partition_by: Sequence[str] = (),
    group_rows: int = 5_000,
) -> None:
    """One commit; the table is made if there is none."""
    metadata = {"userMetadata": at.to_json()} if at else None
    Path(uri).parent.mkdir(parents=True, exist_ok=True)
    write_deltalake(
        str(uri),
        rows,
        mode=mode,  # type: ignore[arg-type]
        partition_by=list(partition_by) or None,
        configuration={"delta.enableChangeDataFeed": "true"},
        writer_properties=WriterProperties(max_row_group_size=group_rows),
        commit_properties=CommitProperties(custom_metadata=metadata),
    )


def write_table(project: Project, name: str, rows: pa.Table, at: Position | None = None) -> str:
    """One commit to a table of the project."""
    base, _, suffix = name.partition("__")
    uri = layout(project).uri(project.graph.table(base).id, suffix)
    write(uri, rows, at)
    return uri


def pin(uri: str) -> Pin:
    """The table's head, as a consumer records it."""
    table = DeltaTable(uri)
    return Pin(str(table.metadata().id), table.version())


def keyed(uri: str | Path, *key: str) -> KeyedTable:
    """The table at its head, identified by these columns."""
    return KeyedTable(Snapshot.open("test", str(uri)), key)


def placed(values: Sequence[Any]) -> tuple[tuple[Any, ...], ...]:
    """A key as Python orders it: null first."""
    return tuple((0,) if value is None else (1, value) for value in values)
