"""Another writer's Delta table in a real Airflow: its owner announces news, and a run follows."""

import pyarrow as pa
from deltalake import write_deltalake

from airflow_client import AirflowClient
from sluice.read.lake import Lake
from stack import Stack

from .corner import await_all


def test_announced_news_runs_a_pipeline(client: AirflowClient, stack: Stack, lake: Lake) -> None:
    write_deltalake(stack.root / "theirs/calls", pa.table({"id": [1, 2]}))
    client.await_dag("heard")
    client.unpause("heard")
    address = f"file://{stack.root}/theirs/calls"
    known = client.http.get("/api/v2/assets", params={"uri_pattern": address}).json()["assets"]
    (asset,) = [each["id"] for each in known if each["uri"] == address]
    told = client.http.post("/api/v2/assets/events", json={"asset_id": asset})
    assert told.is_success, told.text
    await_all(client, "heard", 1)
    assert [run.state for run in client.runs("heard", "asset_triggered")] == ["success"]
    assert {row["id"] for row in lake.table("heard.calls").read()} == {1, 2}
