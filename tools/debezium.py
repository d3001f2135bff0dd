"""Lines of shopping as changes in a topic, like those of Debezium's PostgreSQL connector."""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

import shopping
from broker import Broker, Message

Row = dict[str, Any]
Lines = Mapping[tuple[int, ...], Row]  # by their keys
TOPIC, PARTITIONS = "shop.public.transactions", 2
KEY = ("basket_id", "product_id")
FILES = """\
    path: "${SLUICE_LANDING:-landing}/transactions/{interval_start:%Y-%m-%d}/"
    format: parquet
"""
MESSAGES = f"""\
    kafka: {{topic: {TOPIC}, connection: shop_kafka}}
    value: {{format: debezium-json}}
"""
MONEY = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal"}
SCALE = {"parameters": {"scale": "2", "connect.decimal.precision": "12"}}
TYPES: dict[pa.DataType, Row] = {
    pa.int64(): {"type": "int64"},
    pa.int32(): {"type": "int32"},
    shopping.MONEY: MONEY | SCALE,
    pa.timestamp("us", "UTC"): {"type": "string", "name": "io.debezium.time.ZonedTimestamp"},
}
FIELDS = [{"field": f.name, **TYPES[f.type]} for f in shopping.TRANSACTIONS]
IMAGES = [{"type": "struct", "fields": FIELDS, "field": name} for name in ("before", "after")]
ENVELOPE = {"type": "struct", "fields": [*IMAGES, {"type": "string", "field": "op"}]}
KEYS = {"type": "struct", "fields": [f for f in FIELDS if f["field"] in KEY]}


def with_topic(pipeline: str) -> str:
    """Return the demo's pipeline, as YAML, under the name `topical`, with lines from the topic."""
    assert pipeline.count(FILES) == pipeline.count("pipeline: retail") == 1
    return pipeline.replace(FILES, MESSAGES).replace("pipeline: retail", "pipeline: topical")


def lines(table: pa.Table) -> Lines:
    """Return lines by their keys."""
    return {tuple(row[name] for name in KEY): row for row in table.to_pylist()}


def snapshot(rows: Lines) -> Iterator[Message]:
    """Yield the lines of the connector's first snapshot."""
    return (change("r", row) for row in rows.values())


def changes(old: Lines, new: Lines) -> Iterator[Message]:
    """Yield changes of lines: deletes, each with its tombstone, updates and creates."""
    for key, row in old.items():
        if key not in new:
            yield change("d", row)
            yield change("d", row)[0], None
    for key, row in new.items():
        if key not in old or old[key] != row:
            yield change("u" if key in old else "c", row)


def change(op: str, row: Row) -> Message:
    """Return one change, with its schema."""
    key = {name: row[name] for name in KEY}
    only_key = {name: row[name] if name in KEY else None for name in row}
    before, after = (_captured(only_key), None) if op == "d" else (None, _captured(row))
    envelope = {"before": before, "after": after, "op": op, "ts_ms": 1, "transaction": None}
    return tuple(  # type: ignore[return-value]
        json.dumps({"schema": schema, "payload": payload}).encode()
        for schema, payload in ((KEYS, key), (ENVELOPE, envelope))
    )


def _captured(row: Row) -> Row:
    return {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    match value:
        case Decimal():
            return b64encode(int(value * 100).to_bytes(8, "big", signed=True)).decode()
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
    return value


def send(broker: Broker, messages: Iterable[Message]) -> None:
    """Send messages to the partition of their key."""
    every = list(messages)
    for partition in range(PARTITIONS):
        own = (m for m in every if m[0] and sum(m[0]) % PARTITIONS == partition)
        broker.send(TOPIC, own, partition)
