"""Changes that are decoded by columns give the rows that they give one by one."""

import io
import json
from base64 import b64encode
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_writer
from pyspark.sql.types import DateType, DecimalType, LongType, StringType, TimestampType
from tests.sources.kafka.decoding.checks import CONNECTION, check
from tests.support.registry import registry

from sluice.declare.project import load
from sluice.sources.kafka import rows
from sluice.sources.topic import TopicFeed

SOURCE = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  events:
    kafka: {{topic: t, connection: shop_kafka}}
    value: {value}
    schema: id BIGINT, m DECIMAL(8,2), at TIMESTAMP, day DATE, s STRING, wide STRING
    {key}
"""
KINDS = ("debezium-json", "debezium-json keyed", "debezium-avro", "debezium-avro keyed")
KEYS = (b'{"id": 5}', b'{"id": 6', None)
OPS = ("c", "c", "r", "u", "u", "d")
IMAGE: dict[str, tuple[Any, ...]] = {
    "id": (1, -7, 2**62),
    "m": (Decimal("12.50"), Decimal("-0.01"), Decimal(0)),
    "at": (1_714_557_600_123_456, 0, -1),
    "day": (19_844, -1),
    "s": ("x", "", None, "é"),
}
STRANGE: dict[str, tuple[Any, ...]] = {
    "id": (None, "8", 2**64, 1.5, {}),
    "m": (Decimal("9999999.99"), "A", 7, None),
    "at": (10**18, -(10**17), "x", None),
    "day": (5_000_000, -800_000, None),
    "s": (5, True, [1], None),
}
NAMES = {
    "m": "org.apache.kafka.connect.data.Decimal",
    "at": "io.debezium.time.MicroTimestamp",
    "day": "io.debezium.time.Date",
}
COLUMNS = [{"field": n, "name": name, "parameters": {"scale": "2"}} for n, name in NAMES.items()]
BESIDE = {"type": "struct", "fields": [{"field": "after", "fields": COLUMNS}]}


def record(name: str, **types: Any) -> dict[str, Any]:
    fields = [{"name": field, "type": type_} for field, type_ in types.items()]
    return {"type": "record", "name": name, "fields": fields}


ROW = record(
    "Row",
    id=["null", "long"],
    m={"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
    at={"type": "long", "connect.name": NAMES["at"]},
    day={"type": "int", "connect.name": NAMES["day"]},
    s=["null", "string"],
)
ORIGIN = record("Origin", schema="string", lsn=["null", "long"])
CHANGE = record("Change", before=["null", ROW], after=["null", "Row"], source=ORIGIN, op="string")


@pytest.fixture
def read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[TopicFeed]:
    """A source of changes in the format that a test asks for, and its reader."""
    format_, _, keyed = request.param.partition(" ")
    with registry({"/schemas/ids/2": {"schema": json.dumps(CHANGE)}}) as address:
        monkeypatch.setenv("AIRFLOW_CONN_SHOP_KAFKA", CONNECTION)
        monkeypatch.setenv("AIRFLOW_CONN_REGISTRY", address)
        value = {"format": format_} | ({"registry": "registry"} if "avro" in format_ else {})
        (tmp_path / "pipelines").mkdir()
        (tmp_path / "sluice.yaml").write_text(f"lake: {tmp_path / 'lake'}\n")
        text = SOURCE.format(value=json.dumps(value), key="key: [id]" if keyed else "")
        (tmp_path / "pipelines" / "shop.yaml").write_text(text)
        project = load(tmp_path)
        yield TopicFeed.of(project, project.graph.table("events"))


def image(random: Random, odd: float) -> dict[str, Any]:
    return {n: random.choice(STRANGE[n] if random.random() < odd else IMAGE[n]) for n in IMAGE}


def change(random: Random, odd: float) -> dict[str, Any]:
    op = random.choice(("m", "t", None) if random.random() < odd else OPS)
    before = image(random, odd) if random.random() < 0.7 else None
    after = image(random, odd) if op != "d" and random.random() >= odd else None
    return {"op": op, "before": before, "after": after, "source": {"schema": "s", "lsn": 1}}


def as_json(random: Random, odd: float) -> bytes:
    sent: Any = change(random, odd)
    for row in filter(None, (sent["before"], sent["after"])):
        for name in [*row]:
            if random.random() < odd / 4:
                del row[name]
    if random.random() < odd / 4:
        sent = random.choice(([], {"schema": 1, "payload": 2}, sent | {"after": 7}, {"op": "c"}))
    schema = None if random.random() < odd / 4 else BESIDE
    is_bare = random.random() < odd / 4
    text = json.dumps(sent if is_bare else {"schema": schema, "payload": sent}, default=captured)
    is_twice = random.random() < odd / 4
    return (text.replace('"op":', '"op": "c", "op":') if is_twice else text).encode()


def captured(number: Decimal) -> str:
    return b64encode(int(number * 100).to_bytes(5, "big", signed=True)).decode()


def as_avro(random: Random, odd: float) -> bytes:
    sent = change(random, 0)
    for row in filter(None, (sent["before"], sent["after"])):
        if random.random() < odd:
            row |= {"id": None, "at": random.choice((10**18, -(10**17)))}
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(CHANGE), sent)
    data = bytearray(out.getvalue())
    if random.random() < odd:
        data[random.randrange(len(data))] = random.randrange(256)
    return b"\0\0\0\0\2" + bytes(data)


def changes(read: TopicFeed, random: Random, odd: float, count: int) -> list[bytes]:
    assert read.spec.value
    made = as_avro if read.spec.value.is_avro else as_json
    return [made(random, odd) for _ in range(count)]


@pytest.mark.parametrize("read", KINDS, indirect=True)
@pytest.mark.parametrize("seed", range(12))
def test_changes_by_chance(read: TopicFeed, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    monkeypatch.setattr(rows, "AT_ONCE", random.choice((2, 5, 50)))
    sent = changes(read, random, random.choice((0, 0.01, 0.05, 0.3)), 30)
    is_json = read.spec.value and not read.spec.value.is_avro
    with_tombstones = [None if random.random() < 0.1 else value for value in sent]
    check(read, with_tombstones, KEYS if is_json else (None,))


@pytest.mark.parametrize("read", KINDS, indirect=True)
def test_plain_changes_are_read_by_columns(read: TopicFeed) -> None:
    types = {
        "id": LongType(),
        "m": DecimalType(8, 2),
        "at": TimestampType(),
        "day": DateType(),
        "s": StringType(),
        "wide": StringType(),
    }
    sent = changes(read, Random(1), 0, 50)
    assert read.reader.whole
    parts = read.reader.whole(sent, types)
    assert parts
    assert len({n for part in parts for n in part.places}) > len(sent) / 2
    found = [parts[0].columns[name].type for name in ("m", "at", "day")]
    assert found == [pa.decimal128(8, 2), pa.timestamp("us", "UTC"), pa.date32()]
