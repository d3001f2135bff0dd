"""Tasks that hang or die where they are about to commit: each table gets its rows once."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from airflow_client import AirflowClient
from sluice.read.lake import Lake
from stack import Stack

from .corner import DAYS, await_run, log_of, sluice, task_of
from .zombies import shoot, stands_still, stopped

DUEL, HITS, END = "duel", "duel.hits", "2024-03-05"


@pytest.fixture(scope="module", autouse=True)
def unpaused(client: AirflowClient) -> None:
    client.await_dag(DUEL)
    client.unpause(DUEL)


def test_a_task_that_was_overtaken_loses_at_the_fence_and_says_so(
    client: AirflowClient, folder: Path, stack: Stack, lake: Lake
) -> None:
    tries = [((DAYS[0], DAYS[1]), (1, 2)), ((DAYS[2], DAYS[3]), (0,)), ((DAYS[3], END), (-1,))]
    found = (overtaken(client, folder, stack, lake, *each) for each in tries)
    run, version = next(filter(None, found))
    assert lake.table(HITS).version == version
    told = log_of(client, DUEL, run, "advance.hits")
    assert "another writer committed" in told, told
    assert "this attempt was discarded" in told
    assert f"{HITS}: unchanged" in told
    events = [e["name"] for e in client.asset_events() if e["source_run_id"] == run]
    assert events == ["duel.shots"]


def overtaken(
    client: AirflowClient,
    folder: Path,
    stack: Stack,
    lake: Lake,
    interval: tuple[str, str],
    shots: Sequence[int],
) -> tuple[str, int] | None:
    """The run whose task slept while another advanced the table, and the version that made.

    None if the task woke too early by itself and made its commit, so that nothing was left to do:
    a machine that was frozen wakes all its processes.
    """
    shoot(folder / "landing", interval[0], *shots)
    run = client.trigger(DUEL, start=interval[0], end=interval[1])
    zombie = stopped(stack)
    before = lake.table(HITS).version
    sluice(stack, "advance", HITS)
    slept = stands_still(zombie)
    version = lake.table(HITS).version
    with suppress(psutil.NoSuchProcess):
        zombie.resume()
    assert await_run(client, DUEL, run) == "success"
    assert {row["id"] for row in lake.table(HITS).read()} >= {*shots}
    return (run, version) if slept and version > before else None


def test_a_task_that_was_killed_is_tried_again_and_does_its_work(
    client: AirflowClient, folder: Path, stack: Stack, lake: Lake
) -> None:
    shoot(folder / "landing", DAYS[1], 3)
    run = client.trigger(DUEL, start=DAYS[1], end=DAYS[2])
    killed = stopped(stack)
    killed.kill()
    again = stopped(stack)
    assert again.pid != killed.pid
    again.resume()
    assert await_run(client, DUEL, run) == "success"
    assert task_of(client, DUEL, run, "advance.hits").attempt == 2
    assert {row["id"] for row in lake.table(HITS).read()} >= {1, 2, 3}
