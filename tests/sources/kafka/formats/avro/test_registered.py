"""Topics of Avro. The registry is a stand-in that speaks the API of Confluent's over HTTP."""

import io
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer
from tests.sources.kafka.conftest import Topical
from tests.support.registry import registry

from sluice.errors import Retryable, UsageError
from sluice.sources import ValueFormat
from sluice.sources.kafka.connection import check_registry
from sluice.sources.kafka.records import Message, Unusable
from sluice.sources.kafka.rows import reader_of

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
        {"name": "at", "type": {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}},
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
FREE = {
    "type": "record",
    "name": "VariableScaleDecimal",
    "namespace": "io.debezium.data",
    "connect.name": "io.debezium.data.VariableScaleDecimal",
    "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
}
NUMBERS = {"type": "record", "name": "Numbers", "fields": [{"name": "a", "type": FREE}]}
NUMBERS["fields"] += [{"name": "b", "type": ["null", FREE["connect.name"]]}]  # type: ignore[operator]
MEASURED = {**ENVELOPE, "fields": [*ENVELOPE["fields"]]}
MEASURED["fields"][:2] = [
    {"name": "before", "type": ["null", NUMBERS]},
    {"name": "after", "type": ["null", "Numbers"]},
]
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
PLAIN = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
COUNT = {"type": "record", "name": "Count", "namespace": "shop", "fields": []}
COUNT["fields"] = [{"name": "n", "type": "int"}]
LINE = {"type": "record", "name": "Line", "namespace": "shop", "fields": []}
LINE["fields"] = [{"name": "sku", "type": "string"}, {"name": "count", "type": "shop.Count"}]
BILL = {"type": "record", "name": "Bill", "namespace": "shop", "fields": []}
BILL["fields"] = [{"name": "id", "type": "int"}, {"name": "line", "type": "Line"}]
SHARED = {**ENVELOPE, "fields": [dict(f) for f in ENVELOPE["fields"]]}
SHARED["fields"][0]["type"] = ["null", "Value"]
SCHEMAS = {1: ENVELOPE, 2: KEY, 3: PLAIN, 4: BILL, 5: SHARED, 6: ["shop.Bill", "Order"], 7: BILL}
SCHEMAS |= {9: MEASURED, 10: {"type": "long"}}


def reference(name: str) -> dict[str, Any]:
    return {"name": name, "subject": f"s/{name}", "version": 2}


def answer(schema: Any, *names: str) -> dict[str, Any]:
    return {"schema": json.dumps(schema), "references": [reference(name) for name in names]}


ANSWERS = {
    **{f"/schemas/ids/{id_}": answer(schema) for id_, schema in SCHEMAS.items()},
    "/schemas/ids/4": answer(BILL, "shop.Line", "shop.Count"),
    "/schemas/ids/5": answer(SHARED, "Value"),
    "/schemas/ids/6": answer(SCHEMAS[6], "shop.Bill", "Order"),
    "/schemas/ids/7": answer(BILL, "shop.Nothing"),
    "/schemas/ids/8": {**answer(BILL), "schemaType": "PROTOBUF"},
    "/subjects/s%2Fshop.Bill/versions/2": answer(BILL, "shop.Line"),
    "/subjects/s%2Fshop.Line/versions/2": answer(LINE, "shop.Count"),
    "/subjects/s%2Fshop.Count/versions/2": answer(COUNT),
    "/subjects/s%2FValue/versions/2": answer(ROW),
    "/subjects/s%2FOrder/versions/2": answer(PLAIN),
    "/schemas/ids/90": 404,
    "/schemas/ids/91": 401,
    "/schemas/ids/92": 500,
}
CONNECTION = "AIRFLOW_CONN_SHOP_REGISTRY"


@pytest.fixture(autouse=True)
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with registry(ANSWERS) as found:
        monkeypatch.setenv(CONNECTION, found)
        yield


