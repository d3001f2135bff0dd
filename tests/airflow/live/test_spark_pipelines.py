"""A spark-pipelines project in a real Airflow: its DAG, a scheduled run, and a backfill."""

import json
from pathlib import Path

from airflow_client import AirflowClient
from sluice.language.interval import parse_time
from sluice.read.lake import Lake

from .corner import await_all, await_run


def sell(folder: Path, name: str, *sales: tuple[int, str, int]) -> None:
    rows = [dict(zip(("id", "who", "paid"), sale, strict=True)) for sale in sales]
    place = folder / "landing/sold" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def paid(lake: Lake, table: str) -> dict[str, int]:
    return {row["who"]: row["paid"] for row in lake.table(f"etl.{table}").read()}


def test_a_dag_of_a_spec_runs_by_schedule_and_a_backfill_brings_what_is_new(
    client: AirflowClient, folder: Path, lake: Lake
) -> None:
    sell(folder, "1.json", (1, "ann", 3), (2, "bob", 5), (3, "cyd", -1))
    client.await_dag("etl")
    client.unpause("etl")
    await_all(client, "etl", 1)
    assert [run.state for run in client.runs("etl", "scheduled")] == ["success"]
    assert paid(lake, "payers") == {"ann": 3, "bob": 5}
    assert paid(lake, "best") == {"bob": 5}
    sell(folder, "2.json", (4, "ann", 4))
    (run,) = client.runs("etl", "scheduled")
    day = parse_time("2024-03-01")
    number = client.backfill("etl", day, day, runs=1, reprocess="completed")
    assert await_run(client, "etl", run.id) == "success"
    client.finish(number)
    assert paid(lake, "best") == {"ann": 7}
