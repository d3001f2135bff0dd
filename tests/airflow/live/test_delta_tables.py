"""Another writer's Delta table in a real Airflow: runs follow it."""

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from airflow_client import AirflowClient
from sluice.read.lake import Lake

from .corner import await_all, await_run


def best(lake: Lake) -> set[int]:
    return {row["id"] for row in lake.table("crm.best").read()}


def test_a_dag_follows_a_table_of_others(client: AirflowClient, folder: Path, lake: Lake) -> None:
    theirs = folder / "theirs/orders"
    write_deltalake(theirs, pa.table({"id": [1, 2, 3], "paid": [1, 2, 3]}))
    write_deltalake(folder / "theirs/names", pa.table({"id": [1], "name": ["ann"]}))
    client.await_dag("crm")
    client.unpause("crm")
    await_all(client, "crm", 1)
    assert [run.state for run in client.runs("crm", "scheduled")] == ["success"]
    assert best(lake) == {2, 3}
    DeltaTable(theirs).delete("id = 3")
    write_deltalake(theirs, pa.table({"id": [4], "paid": [9]}), mode="append")
    assert await_run(client, "crm", client.trigger("crm")) == "success"
    assert best(lake) == {2, 4}
    assert lake.table("crm.names").get(1)["name"] == "ann"  # type: ignore[index]
