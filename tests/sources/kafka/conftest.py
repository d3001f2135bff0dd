"""One broker for all tests of topics in this process, and a source that reads from it."""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.support.lake import Row
from tests.support.landed import RUN, Landed

from broker import Broker, Message, running
from sluice.engine import BatchReport, retries
from sluice.operate.delivering import replay, to_replay
from sluice.operate.run import deliver
from sluice.sources.kafka.offsets import OffsetRange

CONNECTION = "AIRFLOW_CONN_SHOP_KAFKA"
SOURCE = """\
sources:
  events:
    kafka: {{topic: {topic}, connection: shop_kafka{bounds}}}
    value: {{format: {format_}}}
    schema: "{schema}"
{extra}"""


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are tried again once, and at once: no broker comes back by itself."""
    monkeypatch.setattr(retries, "PAUSES", (0.0,))


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with running() as started:
        yield started


class Topical(Landed):
    """A lake with one source, `events`, of one topic."""

    broker: Broker
    topic: str

    def send(self, *values: Any, partition: int = 0, **how: Any) -> None:
        """Send values as JSON, bytes as they are, and pairs of a key and a value."""
        self.broker.send(self.topic, map(_message, values), partition, **how)

    def take(self) -> list[BatchReport]:
        return list(deliver(self.spark, self.project, self.table("events"), RUN, ()))

    def text(self, old: str, new: str) -> str:
        """Its declaration with another word."""
        text = (self.folder / "config" / "pipelines" / "shop.yaml").read_text()
        assert old in text
        return text.replace(old, new)

    def replay(self) -> list[BatchReport]:
        found = to_replay(self.project, self.table("events"))
        return list(replay(self.spark, self.project, self.table("events"), found, RUN))

    def values(self) -> list[Row]:
        return sorted(self.rows("events"), key=repr)

    def place(self) -> OffsetRange:
        deliveries = self.table("events").spec.keeps_deliveries  # type: ignore[attr-defined]
        found = OffsetRange.of(self.head("events__deliveries" if deliveries else "events"))
        assert found
        return found


def _message(value: Any) -> Message:
    key, value = value if isinstance(value, tuple) else (None, value)
    return _bytes(key), _bytes(value)


def _bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()


@pytest.fixture
def topical(
    broker: Broker, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Topical]:
    """A source of a topic of its own, declared by keywords."""
    monkeypatch.setenv(CONNECTION, broker.connection)

    def made(
        schema: str = "id INT, v INT",
        *,
        format_: str = "json",
        extra: str = "",
        partitions: int = 1,
        bounds: str = "",
        config: Mapping[str, str] | None = None,
        topic: str = "",
    ) -> Topical:
        name = topic or broker.topic(f"t{uuid.uuid4().hex}", partitions, **(config or {}))
        settings = {"topic": name, "schema": schema, "format_": format_}
        lines = "".join(f"    {line}\n" for line in extra.splitlines())
        text = SOURCE.format(**settings, extra=lines, bounds=bounds)
        lake = Topical(tmp_path / name, text, spark)
        lake.broker, lake.topic = broker, name
        return lake

    return made
