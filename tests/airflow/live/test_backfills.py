"""The retail pipeline in a real Airflow: its scheduler, its API, a Spark Connect server.

The tests follow each other: each goes on from the lake that the one before it left.
"""

import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from airflow_client import DONE, AirflowClient, Reprocess, RunOfTask
from sluice.language.interval import parse_time
from sluice.read.lake import Lake
from stack import Stack

from .deliveries import APPLES, FIRST, HAM, SALAD, SECOND, deliver, deliver_lines, deliver_members

RETAIL = "retail"


@pytest.fixture(scope="module", autouse=True)
def delivered(folder: Path, client: AirflowClient) -> None:
    deliver(folder / "landing")
    client.await_dag(RETAIL)
    client.unpause(RETAIL)


def backfill(
    client: AirflowClient, days: Sequence[str], reprocess: Reprocess = "none"
) -> dict[str, list[RunOfTask]]:
    """The tasks of a backfill when it has ended, by their state."""
    first, last = parse_time(days[0]), parse_time(days[-1])
    number = client.backfill(RETAIL, first, last, runs=len(days), reprocess=reprocess)
    await_runs(client, days)
    client.finish(number)
    return by_state(task for task in client.tasks(RETAIL) if task.day in days)


def await_runs(client: AirflowClient, days: Sequence[str], patience: float = 600) -> None:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        runs = [run for run in client.runs(RETAIL) if run.start in days]
        if len(runs) >= len(days) and all(run.state in DONE for run in runs):
            return
        retried = [task for task in client.tasks(RETAIL) if task.state == "up_for_retry"]
        assert not retried, "\n".join(client.log(RETAIL, retried[0]))
        time.sleep(0.5)
    raise TimeoutError(f"runs of {days} did not end within {patience} s")


def by_state(tasks: Any) -> dict[str, list[RunOfTask]]:
    found: dict[str, list[RunOfTask]] = {}
    for task in tasks:
        found.setdefault(task.state, []).append(task)
    return found


def told(client: AirflowClient, tasks: dict[str, list[RunOfTask]]) -> str:
    """The log of the first task that failed, for a test's message."""
    failed = tasks.get("failed")
    return "\n".join(client.log(RETAIL, failed[0])[-40:]) if failed else ""


def leaders(lake: Lake, department: str) -> list[tuple[int, Decimal]]:
    rows = lake.table("top_products").read(where=f"department = '{department}'")
    ranked = sorted(rows, key=lambda row: int(row["rank"]))
    return [(row["product_id"], row["sales"]) for row in ranked]


def test_a_backfill_fills_every_table(client: AirflowClient, stack: Stack) -> None:
    tasks = backfill(client, [FIRST, SECOND])
    assert "failed" not in tasks, told(client, tasks)
    lake = Lake(stack.project)
    assert leaders(lake, "DELI") == [(SALAD, Decimal("5.00")), (HAM, Decimal("4.00"))]
    assert leaders(lake, "PRODUCE") == [(APPLES, Decimal("4.00"))]
    household = lake.table("households").get(7)
    assert household is not None
    assert (household["spent"], household["baskets"]) == (Decimal("10.00"), 2)
    assert household["campaigns"] == [8]
    baskets = lake.window("baskets").fetch(key=7, reverse=True)
    assert [basket["basket_id"] for basket in baskets] == [3, 1]


def test_changed_tables_have_an_event_with_a_version(client: AirflowClient, lake: Lake) -> None:
    events = [event for event in client.asset_events() if event["name"].startswith("retail.")]
    newest = {event["name"]: event["extra"] for event in events}
    tables = {t.id for t in lake.project.graph.pipeline(RETAIL)}
    without_rows = {
        "retail.coupon_redemptions",
        "retail.redeemed_baskets",
        "retail.busy_departments",
    }
    assert all(lake.table(name.split(".")[1]).count == 0 for name in without_rows)
    assert set(newest) == tables - without_rows
    extra = newest["retail.top_products"]
    assert extra["version"] == lake.table("top_products").version
    assert {"rows_in", "rows_out", "inserted", "quarantined", "refills"} <= extra.keys()


def test_a_view_uses_at_least_the_dimensions_that_its_run_loaded(client: AirflowClient) -> None:
    loads = [task for task in client.tasks(RETAIL) if task.task == "load.products"]
    (run,) = (task.run for task in loads if task.state == "success")
    (loaded,) = client.xcom(RETAIL, run, "load.products")
    log = client.log(RETAIL, task_of(client, run, "advance.invoices"))
    assert any(f"--pin retail.products={loaded['version']}" in line for line in log)


def task_of(client: AirflowClient, run: str, name: str) -> RunOfTask:
    (task,) = (task for task in client.tasks(RETAIL, run) if task.task == name)
    return task


def test_a_repeated_backfill_skips_everything_and_records_nothing(client: AirflowClient) -> None:
    events = client.asset_events()
    tasks = backfill(client, [FIRST, SECOND], "completed")
    assert set(tasks) == {"skipped"}, told(client, tasks)
    assert client.asset_events() == events
    log = client.log(RETAIL, tasks["skipped"][0])
    assert any("its files are the same" in line or "reflects all" in line for line in log)


def test_corrected_days_flow_down_alone(client: AirflowClient, folder: Path, stack: Stack) -> None:
    deliver_lines(folder / "landing", FIRST, [(7, 1, HAM, "40.00"), (8, 2, SALAD, "3.00")])
    tasks = backfill(client, [FIRST], "completed")
    assert "failed" not in tasks, told(client, tasks)
    skipped = {task.task for task in tasks["skipped"]}
    assert {"ingest.campaign_memberships", "ingest.coupon_redemptions", "load.products"} <= skipped
    lake = Lake(stack.project)
    assert leaders(lake, "DELI") == [(HAM, Decimal("40.00")), (SALAD, Decimal("5.00"))]
    assert leaders(lake, "PRODUCE") == [(APPLES, Decimal("2.50"))]


def test_a_manual_run_without_an_interval_ingests_nothing(client: AirflowClient) -> None:
    run = client.trigger(RETAIL)
    deadline = time.monotonic() + 120
    while not all(found.state in DONE for found in client.runs(RETAIL) if found.id == run):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert {task.state for task in client.tasks(RETAIL, run)} == {"skipped"}
    log = client.log(RETAIL, task_of(client, run, "ingest.transactions"))
    assert any("no data interval" in line for line in log)


def test_a_stop_of_quality_fails_at_once_with_its_reason_and_keeps_the_views(
    client: AirflowClient, folder: Path, lake: Lake
) -> None:
    before = lake.table("households").version
    deliver_members(folder / "landing", SECOND, "Type X")
    tasks = backfill(client, [SECOND], "completed")
    failed = {task.task: task for task in tasks["failed"]}
    assert set(failed) == {"ingest.campaign_memberships", "quality"}
    assert "campaign_type" in "\n".join(client.log(RETAIL, failed["ingest.campaign_memberships"]))
    assert {task.task for task in tasks["upstream_failed"]} == {
        "advance.campaign_events",
        "advance.households",
    }
    assert Lake(lake.project).table("households").version == before
