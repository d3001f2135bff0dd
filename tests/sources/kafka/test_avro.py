"""Topics of Avro. The registry is a stand-in that speaks the API of Confluent's over HTTP."""

import io
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer
from tests.sources.kafka.conftest import Topical

from sluice.errors import Retryable
from sluice.sources.kafka.registry import check_registry
from sluice.sources.kafka.spec import Value

Made = Callable[..., Topical]
ROW = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "long"},
        {
            "name": "amount",
            "type": [
                "null",
                {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
            ],
        },
        {
            "name": "at",
            "type": {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"},
        },
    ],
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", ROW]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "op", "type": "string"},
    ],
}
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
PLAIN = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
SCHEMAS = {1: ENVELOPE, 2: KEY, 3: PLAIN}


class Registry(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = SCHEMAS.get(int(self.path.rpartition("/")[2]))
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"schema": json.dumps(found)}).encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_REGISTRY", address)
    yield
    server.shutdown()
    server.server_close()


def test_a_registry_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    value = Value(format="avro", registry="shop_registry")
    check_registry(value, "events")
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_REGISTRY", "http://127.0.0.1:9")
    with pytest.raises(Retryable, match="the schema registry does not answer"):
        check_registry(value, "events")


def encoded(schema: int, value: Any) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(SCHEMAS[schema]), value)
    return b"\0" + schema.to_bytes(4, "big") + out.getvalue()


def test_values_of_avro_become_rows_and_unknown_schemas_go_to_quarantine(topical: Made) -> None:
    lake = topical("id INT, tags ARRAY<STRING>", format_="avro, registry: shop_registry")
    good = encoded(3, {"id": 1, "tags": ["a", "b"]})
    lake.send(good, b"\0\0\0\0\x63" + good[5:], b'{"id": 1}', good[:-1], good + b"x")
    lake.take()
    assert lake.values() == [{"id": 1, "tags": ["a", "b"]}]
    reasons = [q["reason"].partition(":")[0] for q in lake.quarantine()]
    assert reasons == [
        "the message does not begin with the id of a schema",
        "the message does not fit its schema",
        "the message is longer than its schema says",
        "the schema registry has no schema 99",
    ]


def test_changes_of_debezium_in_avro(topical: Made) -> None:
    lake = topical(
        "id BIGINT, amount DECIMAL(12,2), at TIMESTAMP",
        format_="debezium-avro, registry: shop_registry",
        extra="key: [id]",
    )
    row = {"id": 1, "amount": Decimal("1.50"), "at": 1_714_557_600_123_456}
    lake.send(
        (encoded(2, {"id": 1}), encoded(1, {"before": None, "after": row, "op": "c"})),
        (encoded(2, {"id": 2}), encoded(1, {"before": None, "after": {**row, "id": 2}, "op": "r"})),
        (encoded(2, {"id": 2}), encoded(1, {"before": None, "after": None, "op": "d"})),
        (encoded(2, {"id": 2}), None),
    )
    lake.take()
    (found,) = lake.values()
    assert (found["id"], str(found["amount"])) == (1, "1.50")
    assert found["at"].isoformat() == "2024-05-01T10:00:00.123456+00:00"
