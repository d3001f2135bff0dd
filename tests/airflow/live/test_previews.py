"""A preview by the trigger form of a real Airflow: what it shows, and that it changes nothing."""

from pathlib import Path
from typing import Any

import pytest

from airflow_client import AirflowClient
from sluice.read.lake import Lake
from stack import Stack

from .corner import DAYS, SALES, await_all, await_run, contents, log_of, sell, states

CORNER = "corner"
COUNTS = ("inserted", "updated", "deleted")


@pytest.fixture(scope="module", autouse=True)
def filled(client: AirflowClient) -> None:
    """Tables to change: every day was delivered."""
    client.await_dag(CORNER)
    client.unpause(CORNER)
    await_all(client, CORNER, len(DAYS))


def changes(reports: list[dict[str, Any]]) -> dict[str, tuple[int, ...]]:
    """What happened to each table, without the internal ones."""
    done = (r for r in reports if r["outcome"] == "committed" and "__" not in r["table"])
    return {r["table"]: tuple(r[name] for name in COUNTS) for r in done}


def triggered(client: AirflowClient, **answers: Any) -> str:
    span = {"start": f"{DAYS[0]}T00:00:00Z", "end": f"{DAYS[3]}T00:00:00Z"}
    run = client.trigger(CORNER, **span, **answers)
    assert await_run(client, CORNER, run) == "success"
    return run


def test_a_preview_shows_what_the_run_then_does_and_changes_nothing(
    client: AirflowClient, folder: Path, stack: Stack
) -> None:
    sell(folder / "landing", DAYS[1], [*SALES[DAYS[1]][1:], (30, "oil", 70, 1)])
    before = contents(Lake(stack.project))
    run = triggered(client, preview=True)
    foreseen = changes(client.xcom(CORNER, run, "ingest.sales"))
    shown = states(client, CORNER, run)
    assert shown.pop("ingest.sales") == "success"
    assert set(shown.values()) == {"skipped"}
    log = log_of(client, CORNER, run, "ingest.sales")
    assert "preview: nothing was committed" in log
    assert '"oil"' in log
    assert contents(Lake(stack.project)) == before
    run = triggered(client)
    ended = states(client, CORNER, run).items()
    tasks = [name for name, state in ended if state == "success" and name != "quality"]
    done: dict[str, tuple[int, ...]] = {}
    for task in tasks:
        done |= changes(client.xcom(CORNER, run, task) or [])
    assert {"corner.sales", "corner.items", "corner.best"} == done.keys() == foreseen.keys()
    assert foreseen == done
