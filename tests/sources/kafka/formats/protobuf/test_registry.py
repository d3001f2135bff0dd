"""Topics of protobuf, with types in a stand-in for Confluent's registry."""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from tests.support.protobuf import CLASS, ITEM, ORDER
from tests.support.registry import registry

from sluice.sources import ValueFormat
from sluice.sources.kafka.records import FormatReader, Message, Unusable
from sluice.sources.kafka.rows import reader_of


def sent(value: bytes | None, key: bytes | None = None) -> Message:
    return Message(0, 5, 0, key, value)


def fields(read: FormatReader, value: bytes) -> Mapping[str, Any]:
    (found,) = read(sent(value))
    return found.fields


def serialized(file: FileDescriptorProto) -> str:
    unnamed = FileDescriptorProto.FromString(file.SerializeToString())
    unnamed.name = "default"
    return b64encode(unnamed.SerializeToString()).decode()


REFERENCE = {"name": "shop/item.proto", "subject": "shop/item", "version": 3}
ANSWERS = {
    "/schemas/ids/1?format=serialized": {
        "schemaType": "PROTOBUF",
        "schema": serialized(ORDER),
        "references": [REFERENCE],
    },
    "/subjects/shop%2Fitem/versions/3?format=serialized": {"schema": serialized(ITEM)},
    "/schemas/ids/2?format=serialized": {"schema": '"long"'},
    "/schemas/ids/3?format=serialized": {"schemaType": "PROTOBUF", "schema": 'syntax = "proto3";'},
    "/schemas/ids/4?format=serialized": {"schemaType": "PROTOBUF", "schema": serialized(ORDER)},
    "/schemas/ids/5?format=serialized": {
        "schemaType": "PROTOBUF",
        "schema": serialized(ORDER),
        "references": [{**REFERENCE, "version": 9}],
    },
}


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[FormatReader]:
    with registry(ANSWERS) as address:
        monkeypatch.setenv("AIRFLOW_CONN_SHOP_REGISTRY", address)
        value = ValueFormat(format="protobuf", registry="shop_registry")
        yield reader_of(value, ("n",), "shop.orders")


def framed(schema: int, numbers: bytes, value: bytes) -> bytes:
    return b"\0" + schema.to_bytes(4, "big") + numbers + value


def test_the_registry_says_which_message_it_is(registered: FormatReader) -> None:
    order = CLASS(a_int64=7)
    order.items.add(sku="x", cents=150)
    found = fields(registered, framed(1, b"\x02\x02", order.SerializeToString()))
    assert (found["a_int64"], found["items"]) == (7, [{"sku": "x", "cents": 150}])
    assert fields(registered, framed(1, b"\0", b"\x08\x05")) == {"other": 5}
    assert fields(registered, framed(1, b"\x02\x00", b"\x08\x05")) == {"other": 5}
    assert fields(registered, framed(1, b"\x04\x02\x00", b"\x08\x05")) == {"n": 5}


@pytest.mark.parametrize("key", [framed(1, b"\x04\x02\x00", b"\x08\x05"), b"5", b'{"n": 5}'])
def test_tombstones_have_a_message_or_text_as_key(registered: FormatReader, key: bytes) -> None:
    (found,) = registered(sent(None, key))
    assert (str(found.fields["n"]), found.does) == ("5", "delete")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "does not begin with the id of a schema"),
        (b"\0\0\0\0\1", "does not begin with the id of a schema"),
        (b'{"id": 1}', "does not begin with the id of a schema"),
        (framed(99, b"\0", b""), "the schema registry has no schema 99"),
        (framed(2, b"\0", b""), "schema 2 is of AVRO, not of protobuf"),
        (framed(3, b"\0", b""), r"gives schema 3 without \?format=serialized"),
        (framed(4, b"\0", b""), "schema 4 can't be read: .*shop/item.proto, which is missing"),
        (framed(5, b"\0", b""), "has no version 9 of shop/item"),
        (framed(1, b"\x02\x08", b""), r"schema 1 has no message \(4,\)"),
        (framed(1, b"\x04\x02\x08", b""), r"schema 1 has no message \(1, 4\)"),
        (framed(1, b"\x01", b""), "gives its type by -1 numbers"),
        (framed(1, b"\x02\x01", b""), "type has the number -1"),
        (framed(1, b"\x04\x02", b""), "ends within the numbers of its type"),
        (framed(1, b"\xff" * 12, b""), "ends within the numbers of its type"),
        (framed(1, b"\x02\x02", b"\xff"), r"the message is not a shop\.Order"),
    ],
)
def test_untyped_messages_are_unusable(registered: FormatReader, data: bytes, says: str) -> None:
    for _ in range(2):
        with pytest.raises(Unusable, match=says):
            registered(sent(data))
