"""One batch is fetched while another is at work."""

import threading
from collections.abc import Generator

import pytest

from sluice.errors import Retryable
from sluice.sources.kafka.client import PolledMessages
from sluice.sources.topic import fetch_ahead


def test_the_next_batch_is_fetched_meanwhile_and_never_a_second() -> None:
    fetched, second, third = list[int](), threading.Event(), threading.Event()

    def batches() -> Generator[PolledMessages]:
        for n, event in enumerate((threading.Event(), second, third)):
            fetched.append(n)
            event.set()
            yield PolledMessages({0: n})

    reading = fetch_ahead(batches())
    assert next(reading).following == {0: 0}
    assert second.wait(120)
    assert not third.wait(0.2)
    assert [each.following[0] for each in reading] == [1, 2]
    assert fetched == [0, 1, 2]


def test_a_fault_comes_after_the_batches_before_it_and_no_thread_is_left() -> None:
    def batches() -> Generator[PolledMessages]:
        yield PolledMessages({0: 1})
        raise Retryable("the brokers were silent")

    reading = fetch_ahead(batches())
    assert next(reading).following == {0: 1}
    with pytest.raises(Retryable):
        next(reading)
    abandoned = fetch_ahead(batches())
    next(abandoned)
    abandoned.close()
    assert not any(t.name.startswith("sluice-fetch") for t in threading.enumerate())
