"""A topic of the client's own brokers, in this process, becomes a source's rows."""

import json

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import OffsetSpec
from tests.support.landed import RUN, NewLanded

from sluice.operate.run import deliver
from sluice.sources.kafka.client import Brokers
from sluice.sources.kafka.offsets import TopicDescription

DECLARED = """
sources:
  events:
    kafka: {topic: t, connection: shop_kafka, max_rows: 2}
    value: {format: json}
    schema: "id INT, v DOUBLE, l ARRAY<INT>"
"""


def described(brokers: Brokers) -> TopicDescription:
    """The topic as it is; those brokers describe none themselves."""
    ends = (
        brokers._offsets(brokers._admin(), [0], place)
        for place in (OffsetSpec.earliest(), OffsetSpec.latest())
    )
    return TopicDescription("cluster", "t", "1", *ends)


def test_a_topic_is_read_in_batches_from_where_the_last_one_ended(
    new_landed: NewLanded, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none", "log_level": 0})
    (broker,) = producer.list_topics(timeout=30).brokers.values()
    extra = {"bootstrap.servers": f"{broker.host}:{broker.port}"}
    connection = json.dumps({"conn_type": "kafka", "extra": extra})
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_KAFKA", connection)
    monkeypatch.setattr(Brokers, "describe", described)
    shop = new_landed(DECLARED)

    def take(*values: bytes) -> list[tuple[object, ...]]:
        for value in values:
            producer.produce("t", value, partition=0)
        producer.flush()
        list(deliver(shop.spark, shop.project, shop.table("events"), RUN, ()))
        return sorted((r["id"], r["v"], r["l"]) for r in shop.rows("events"))

    first = [(1, 0.5, [7, None]), (2, None, None)]
    sent = b'{"id": 1, "v": 0.5, "l": [7, null]}', b'{"id": 2}', b'{"id": "none"}'
    assert take(*sent) == first
    assert take(b'{"id": 3, "v": 1e3, "l": []}') == [*first, (3, 1000.0, [])]
    assert take() == [*first, (3, 1000.0, [])]
