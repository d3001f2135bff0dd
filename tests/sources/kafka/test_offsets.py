"""Offsets without messages: transactions, compaction, new partitions, killed batches."""

import time
from collections.abc import Callable

from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions
from tests.cli.trips import Project
from tests.sources.kafka.conftest import CONNECTION, Topical
from tests.support.lake import counted

from sluice.delta.places.failpoint import VARIABLE

Made = Callable[..., Topical]


def test_only_committed_messages_are_read(topical: Made) -> None:
    lake = topical()
    lake.send({"id": 1}, {"id": 2}, **{"transactional.id": lake.topic})
    producer = Producer(
        {"bootstrap.servers": lake.broker.servers, "transactional.id": f"{lake.topic}-b"}
    )
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(lake.topic, b'{"id": 3}')
    producer.flush()
    lake.take()
    assert [r["id"] for r in lake.values()] == [1, 2]
    producer.abort_transaction()
    lake.send({"id": 4})
    lake.take()
    assert [r["id"] for r in lake.values()] == [1, 2, 4]
    reached = lake.place().following
    lake.take()
    assert lake.place().following == reached


def test_an_aborted_transaction_alone_moves_the_place_and_no_row(topical: Made) -> None:
    lake = topical()
    lake.send({"id": 1})
    lake.take()
    producer = Producer({"bootstrap.servers": lake.broker.servers, "transactional.id": lake.topic})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(lake.topic, b'{"id": 3}')
    producer.flush()
    producer.abort_transaction()
    lake.take()
    assert lake.place().following == {0: 3}
    assert [r["id"] for r in lake.values()] == [1]
    version = lake.versions("events")
    lake.take()
    assert lake.versions("events") == version


def test_a_compacted_topic_has_gaps(topical: Made) -> None:
    config = {
        "cleanup_policy": "compact",
        "segment_ms": "100",
        "min_cleanable_dirty_ratio": "0.01",
        "max_compaction_lag_ms": "100",
    }
    lake = topical(extra="key: [id]", config=config)
    lake.send(*((1, {"id": 1, "v": n}) for n in range(20)))
    for n in range(60):
        time.sleep(0.3)
        lake.send((2, {"id": 2, "v": n}))
        if lake.broker.log_size(lake.topic) < 20:
            break
    (deliveries, _) = lake.take()
    assert deliveries.rows_in < 20
    assert {"id": 1, "v": 19} in lake.values()


def test_partitions_that_are_added_are_read_from_their_beginning(topical: Made) -> None:
    lake = topical()
    lake.send({"id": 1})
    lake.take()
    lake.broker.admin.create_partitions([NewPartitions(lake.topic, 2)])[lake.topic].result()
    while len(lake.broker.partitions(lake.topic)) < 2:
        time.sleep(0.1)
    lake.send({"id": 2}, partition=1)
    lake.take()
    assert [r["id"] for r in lake.values()] == [1, 2]
    assert lake.place().following == {0: 1, 1: 1}


PLACES = (
    *("creating:events__deliveries", "created:events__deliveries", "read:events"),
    *("quarantined:events", "committing:events__deliveries", "committed:events__deliveries"),
    *("recorded:events__intervals", "committing:events", "committed:events"),
)


def test_a_batch_killed_anywhere_is_delivered_once(topical: Made) -> None:
    lake = topical(extra="key: [id]", bounds=", max_rows: 3")
    values = [{"id": 1, "v": 1}, b"bad", {"id": 1, "v": 2}, {"id": 2, "v": 2}, b"worse"]
    lake.send(*values)
    for nth, place in enumerate(PLACES):
        assert _ingest(lake, place) == -9, place
        lake.send({"id": 10 + nth, "v": nth})
    lake.take()
    fresh = [{"id": 10 + nth, "v": nth} for nth in range(len(PLACES))]
    assert lake.values() == sorted([{"id": 1, "v": 2}, {"id": 2, "v": 2}, *fresh], key=repr)
    ids = [r["_sluice_id"] for r in lake.stored("events__deliveries")]
    assert counted(ids) == counted(f"0-{n}" for n in range(5 + len(PLACES)) if n not in (1, 4))
    assert len(lake.quarantine()) == 2
    assert lake.place().following == {0: 5 + len(PLACES)}


def _ingest(lake: Topical, failpoint: str) -> int:
    variables = {CONNECTION: lake.broker.connection, VARIABLE: failpoint}
    done = Project(lake.folder, remote="").sluice("ingest", "events", **variables)
    assert done.code in (0, -9), done.err[-2000:]
    return done.code