def test_silent_registries_are_named(topical: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    value = ValueFormat(format="avro", registry="shop_registry")
    check_registry(value, "events")
    lake = topical("id INT", format_="avro, registry: shop_registry")
    lake.send(encoded(3, {"id": 1, "tags": []}))
    monkeypatch.setenv(CONNECTION, "http://127.0.0.1:9")
    named = "the schema registry of the connection 'shop_registry' does not answer: .*refused"
    with pytest.raises(Retryable, match=f"shop.events: {named}"):
        lake.take()
    with pytest.raises(Retryable, match=f"events: {named}"):
        check_registry(value, "events")
    assert not lake.quarantine()


@pytest.mark.parametrize(
    ("id_", "error", "says"),
    [
        (90, UsageError, "answers 404 without an error code"),
        (91, UsageError, "'shop_registry' refuses with 401"),
        (92, Retryable, "'shop_registry' answers with 500"),
    ],
)
def test_answers_without_a_schema_stop_the_batch(
    id_: int, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        reader_of(ValueFormat(format="avro", registry="shop_registry"), (), "t")(sent(id_, b""))


def sent(id_: int, value: bytes) -> Message:
    return Message(0, 0, 0, None, b"\0" + id_.to_bytes(4, "big") + value)


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\0\0\3", b"\1\0\0\0\3\2\0", b'{"id": 1}'])
def test_a_message_without_the_id_of_a_schema_is_named_so(value: bytes) -> None:
    read = reader_of(ValueFormat(format="avro", registry="shop_registry"), (), "t")
    with pytest.raises(Unusable, match=r"^the message does not begin with the id of a schema$"):
        read(Message(0, 0, 0, None, value))


def test_schemas_may_refer_to_others() -> None:
    read = reader_of(ValueFormat(format="avro", registry="shop_registry"), (), "t")
    bill = b"\2\2x\4"  # 1, "x", 2 in Avro's binary encoding
    expected = {"id": 1, "line": {"sku": "x", "count": {"n": 2}}}
    for id_, value in ((4, bill), (6, b"\0" + bill)):
        (found,) = read(sent(id_, value))
        assert found.fields == expected
    (found,) = read(sent(6, b"\2\2\0"))
    assert found.fields == {"id": 1, "tags": []}
    for id_, says in ((7, "no version 2 of s/shop.Nothing"), (8, "is PROTOBUF, not Avro")):
        with pytest.raises(Unusable, match=says):
            read(sent(id_, bill))


def test_the_rows_of_changes_may_be_of_a_schema_elsewhere() -> None:
    read = reader_of(ValueFormat(format="debezium-avro", registry="shop_registry"), ("id",), "t")
    row = {"id": 1, "amount": Decimal("1.50"), "at": 1_714_557_600_123_456}
    for image in ("before", "after"):
        change = {"before": None, "after": None, "op": "c" if image == "after" else "d", image: row}
        (found,) = read(sent(5, encoded(1, change)[5:]))
        assert found.fields["at"] == "2024-05-01 10:00:00.123456"
        assert found.does == ("insert" if image == "after" else "delete")
    with pytest.raises(Unusable, match="not an object"):
        read(sent(10, b"\2"))


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
        "the message is longer than its schema allows",
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


def test_decimals_whose_scale_differs_by_row(topical: Made) -> None:
    lake = topical(
        "a DECIMAL(20,4), b STRING", format_="debezium-avro, registry: shop_registry", extra=""
    )
    rows = [
        {"a": {"scale": scale, "value": value}, "b": {"scale": scale, "value": value}}
        for scale, value in ((0, b"\x05"), (2, b"\xff\x38"), (-2, b"\x07"))
    ]
    rows[0]["b"] = None
    lake.send(*(encoded(9, {"before": None, "after": row, "op": "c"}) for row in rows))
    lake.take()
    found = {str(row["a"]): row["b"] for row in lake.values()}
    assert found == {"5.0000": None, "-2.0000": "-2.00", "700.0000": "700"}
