"""A topic in a real Airflow, with a real broker: runs of every kind, and the page.

The tests follow each other: each goes on from the lake that the one before it left.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_client import AirflowClient
from broker import Broker, running
from sluice.language.interval import parse_time
from sluice.read.lake import Lake

from .corner import await_all, await_run, log_of

DAG, SOLD, DAY = "till", "till.sold", "2024-03-01"


@pytest.fixture(scope="module")
def broker(client: AirflowClient) -> Iterator[Broker]:
    """A broker whose connection Airflow has in its own database, and nobody in the environment.

    Its topic keeps messages of any age: by default, it would soon delete those of that March.
    """
    with running() as started:
        started.topic("shop.till", retention_ms="-1")
        connection = {"connection_id": "till_kafka", "conn_type": "kafka"}
        extra = {"bootstrap.servers": started.servers}
        made = client.http.post(
            "/api/v2/connections", json=connection | {"extra": json.dumps(extra)}
        )
        assert made.status_code == 201, made.text
        yield started


def sell(broker: Broker, *sales: tuple[int, int], hour: int, day: int = 1) -> None:
    """Send sales, each an id and what was paid, as messages of that hour of March."""
    at = round(datetime(2024, 3, day, hour, tzinfo=UTC).timestamp() * 1000)
    messages = [(None, json.dumps({"id": id_, "paid": paid}).encode()) for id_, paid in sales]
    broker.send("shop.till", messages, at=at)


def paid(lake: Lake) -> dict[int, int]:
    return {row["id"]: row["paid"] for row in lake.table(SOLD).read()}


def page(client: AirflowClient) -> str:
    return client.http.get(f"/sluice/tables/{SOLD}", follow_redirects=True).text


def test_a_scheduled_run_takes_what_has_arrived_and_the_page_shows_the_rest(
    client: AirflowClient, broker: Broker, lake: Lake
) -> None:
    sell(broker, (1, 3), (2, 99), hour=10)
    sell(broker, (3, 4), hour=9, day=2)
    client.await_dag(DAG)
    assert "partition 0: 3 unread, since 2024-03-01 10:00" in page(client)
    client.unpause(DAG)
    await_all(client, DAG, 1)
    ((run, state),) = [(run.id, run.state) for run in client.runs(DAG, "scheduled")]
    assert state == "success"
    assert "1 quarantined" in log_of(client, DAG, run, "ingest.sold")
    assert paid(lake) == {1: 3, 3: 4}
    assert "unread" not in page(client)
    sell(broker, (4, 5), hour=11)
    assert "partition 0: 1 unread, since 2024-03-01 11:00" in page(client)


def test_a_backfill_by_time_reads_the_messages_of_its_day_again_and_what_has_arrived(
    client: AirflowClient, broker: Broker, folder: Path, lake: Lake
) -> None:
    assert paid(lake) == {1: 3, 3: 4}
    pipeline = folder / "config/pipelines/till.yaml"
    pipeline.write_text(pipeline.read_text().replace("max_value: 10,", "max_value: 100,"))
    sell(broker, (1, 7), hour=12)
    ((run, _),) = [(run.id, run.state) for run in client.runs(DAG)]
    number = client.backfill(DAG, parse_time(DAY), parse_time(DAY), runs=1, reprocess="completed")
    assert await_run(client, DAG, run) == "success"
    client.finish(number)
    assert paid(lake) == {1: 7, 2: 99, 3: 4, 4: 5}, log_of(client, DAG, run, "ingest.sold")
    assert {row["id"]: row["rank"] for row in lake.table("till.best").read()} == {2: 1, 1: 2}


def test_manual_runs_take_arrivals(client: AirflowClient, broker: Broker, lake: Lake) -> None:
    sell(broker, (5, 6), (1, 8), hour=13)
    run = client.trigger(DAG)
    assert await_run(client, DAG, run) == "success"
    assert paid(lake) == {1: 8, 2: 99, 3: 4, 4: 5, 5: 6}, log_of(client, DAG, run, "ingest.sold")
