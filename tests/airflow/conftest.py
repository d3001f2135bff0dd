"""Airflow's own folder for these tests, set before anything imports Airflow."""

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

HOME = TemporaryDirectory(prefix="sluice-airflow-")
os.environ["AIRFLOW_HOME"] = HOME.name
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
os.environ["AIRFLOW__USAGE_DATA_COLLECTION__ENABLED"] = "False"

SHOP = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
end_date: 2024-02-01
sources:
  sales:
    path: "${SLUICE_SHOPS:-sales}/{interval_start:%Y-%m-%d}/"
    format: json
    schema: id INT, item INT, paid INT
    key: [id]
dimensions:
  items: {path: items/, format: json, schema: "item INT, maker INT", key: [item]}
  makers: {path: makers/, format: json, schema: "maker INT, name STRING", key: [maker]}
  catalogue:
    join: [{dimension: items}, {dimension: makers, on: items.maker = makers.maker}]
    select: {item: items.item, name: makers.name}
views:
  lines:
    kind: lookup
    from: sales
    join: [{dimension: catalogue, on: item = catalogue.item, type: left}]
    select: {id: id, name: catalogue.name, paid: paid}
  sums: {kind: cogroup, key: [name], streams: {sales: {from: lines, aggregates: {paid: sum(paid)}}}}
  best: {kind: topk, from: sums, order_by: [paid desc], limit: 3}
"""
SHOPS_NEWS = """
pipeline: news
schedule: assets
views:
  worst: {kind: topk, from: shop.sums, order_by: [paid], limit: 3}
"""

Configured = Callable[..., Path]


@pytest.fixture
def configured(tmp_path: Path) -> Configured:
    """Writes a project's configuration; its folder."""

    def write(settings: str = "", **pipelines: str) -> Path:
        folder = tmp_path / "config"
        (folder / "pipelines").mkdir(parents=True, exist_ok=True)
        (folder / "sluice.yaml").write_text(settings, "utf-8")
        for name, text in (pipelines or {"shop": SHOP, "news": SHOPS_NEWS}).items():
            (folder / "pipelines" / f"{name}.yaml").write_text(text, "utf-8")
        return folder

    return write
