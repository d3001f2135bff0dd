"""Decoding by Spark and by the interpreter, compared."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from tests.support.registry import registry

from sluice.declare.declared import RAW
from sluice.declare.project import load
from sluice.interpreter.local_session import Session, interpreting
from sluice.language.interval import Interval
from sluice.sources.kafka.records import FormatReader, Message, arrange_messages
from sluice.sources.topic import TopicFeed

CONNECTION = '{"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}}'
SOURCE = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  events:
    kafka: {{topic: "t's", connection: shop_kafka}}
    value: {value}
    schema: id BIGINT, i INT, m DECIMAL(8,2), d DOUBLE, b BOOLEAN, s STRING, at TIMESTAMP, day DATE
"""
AT_NOON = Interval(datetime(2024, 5, 1, 12, tzinfo=UTC), datetime(2024, 5, 1, 13, tzinfo=UTC))
FIELDS: dict[str, Any] = {
    "id": "long",
    "i": "int",
    "m": "string",
    "d": ["null", "double"],
    "b": "boolean",
    "s": ["string", "null"],
    "at": "string",
    "day": ["null", "string"],
    "more": "bytes",
    "said": "string",
}
RECORD = {
    "type": "record",
    "name": "R",
    "fields": [{"name": n, "type": t} for n, t in FIELDS.items()],
}


@pytest.fixture
def read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[TopicFeed]:
    """A source of the format that a test asks for, and its reader."""
    format_ = request.param
    with registry({"/schemas/ids/1": {"schema": json.dumps(RECORD)}}) as address:
        monkeypatch.setenv("AIRFLOW_CONN_SHOP_KAFKA", CONNECTION)
        monkeypatch.setenv("AIRFLOW_CONN_REGISTRY", address)
        value = {"format": format_} | ({"registry": "registry"} if format_ == "avro" else {})
        (tmp_path / "pipelines").mkdir()
        (tmp_path / "sluice.yaml").write_text(f"lake: {tmp_path / 'lake'}\n")
        text = SOURCE.format(value=json.dumps(value))
        (tmp_path / "pipelines" / "shop.yaml").write_text(text)
        project = load(tmp_path)
        yield TopicFeed.of(project, project.graph.table("events"))


def rows(read: TopicFeed, messages: list[Message], reader: FormatReader) -> list[dict[str, Any]]:
    session = Session()
    with interpreting(session):
        sent = arrange_messages(messages)
        found = replace(read, reader=reader).rows(sent, AT_NOON, session).drop(RAW).toArrow()
    return sorted(found.to_pylist(), key=lambda row: str(row["_sluice_id"]))


def check(
    read: TopicFeed, values: Sequence[bytes | None], keys: Sequence[bytes | None] = (b"k",)
) -> None:
    """Compare what each way to read makes of messages; their keys take turns."""
    places = enumerate(zip(values, cycle(keys), strict=False))
    messages = [Message(n % 2, n, 1_714_557_600_000, key, value) for n, (value, key) in places]
    one_by_one = replace(read.reader, many=None, whole=None)
    found = rows(read, messages, read.reader)
    assert [*map(repr, found)] == [*map(repr, rows(read, messages, one_by_one))]
