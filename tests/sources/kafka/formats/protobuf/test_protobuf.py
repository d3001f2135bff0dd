"""Topics of protobuf, with types in files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message_factory import GetMessageClass
from pydantic import ValidationError
from tests.sources.kafka.conftest import Topical
from tests.support.protobuf import CLASS, ITEM, ORDER, descriptors, file, message

from broker import Broker
from sluice.declare.project import load
from sluice.errors import ConfigError
from sluice.sources import ValueFormat
from sluice.sources.kafka.protobuf import value_of
from sluice.sources.kafka.records import Message, Unusable
from sluice.sources.kafka.rows import reader_of
from sluice.sources.kafka.schemas import declared_type

DECLARED = {"format": "protobuf", "files": ["order.desc"], "message": "shop.Order"}


def declared(folder: Path, *files: FileDescriptorProto, **how: Any) -> ValueFormat:
    (folder / "order.desc").write_bytes(descriptors(*files))
    return ValueFormat.model_validate({**DECLARED, **how}, context={"folder": folder})


def sent(value: bytes | None, key: bytes | None = None) -> Message:
    return Message(0, 5, 0, key, value)


def test_messages_that_are_none_are_unusable(tmp_path: Path) -> None:
    read = reader_of(declared(tmp_path, ITEM, ORDER), (), "shop.orders")
    bad_text = CLASS(a_string="abc").SerializeToString().replace(b"abc", b"\xff\xfeb")
    for broken in (b"\xff", b'{"id": 1}', CLASS(a_string="abc").SerializeToString()[:-1], bad_text):
        with pytest.raises(Unusable, match=r"the message is not a shop\.Order"):
            read(sent(broken))
    late = CLASS()
    late.at.seconds = 10**15
    with pytest.raises(Unusable, match="1000000000000000 seconds are not a time"):
        read(sent(late.SerializeToString()))
    old = file("old.proto", "shop", message("Order", "required int32 id"), syntax="proto2")
    with pytest.raises(Unusable, match="it lacks id"):
        reader_of(declared(tmp_path, old), (), "shop.orders")(sent(b""))


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"files": ["x.desc"]}, "can't read 'x.desc'"),
        ({"message": ""}, "`value.message` is missing: the full name of the message"),
        ({"registry": "r"}, "in the registry: leave `files` out"),
        ({"encoding": "binary"}, "`value.encoding` is for avro, not for protobuf"),
        ({"files": []}, "`value.registry` is missing"),
    ],
)
def test_a_value_has_its_type_from_one_place(tmp_path: Path, how: Any, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        declared(tmp_path, ITEM, ORDER, **how)


SOURCE = """\
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  orders:
    kafka: {{topic: orders, connection: shop_kafka}}
    value: {{format: protobuf, files: [order.desc], message: {message}}}
    schema: sku STRING, cents BIGINT
"""


@pytest.mark.parametrize(
    ("content", "named", "says"),
    [
        (b'syntax = "proto3";', "shop.Item", "order.desc is not a descriptor set; write it with"),
        (b"", "shop.Item", "order.desc is not a descriptor set"),
        (
            descriptors(ORDER),
            "shop.Order",
            "shop/order.proto imports shop/item.proto, which is missing; write it with: protoc",
        ),
        (
            descriptors(ITEM),
            "shop.Itm",
            "orders.value.message: unknown message 'shop.Itm'; did you mean 'shop.Item'?",
        ),
        (
            descriptors(file("i.proto", "shop", message("Item", "string sku", "int64 cent"))),
            "shop.Item",
            "orders.schema: shop.Item has no such field: unknown field 'cents'; did you mean",
        ),
        (
            descriptors(file("i.proto", "shop", message("Item", ".shop.Gone gone"))),
            "shop.Item",
            "i.proto can't be used: ",
        ),
    ],
)
def test_validate_names_wrong_files(tmp_path: Path, content: bytes, named: str, says: str) -> None:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "sluice.yaml").write_text("lake: lake\n")
    (tmp_path / "pipelines" / "order.desc").write_bytes(content)
    (tmp_path / "pipelines" / "shop.yaml").write_text(SOURCE.format(message=named))
    with pytest.raises(ConfigError) as raised:
        load(tmp_path)
    assert says in str(raised.value)


def test_a_message_inside_another_can_be_named(tmp_path: Path) -> None:
    value = declared(tmp_path, ITEM, ORDER, message="shop.Order.Inner")
    inner = GetMessageClass(declared_type(value))
    assert value_of(inner, inner(n=3).SerializeToString()) == {"n": 3}


def test_messages_become_rows_of_the_declared_types(
    topical: Callable[..., Topical], broker: Broker, tmp_path: Path
) -> None:
    topic = broker.topic("protobuf", 1)
    folder = tmp_path / topic / "config" / "pipelines"
    folder.mkdir(parents=True)
    (folder / "order.desc").write_bytes(descriptors(ITEM, ORDER))
    lake = topical(
        "a_int64 BIGINT, a_bytes BINARY, a_float FLOAT, state STRING, at TIMESTAMP, w_int32 INT, "
        "o_string STRING, items ARRAY<STRUCT<sku: STRING, cents: BIGINT>>, rates "
        "MAP<STRING, DOUBLE>, more STRING, a_int32 TINYINT",
        format_="protobuf, files: [order.desc], message: shop.Order",
        extra="key: [a_int64]",
        topic=topic,
    )
    order = CLASS(a_int64=2**63 - 1, a_bytes=b"\xff\0", a_float=0.1, state=1)
    order.at.seconds, order.at.nanos = 1_714_557_600, 123_456_789
    order.w_int32.value = 0
    order.items.add(sku="x", cents=150)
    order.rates["a"] = 1.5
    order.more["b"] = [1, "two"]
    huge = CLASS(a_int64=1, a_int32=1000)
    gone = CLASS(a_int64=5)
    values = (each.SerializeToString() for each in (order, huge, gone))
    lake.send(*values, b"\xff", (b"5", None))
    lake.take()
    (found,) = lake.values()
    assert found["at"].isoformat() == "2024-05-01T10:00:00.123456+00:00"
    assert found["a_float"] == pytest.approx(0.1)
    assert {
        name: found[name] for name in ("a_int64", "a_bytes", "state", "w_int32", "o_string")
    } == {
        "a_int64": 2**63 - 1,
        "a_bytes": b"\xff\0",
        "state": "PAID",
        "w_int32": 0,
        "o_string": None,
    }
    assert found["items"] == [{"sku": "x", "cents": 150}]
    assert (dict(found["rates"]), json.loads(found["more"])) == ({"a": 1.5}, {"b": [1, "two"]})
    reasons = sorted(q["reason"] for q in lake.quarantine())
    assert len(reasons) == 2
    assert "a_int32" in reasons[0]
    assert reasons[1] == "the message is not a shop.Order"
