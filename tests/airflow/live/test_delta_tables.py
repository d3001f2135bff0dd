"""A Delta table of others in a real Airflow: runs follow it."""

import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.support.java import LEAN

from airflow_local import AIRFLOW
from sluice.read.lake import Lake
from stack import ROOT, Ports, Stack

CRM = """
pipeline: crm
schedule: "@daily"
start_date: 2024-03-01
airflow: {retries: 0}
sources:
  orders:
    delta: {path: theirs/orders}
    schema: id BIGINT, paid BIGINT
    key: [id]
dimensions:
  names: {path: theirs/names, format: delta, schema: "id BIGINT, name STRING", key: [id]}
views:
  best: {kind: topk, from: orders, order_by: [paid desc], limit: 2}
"""
pytestmark = pytest.mark.slow


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    shutil.copytree(ROOT / "dags", tmp_path / "dags")
    pipelines = tmp_path / "config" / "pipelines"
    pipelines.mkdir(parents=True)
    (pipelines.parent / "sluice.yaml").write_text("lake: lake\n", "utf-8")
    (pipelines / "crm.yaml").write_text(CRM, "utf-8")
    stack = Stack(tmp_path / "airflow", "submit", Ports.free(), root=tmp_path, variables=LEAN)
    stack.airflow.prepare()
    return stack


def run(stack: Stack, day: str) -> str:
    environ = {**stack.airflow.environ(), "SPARK_REMOTE": ""}
    command = [*AIRFLOW, "dags", "test", "crm", day]
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def test_a_dag_follows_a_table_of_others(stack: Stack) -> None:
    theirs = str(stack.root / "theirs/orders")
    write_deltalake(theirs, pa.table({"id": [1, 2, 3], "paid": [1, 2, 3]}))
    write_deltalake(str(stack.root / "theirs/names"), pa.table({"id": [1], "name": ["ann"]}))
    run(stack, "2024-03-01")
    lake = Lake(stack.project)
    assert {row["id"] for row in lake.table("best").read()} == {2, 3}
    DeltaTable(theirs).delete("id = 3")
    write_deltalake(theirs, pa.table({"id": [4], "paid": [9]}), mode="append")
    run(stack, "2024-03-02")
    assert {row["id"] for row in lake.table("best").read()} == {2, 4}
    assert lake.table("names").get(1)["name"] == "ann"  # type: ignore[index]
