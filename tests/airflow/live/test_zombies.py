"""Tasks that hang or die where they are about to commit: each table gets its rows once."""

from pathlib import Path

import pytest

from airflow_client import AirflowClient
from sluice.read.lake import Lake
from stack import Stack

from .corner import DAYS, await_run, log_of, sluice, task_of
from .zombies import shoot, stopped

DUEL, HITS = "duel", "duel.hits"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def unpaused(client: AirflowClient) -> None:
    client.await_dag(DUEL)
    client.unpause(DUEL)


def test_a_task_that_was_overtaken_loses_at_the_fence_and_says_so(
    client: AirflowClient, folder: Path, stack: Stack, lake: Lake
) -> None:
    shoot(folder / "landing", DAYS[0], 1, 2)
    run = client.trigger(DUEL, start=DAYS[0], end=DAYS[1])
    zombie = stopped(stack)
    sluice(stack, "advance", HITS)
    version = lake.table(HITS).version
    zombie.resume()
    assert await_run(client, DUEL, run) == "success"
    assert lake.table(HITS).version == version
    told = log_of(client, DUEL, run, "advance.hits")
    assert "another writer committed" in told
    assert "this attempt was thrown away" in told
    assert f"{HITS}: unchanged" in told
    assert not [event for event in client.asset_events() if event["name"] == HITS]


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
    assert {row["id"] for row in lake.table(HITS).read()} == {1, 2, 3}
