"""Days in any order, by a real Airflow: whatever ran, the tables end as after one clean run.

The tests follow each other: each goes on from the lake that the one before it left.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_client import AirflowClient, AirflowRefused
from sluice.language.interval import parse_time
from sluice.read.lake import Lake
from stack import Stack

from .corner import (
    DAYS,
    SALES,
    await_all,
    await_run,
    backfill,
    clean_run,
    contents,
    log_of,
    sell,
    states,
)

CORNER = "corner"
VIEWS = ("advance.items", "advance.best")
Alerts = list[dict[str, Any]]


@pytest.fixture(scope="module", autouse=True)
def caught_up(client: AirflowClient, folder: Path) -> None:
    """A DAG that was paused since its start is let go, and backfilled at the same time."""
    for dag in (CORNER, "news"):
        client.await_dag(dag)
    client.unpause("news")
    client.unpause(CORNER)
    number = backfill(client, CORNER, DAYS[1:3], backwards=True)
    await_all(client, CORNER, len(DAYS))
    client.finish(number)


def run_for(client: AirflowClient, end: str) -> str:
    """A manual run for the day that ends then, when it has ended."""
    run = client.trigger(CORNER, parse_time(f"{end}T00:00:00.5"))
    await_run(client, CORNER, run)
    return run


def repeat(client: AirflowClient, *days: str, backwards: bool = False) -> None:
    """Backfills days that ran, and waits for them."""
    number = backfill(client, CORNER, days, backwards=backwards)
    await_all(client, CORNER, len(DAYS))
    client.finish(number)


def eventually(holds: Callable[[], bool], seconds: float = 300) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.5)
    return holds()


def test_a_paused_dag_catches_up_and_ends_as_one_clean_run(
    client: AirflowClient, stack: Stack, lake: Lake, tmp_path: Path
) -> None:
    assert {run.start for run in client.runs(CORNER)} == set(DAYS)
    assert {run.state for run in client.runs(CORNER)} == {"success"}
    assert contents(lake) == contents(clean_run(stack, tmp_path))


def test_corrections_backfilled_in_any_order_and_repeated_end_as_one_clean_run(
    client: AirflowClient, folder: Path, stack: Stack, tmp_path: Path
) -> None:
    before = contents(Lake(stack.project))
    for nth, day in enumerate(DAYS[:3]):
        sell(folder / "landing", day, [*SALES[day][:1], (10 + nth, "jam", 7, nth)])
    repeat(client, *DAYS[2:])
    repeat(client, *DAYS[:3], backwards=True)
    repeat(client, DAYS[1])
    after = contents(Lake(stack.project))
    assert after == contents(clean_run(stack, tmp_path))
    assert all(after[table] != before[table] for table in after)


def test_cleared_tasks_let_the_rest_go_on(client: AirflowClient, lake: Lake) -> None:
    before, run = contents(lake), run_for(client, DAYS[1])
    client.clear(CORNER, run, "ingest.sales")
    assert await_run(client, CORNER, run) == "success"
    assert set(states(client, CORNER, run).values()) == {"skipped"}
    assert contents(lake) == before


def test_a_failure_reports_what_why_and_what_next_and_is_resumed_when_it_was_mended(
    client: AirflowClient, folder: Path, stack: Stack, lake: Lake, alerts: Alerts
) -> None:
    before = contents(lake)
    sell(folder / "landing", DAYS[2], [(1, "tea", 5000, 9)])
    run = run_for(client, DAYS[3])
    assert states(client, CORNER, run)["ingest.sales"] == "failed"
    (alert,) = (a for a in alerts if "corner.sales failed" in a["what"])
    assert "paid" in alert["why"]
    assert f"sluice run corner --start {DAYS[2]}" in alert["next"]
    assert alert["tables"] == ["corner.sales"]
    assert alert["text"] in log_of(client, CORNER, run, "ingest.sales")
    assert contents(Lake(stack.project)) == before
    sell(folder / "landing", DAYS[2], [*SALES[DAYS[2]], (9, "ham", 8, 1)])
    client.clear(CORNER, run, "ingest.sales")
    assert await_run(client, CORNER, run) == "success"
    assert lake.table("corner.sales").get(9)


def test_a_run_that_has_not_ended_by_its_deadline_is_reported(alerts: Alerts) -> None:
    assert eventually(lambda: any("corner is late" in alert["what"] for alert in alerts))
    late = next(alert for alert in alerts if "corner is late" in alert["what"])
    assert "scheduled__" in late["run"]
    assert "1 second" in late["what"]


def test_a_manual_run_with_a_logical_date_delivers_the_interval_that_ended_before_it(
    client: AirflowClient, folder: Path, lake: Lake
) -> None:
    sell(folder / "landing", DAYS[1], [(3, "tea", 6, 1)])
    assert set(states(client, CORNER, run_for(client, DAYS[2])).values()) == {"success"}
    assert lake.table("corner.sales").get(3)["paid"] == 6  # type: ignore[index]


def test_forms_choose_days_and_tables(client: AirflowClient, folder: Path, lake: Lake) -> None:
    sell(folder / "landing", DAYS[0], [(1, "tea", 1, 5)])
    sell(folder / "landing", DAYS[2], [(5, "jam", 55, 1)])
    span = {"start": f"{DAYS[0]}T00:00:00Z", "end": f"{DAYS[3]}T00:00:00Z"}
    run = client.trigger(CORNER, **span, only=["sales"])
    assert await_run(client, CORNER, run) == "success"
    assert states(client, CORNER, run)["ingest.sales"] == "success"
    assert {states(client, CORNER, run)[view] for view in VIEWS} == {"skipped"}
    assert lake.table("corner.sales").get(5)["paid"] == 55  # type: ignore[index]
    assert "corner.sales alone" in log_of(client, CORNER, run, "advance.items")


def test_full_refreshes_recompute(client: AirflowClient, stack: Stack, tmp_path: Path) -> None:
    run = client.trigger(CORNER, only=["items", "best"], full_refresh=True)
    assert await_run(client, CORNER, run) == "success"
    assert {states(client, CORNER, run)[view] for view in VIEWS} == {"success"}
    (report, *_) = client.xcom(CORNER, run, "advance.best")
    assert report["strategy"] == "build"
    assert contents(Lake(stack.project)) == contents(clean_run(stack, tmp_path))


@pytest.mark.parametrize(
    "answers",
    [
        {"start": "$(touch /tmp/x)", "end": "2024-03-02T00:00:00Z"},
        {"only": ["sales; rm -rf /"]},
        {"only": "sales"},
        {"full_refresh": "yes"},
    ],
)
def test_forms_refuse_unknown_fields(client: AirflowClient, answers: dict[str, Any]) -> None:
    with pytest.raises(AirflowRefused, match=r"400|422"):
        client.trigger(CORNER, **answers)


def test_half_a_time_span_fails_at_once(client: AirflowClient) -> None:
    run = client.trigger(CORNER, start="2024-03-01T00:00:00Z")
    assert await_run(client, CORNER, run) == "failed"
    assert "both start and end, or neither" in log_of(client, CORNER, run, "ingest.sales")


def test_pipelines_on_assets_follow_the_event(client: AirflowClient, stack: Stack) -> None:
    await_all(client, "news", 1)
    assert {run.state for run in client.runs("news", "asset_triggered")} == {"success"}
    lake = Lake(stack.project)
    least = min(lake.table("corner.items").read(), key=lambda row: row["paid"])
    assert [row["item"] for row in lake.table("news.worst").read()] == [least["item"]]
    events = [event for event in client.asset_events() if event["name"] == "corner.items"]
    assert events[-1]["extra"]["version"] <= lake.table("corner.items").version
    assert events[0]["extra"]["rows_out"] == events[0]["extra"]["inserted"] > 0
