"""A topic of the client's own brokers, in this process, becomes a source's rows."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import OffsetSpec
from tests.support.landed import RUN, NewLanded

from sluice.engine import BatchReport
from sluice.errors import HistoryLost
from sluice.language.interval import Interval
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


JUDGED = """
sources:
  events:
    kafka: {topic: t, connection: shop_kafka}
    value: {format: json}
    schema: "id INT, v DOUBLE"
    expect:
      - {type: expect_column_values_to_be_between, column: v, max_value: 5, on_failure: quarantine}
"""
NOON, MINUTE = datetime(2024, 5, 1, 12, tzinfo=UTC), timedelta(minutes=1)


def described(brokers: Brokers) -> TopicDescription:
    """The topic as it is; those brokers describe none themselves."""
    ends = (
        brokers._offsets(brokers._admin(), [0], place)
        for place in (OffsetSpec.earliest(), OffsetSpec.latest())
    )
    return TopicDescription("cluster", "t", "1", *ends)


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> Producer:
    producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none", "log_level": 0})
    (broker,) = producer.list_topics(timeout=30).brokers.values()
    extra = {"bootstrap.servers": f"{broker.host}:{broker.port}"}
    connection = json.dumps({"conn_type": "kafka", "extra": extra})
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_KAFKA", connection)
    monkeypatch.setattr(Brokers, "describe", described)
    return producer


def test_a_topic_is_read_in_batches_from_where_the_last_one_ended(
    new_landed: NewLanded, producer: Producer
) -> None:
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


def test_a_backfill_judges_the_messages_of_its_minutes_again(
    new_landed: NewLanded, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = new_landed(JUDGED)

    def take(*minutes: int) -> list[BatchReport]:
        spans = [Interval(*(NOON + m * MINUTE for m in minutes))] if minutes else ()
        return list(deliver(shop.spark, shop.project, shop.table("events"), RUN, spans))

    def rule(old: int, new: int) -> None:
        file = shop.folder / "config" / "pipelines" / "shop.yaml"
        shop.declare(file.read_text().replace(f"max_value: {old}", f"max_value: {new}"))

    def numbers() -> list[int]:
        return sorted(row["id"] for row in shop.rows("events"))

    def since(brokers: Brokers, moment: datetime, found: TopicDescription) -> dict[int, int]:
        """Those brokers know no times: here, a message's offset is its minute."""
        return {0: min(max((moment - NOON) // MINUTE, found.first[0]), found.following[0])}

    monkeypatch.setattr(Brokers, "since", since)
    for minute, v in enumerate((1, 4, 9)):
        at = round((NOON + minute * MINUTE).timestamp() * 1000)
        value = json.dumps({"id": minute, "v": v}).encode()
        producer.produce("t", value, partition=0, timestamp=at)
        producer.flush()
        if minute != 1:
            take(*((7, 8) if minute == 0 else ()))
    assert numbers() == [0, 1]
    rule(5, 3)
    warnings = [warning for report in take(0, 3) for warning in report.warnings]
    assert numbers() == [0]
    assert not any("begins at offset" in warning for warning in warnings)
    rule(3, 10)

    def cut(brokers: Brokers) -> TopicDescription:
        return replace(described(brokers), first={0: 1})

    monkeypatch.setattr(Brokers, "describe", cut)
    (report,) = take(0, 2)
    lost = "shop.events: partition 0 begins at offset 1 now; the rows of older messages stay"
    assert (numbers(), report.warnings) == ([0, 1, 2], (lost,))
    with pytest.raises(HistoryLost, match=r"no delivered message of .* begins at offset 1"):
        take(0, 1)
    assert [report.outcome for report in take(7, 8)] == ["unchanged"]
