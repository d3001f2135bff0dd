"""Airflow's own folder for these tests, set before anything imports Airflow."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from airflow_client import AirflowClient
from stack import ROOT, Ports, Stack

from .live import CORNER, DAYS, NEWS, SALES, sell, webhook

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


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of its own: retail, a small shop, and a pipeline that follows the shop."""
    folder = tmp_path_factory.mktemp("live")
    for name in ("config", "dags", "jobs"):
        shutil.copytree(ROOT / name, folder / name)
    for name, text in {"corner": CORNER, "news": NEWS}.items():
        (folder / f"config/pipelines/{name}.yaml").write_text(text, "utf-8")
    for day in DAYS:
        sell(folder / "landing", day, SALES[day])
    return folder


@pytest.fixture(scope="package")
def alerts() -> Iterator[list[dict[str, Any]]]:
    """What a chat service was told; its address is in the environment of the stack."""
    heard: list[dict[str, Any]] = []
    with webhook(heard) as address:
        os.environ["SLUICE_WEBHOOK"] = address
        yield heard
        del os.environ["SLUICE_WEBHOOK"]


@pytest.fixture(scope="package")
def stack(folder: Path, alerts: list[dict[str, Any]]) -> Iterator[Stack]:
    """One Airflow with a Spark Connect server for all tests of this folder."""
    places = {"SLUICE_LAKE": folder / "lake", "SLUICE_LANDING": folder / "landing"}
    variables = {name: str(place) for name, place in places.items()}
    stack = Stack(folder / "airflow", "connect", Ports.free(), root=folder, variables=variables)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.fixture(scope="package")
def client(stack: Stack) -> AirflowClient:
    """Its REST API."""
    return stack.airflow.client()
