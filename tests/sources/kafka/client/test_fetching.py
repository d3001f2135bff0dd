"""Fetching from brokers that have less than was listed.

They are the client's own, in this process: no broker of Kafka's can be held in that state.
"""

from collections.abc import Iterator
from threading import Event, Thread

import pytest
from confluent_kafka import Producer

from ports import free_port
from sluice.errors import Retryable, UsageError
from sluice.language.interval import Duration
from sluice.sources import Topic
from sluice.sources.kafka.client import Brokers
from sluice.sources.kafka.records import each_message


@pytest.fixture
def producer() -> Producer:
    settings = {"test.mock.num.brokers": 1, "bootstrap.servers": "none", "log_level": 0}
    return Producer({**settings, "linger.ms": 0})


def send(producer: Producer, *values: bytes, partition: int = 0) -> None:
    for value in values:
        producer.produce("t", value, partition=partition)
    producer.flush()


def brokers(producer: Producer, **bounds: int) -> Brokers:
    found = producer.list_topics(timeout=30).brokers.values()
    servers = ",".join(f"{each.host}:{each.port}" for each in found)
    topic = Topic(topic="t", connection="c", max_wait=Duration("2 seconds"), **bounds)
    return Brokers("shop.events", topic, {"bootstrap.servers": servers})


def test_a_broker_whose_end_is_too_early_skips_no_message(producer: Producer) -> None:
    send(producer, b"0", b"1")
    reading = brokers(producer, max_rows=2).read({0: 0}, {0: 4})
    assert next(reading).following == {0: 2}
    with pytest.raises(Retryable, match="silent for 2 seconds"):
        next(reading)
    reading = brokers(producer, max_rows=2).read({0: 0}, {0: 4})
    next(reading)
    late = Thread(target=send, args=(producer, b"2", b"3"))
    late.start()
    found = [message.value for taken in reading for message in each_message(taken.messages)]
    late.join()
    assert found == [b"2", b"3"]


@pytest.fixture
def busy(producer: Producer) -> Iterator[None]:
    """Messages that arrive in partition 0 all the time."""
    over = Event()

    def sending() -> None:
        while not over.wait(0.02):
            send(producer, b"x")

    thread = Thread(target=sending)
    thread.start()
    yield
    over.set()
    thread.join()


@pytest.mark.usefixtures("busy")
def test_messages_beyond_the_end_do_not_hide_that_a_partition_is_silent(producer: Producer) -> None:
    reading = brokers(producer).read({0: 0, 1: 0}, {0: 1, 1: 5})
    assert next(reading).following == {0: 1, 1: 0}
    with pytest.raises(Retryable, match="silent for 2 seconds"):
        next(reading)


TOPIC = Topic(topic="t", connection="shop_kafka")


@pytest.mark.parametrize(
    "settings",
    [{"security.protcol": "SSL"}, {"ssl.ca.location": "/nowhere.pem"}, {"stats_cb": "a.b"}],
)
def test_a_setting_that_the_client_refuses_is_named(settings: dict[str, str]) -> None:
    refused = Brokers("shop.events", TOPIC, {"security.protocol": "SSL", **settings})
    (name,) = settings
    with pytest.raises(UsageError, match=f"shop.events: .* 'shop_kafka': .*{name}"):
        refused.describe()
    with pytest.raises(UsageError, match=name):
        next(refused.read({0: 0}, {0: 1}))


def test_brokers_that_dont_answer_are_named_with_the_reason() -> None:
    absent = {"bootstrap.servers": f"127.0.0.1:{free_port()}"}
    with pytest.raises(Retryable, match=r"no answer within 3 s; .*Connection refused"):
        Brokers("shop.events", TOPIC, absent, 3.0).describe()
