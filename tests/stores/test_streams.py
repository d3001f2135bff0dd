"""Streams of files and of a topic with the lake in a store: killed anywhere, nothing is read twice.

What a disturbed lake holds is compared with one that took the same arrivals undisturbed.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.cli.trips import Project
from tests.sources.kafka.conftest import CONNECTION
from tests.support.lake import counted, stored_rows
from tests.support.s3a import reach
from tests.support.stores import Store

from broker import Broker, running
from sluice.delta.places.delta_rs import open_table
from sluice.delta.places.failpoint import VARIABLE

PIPELINE = "pipeline: shop\nschedule: '@daily'\nstart_date: 2024-01-01\n"
SHAPE = 'schema: "id INT, v INT", key: [id]'
FILES = "{{path: s3://{place}/landing/, delivery: stream, format: json, {shape}}}"
TOPIC = (
    "{{kafka: {{topic: {topic}, connection: shop_kafka, max_rows: 3}}, "
    "value: {{format: json}}, {shape}}}"
)
PLACES = (
    *("created:events__deliveries", "quarantined:events", "committing:events__deliveries"),
    *("committed:events__deliveries", "recorded:events__intervals"),
    *("committing:events", "committed:events"),
)
FIRST = ('{"id": 1, "v": 1}', "bad", '{"id": 1, "v": 2}', '{"id": 2, "v": 2}', "worse")


@dataclass
class Streamed:
    """A project with one source, `events`; its lake is at a place in the store."""

    folder: Path
    store: Store
    place: str
    environ: dict[str, str]
    remote: str = ""  # of the Spark that reads its files

    def declare(self, source: str) -> None:
        config = self.folder / "config"
        (config / "pipelines").mkdir(parents=True)
        (config / "sluice.yaml").write_text(f"lake: s3://{self.place}/lake\n")
        text = f"{PIPELINE}sources:\n  events: {source}\n"
        (config / "pipelines" / "shop.yaml").write_text(text)

    def arrive(self, name: str, lines: Iterable[str]) -> None:
        self.store.put(f"{self.place}/landing/{name}.json", "".join(f"{x}\n" for x in lines))

    def ingest(self, failpoint: str = "") -> int:
        variables = {**self.environ, VARIABLE: failpoint}
        done = Project(self.folder, self.remote).sluice("ingest", "events", **variables)
        assert done.code in (0, -9), done.err[-2000:]
        return done.code

    def rows(self, table: str, *columns: str) -> dict[Any, int]:
        stored = stored_rows(open_table(f"s3://{self.place}/lake/shop/{table}"))
        return counted(tuple(row[c] for c in columns) for row in stored)

    def state(self) -> tuple[dict[Any, int], ...]:
        """What is visible, what was delivered, and what is in quarantine."""
        return (
            self.rows("events", "id", "v"),
            self.rows("events__deliveries", "id", "v"),
            self.rows("events__quarantine", "raw"),
        )


def line(nth: int) -> str:
    return json.dumps({"id": 10 + nth, "v": nth})


def begun(folder: Path, store: Store, source: str, **environ: str) -> Streamed:
    place = store.place()
    made = Streamed(folder, store, place, environ)
    made.declare(source.format(place=place, shape=SHAPE))
    return made


def test_a_stream_of_files_killed_anywhere_ends_as_an_undisturbed_one(
    store: Store, spark: SparkSession, remote: str, tmp_path: Path
) -> None:
    reach(spark, store, store.endpoint)
    disturbed, whole = (begun(tmp_path / name, store, FILES) for name in ("a", "b"))
    for lake in (disturbed, whole):
        lake.remote = remote
        lake.arrive("first", FIRST)
    for nth, place in enumerate(PLACES):
        assert disturbed.ingest(place) == -9, place
        for lake in (disturbed, whole):
            lake.arrive(f"later-{nth}", [line(nth)])
    assert [disturbed.ingest(), whole.ingest()] == [0, 0]
    assert disturbed.state() == whole.state()
    assert len(whole.state()[0]) == 2 + len(PLACES)
    assert disturbed.ingest() == 0
    assert disturbed.state() == whole.state()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with running() as started:
        yield started


def test_topics_killed_anywhere_end_the_same(store: Store, broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic("in-a-store", 1)
    source, access = TOPIC.replace("{topic}", topic), {CONNECTION: broker.connection}
    disturbed, whole = (begun(tmp_path / name, store, source, **access) for name in ("a", "b"))
    broker.send(topic, [(None, text.encode()) for text in FIRST], 0)
    for nth, place in enumerate(PLACES):
        assert disturbed.ingest(place) == -9, place
        broker.send(topic, [(None, line(nth).encode())], 0)
    assert [disturbed.ingest(), whole.ingest()] == [0, 0]
    assert disturbed.state() == whole.state()
    assert len(whole.state()[0]) == 2 + len(PLACES)
    assert disturbed.ingest() == 0
    assert disturbed.state() == whole.state()
