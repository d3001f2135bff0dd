"""Brokers that are killed, slow, or without space; each test has one of its own."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.sources.kafka.conftest import CONNECTION, SOURCE, Topical
from tests.support.slow_link import SlowLink

from broker import Broker, joined, running
from ports import free_port
from sluice.errors import Retryable
from sluice.sources.kafka import client

pytestmark = pytest.mark.usefixtures("broker")

Reading = Callable[..., Topical]

KILLED = 3  # seconds until the cluster knows that a broker is gone


@pytest.fixture
def reading(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Reading]:
    """A lake with a source of the topic `t` of a broker, within bounds."""
    monkeypatch.setattr(client, "ANSWER_S", 5.0)

    def made(broker: Broker, bounds: str, nodes: tuple[int, ...] = (1,)) -> Topical:
        monkeypatch.setenv(CONNECTION, broker.connection)
        text = SOURCE.format(
            topic="t", bounds=bounds, format_="json", schema="id INT", extra="    key: [id]\n"
        )
        lake = Topical(tmp_path / "lake", text, spark)
        lake.broker, lake.topic = broker, broker.topic("t", nodes=nodes)
        return lake

    return made


def test_killed_brokers_cost_no_row(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(session_s=KILLED) as broker:
        lake = reading(broker, ", max_rows: 2, max_wait: 3 seconds")
        lake.send(*({"id": n} for n in range(3)))
        read = client.Brokers._fill

        def killed(*arguments: object) -> None:
            broker.stop()
            read(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(client.Brokers, "_fill", killed)
        with pytest.raises(Retryable, match=r"silent for 3 seconds|brokers"):
            lake.take()
        monkeypatch.setattr(client.Brokers, "_fill", read)
        with pytest.raises(Retryable, match="don't answer"):
            lake.take()
        broker.start()
        lake.take()
        assert [row["id"] for row in lake.values()] == [0, 1, 2]


def test_a_partition_that_moves_to_another_broker_in_a_batch_is_read_on(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(session_s=KILLED) as broker, joined(broker) as other:
        lake = reading(broker, ", max_wait: 20 seconds", nodes=(2, 1))
        lake.send({"id": 0}, {"id": 1})
        lake.take()
        assert (lake.values(), broker.leader("t")) == ([{"id": 0}, {"id": 1}], 2)
        lake.send({"id": 2}, {"id": 1})
        read = client.Brokers._fill

        def moved(*arguments: object) -> None:
            other.stop()
            read(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(client.Brokers, "_fill", moved)
        lake.take()
        assert (lake.values(), broker.leader("t")) == ([{"id": 0}, {"id": 1}, {"id": 2}], 1)
        lake.send({"id": 3})
        lake.take()
        assert [row["id"] for row in lake.values()] == [0, 1, 2, 3]
        assert lake.place().following == {0: 5}


def test_a_slow_broker_costs_time_and_one_that_takes_longer_than_allowed_is_named(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = SlowLink(to=free_port())
    with link.open(), running(port=link.to, advertised=link.port) as broker:
        lake = reading(broker, ", max_wait: 2 seconds")
        values = ({"id": n, "rest": os.urandom(4_000).hex()} for n in range(50))
        lake.send(*values, **{"batch.size": 20_000})
        link.rate = 100_000  # the messages take four seconds
        with pytest.raises(Retryable, match="silent for 2 seconds") as raised:
            lake.take()
        assert "fetch.message.max.bytes" in str(raised.value.hint)
        assert not DeltaTable.is_deltatable(lake.uri("events__deliveries"))
        small = {"bootstrap.servers": broker.servers, "fetch.message.max.bytes": 50_000}
        monkeypatch.setenv(CONNECTION, json.dumps({"conn_type": "kafka", "extra": small}))
        batches = [r for r in lake.take() if r.table.endswith("__deliveries")]
        assert len(batches) > 1  # each took two seconds, with what had come by then
        assert [row["id"] for row in lake.rows("events")] == [*range(50)]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few megabytes, in memory."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a disk in memory needs the right to mount it")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def test_full_disks_of_brokers_cost_no_row(reading: Reading, small_disk: Path) -> None:
    with running(data=small_disk, session_s=KILLED) as broker:
        lake = reading(broker, ", max_wait: 3 seconds")
        lake.send({"id": 0})
        lake.take()
        sent = fill(broker)
        assert broker.process
        assert broker.process.wait(120) != 0
        with pytest.raises(Retryable, match="don't answer"):
            lake.take()
        assert [row["id"] for row in lake.values()] == [0]
        subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
        broker.start()
        lake.take()
        found = sorted(row["id"] for row in lake.values())
        assert found[: sent + 1] == [*range(sent + 1)]
        assert lake.place().following == {0: len(found)}


def fill(broker: Broker) -> int:
    """Send messages until the broker takes no more; return the number that it has taken."""
    settings = {"bootstrap.servers": broker.servers, "message.timeout.ms": 4000, "log_level": 0}
    producer, taken = Producer(settings), list[bool]()
    for n in range(1, 100):
        value = json.dumps({"id": n, "rest": os.urandom(50_000).hex()}).encode()
        producer.produce("t", value, on_delivery=lambda error, _: taken.append(not error))
        producer.flush(5)
        if not taken or not taken[-1]:
            break
    return sum(taken)
