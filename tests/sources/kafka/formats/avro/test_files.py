"""Topics of Avro without a registry: schemas are in files, or in the messages."""

import io
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer, writer
from fastavro.schema import fingerprint, to_parsing_canonical_form
from fastavro.utils import generate_many
from pydantic import ValidationError
from pyspark.sql.types import LongType, StringType
from tests.sources.kafka.conftest import Topical

from broker import Broker
from sluice.declare.project import load
from sluice.errors import ConfigError
from sluice.sources import ValueFormat
from sluice.sources.kafka.records import FormatReader, Message, Unusable, arrange_messages
from sluice.sources.kafka.rows import FAULT, ID, DecodedColumn, decode_all, reader_of

Schema = dict[str, Any]
MONEY = {"type": "record", "name": "shop.Money", "fields": [{"name": "cents", "type": "long"}]}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}


def record(**types: Any) -> Schema:
    fields = [{"name": name, "type": type_} for name, type_ in types.items()]
    return {"type": "record", "name": "shop.Order", "fields": fields}


ORDER = record(
    id="long",
    price=["null", "shop.Money"],
    amount=DECIMAL,
    state={"type": "enum", "name": "shop.State", "symbols": ["NEW", "PAID"]},
    at={"type": "long", "logicalType": "timestamp-micros"},
    tags={"type": "array", "items": "string"},
    of={"type": "map", "values": "double"},
    raw="bytes",
)


def binary(schema: Schema, row: Mapping[str, Any], *named: Schema) -> bytes:
    known: dict[str, Any] = {}
    for each in named:
        parse_schema(each, named_schemas=known)
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(schema, named_schemas=known), row)
    return out.getvalue()


def single(schema: Schema, row: Mapping[str, Any]) -> bytes:
    header = fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO")
    return b"\xc3\x01" + bytes.fromhex(header) + binary(schema, row)


def container(schema: Schema, *rows: Mapping[str, Any]) -> bytes:
    out = io.BytesIO()
    writer(out, parse_schema(schema), rows)
    return out.getvalue()


def declared(folder: Path, *schemas: Schema, **how: Any) -> ValueFormat:
    files = [f"v{n}.avsc" for n, _ in enumerate(schemas)]
    for name, schema in zip(files, schemas, strict=True):
        (folder / name).write_text(json.dumps(schema))
    fields = {"format": "avro", **({"files": files} if files else {}), **how}
    return ValueFormat.model_validate(fields, context={"folder": folder})


def reader(folder: Path, *schemas: Schema, key: tuple[str, ...] = (), **how: Any) -> FormatReader:
    return reader_of(declared(folder, *schemas, **how), key, "shop.orders")


def message(value: bytes | None, key: bytes | None = None) -> Message:
    return Message(0, 5, 0, key, value)


def test_values_are_what_fastavro_reads(tmp_path: Path) -> None:
    read = reader(tmp_path, MONEY, ORDER)
    known: dict[str, Any] = {}
    schema = [parse_schema(each, named_schemas=known) for each in (MONEY, ORDER)][1]
    for row in generate_many(schema, 200):
        out = io.BytesIO()
        schemaless_writer(out, schema, row)
        (found,) = read(message(out.getvalue()))
        assert found.fields == schemaless_reader(io.BytesIO(out.getvalue()), schema, None)


def test_a_single_object_names_the_version_of_its_schema(tmp_path: Path) -> None:
    old, new, other = record(id="long"), record(id="long", v="string"), record(v="int")
    read = reader(tmp_path, old, new, encoding="single-object")
    for schema, row in ((old, {"id": 1}), (new, {"id": 2, "v": "x"})):
        (found,) = read(message(single(schema, row)))
        assert found.fields == row
    with pytest.raises(Unusable, match="none of `files` has the schema with the fingerprint"):
        read(message(single(other, {"v": 1})))
    for broken in (b"", b"\xc3\x01\0", binary(old, {"id": 1})):
        with pytest.raises(Unusable, match="does not begin with C3 01"):
            read(message(broken))


def test_a_container_gives_all_of_its_rows_in_order(tmp_path: Path) -> None:
    schema = record(id="long")
    sent = [container(schema, *({"id": n} for n in range(120))), b"Obj\1x", container(schema)]
    columns = [DecodedColumn("id", LongType(), StringType())]
    read = reader(tmp_path, encoding="container")
    rows = decode_all("t", columns, arrange_messages(map(message, sent)), read).to_pylist()
    assert "not an Avro container file" in rows.pop()[FAULT]
    assert [row["id"] for row in sorted(rows, key=lambda row: row[ID])] == [*range(120)]


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (b"", "does not fit its schema"),
        (b"\x02x", "longer than its schema allows"),
        (b"\xff", "does not fit its schema"),
    ],
)
def test_broken_values_are_unusable(tmp_path: Path, broken: bytes, reason: str) -> None:
    with pytest.raises(Unusable, match=reason):
        reader(tmp_path, record(id="long"))(message(broken))


@pytest.mark.parametrize(
    ("key", "value"),
    [(b"7", "7"), (b'{"id": 7}', "7"), (b'"7"', "7"), (b"007", "007"), (b"o-7", "o-7")],
)
def test_the_key_of_a_tombstone_is_json_or_a_text(tmp_path: Path, key: bytes, value: str) -> None:
    (found,) = reader(tmp_path, record(id="long"), key=("id",))(message(None, key))
    assert (str(found.fields["id"]), found.does) == (value, "delete")


@pytest.mark.parametrize("key", [b"\xff", b'{"id": 7', b'{"id": 7, "id": 8}'])
def test_a_broken_key_is_unusable(tmp_path: Path, key: bytes) -> None:
    with pytest.raises(Unusable):
        reader(tmp_path, record(id="long"), key=("id",))(message(None, key))


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({}, "`value.registry` is missing: .* or `value.files`"),
        ({"files": ["x.avsc"]}, "can't read 'x.avsc': No such file"),
        ({"files": ["../x.avsc"]}, "is not in the folder"),
        ({"files": ["a.avsc"], "registry": "r"}, "in the registry: leave `files` out"),
        ({"encoding": "single-object", "registry": "r"}, "in the registry: leave `encoding` out"),
        ({"encoding": "container", "registry": "r"}, "a container contains its schema"),
        ({"format": "debezium-avro"}, "connection to the schema registry$"),
        ({"format": "json", "files": ["a"]}, "`value.files` is for avro, protobuf, not for json"),
    ],
)
def test_schemas_come_from_one_place(tmp_path: Path, how: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as raised:
        declared(tmp_path, **how)
    (error,) = raised.value.errors()
    assert re.search(says, error["msg"])


SOURCE = """\
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  orders:
    kafka: {{topic: orders, connection: shop_kafka}}
    value: {{format: avro, files: [order.avsc]{how}}}
    schema: id BIGINT, total BIGINT
"""


@pytest.mark.parametrize(
    ("file", "how", "says"),
    [
        ("{", "", "orders.value.files: order.avsc is not an Avro schema"),
        ('"nope"', "", "order.avsc: type nope is not defined before it is used"),
        ('"long"', "", "order.avsc: the schema of a message must be a record"),
        (
            json.dumps(record(id="long", totl="long")),
            "",
            "shop.Order has no such field: unknown field 'total'; did you mean 'totl'?",
        ),
        (json.dumps(record(id="long")), ", encoding: single-object", "unknown field 'total'"),
    ],
)
def test_validate_names_wrong_files(tmp_path: Path, file: str, how: str, says: str) -> None:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "sluice.yaml").write_text("lake: lake\n")
    (tmp_path / "pipelines" / "order.avsc").write_text(file)
    (tmp_path / "pipelines" / "shop.yaml").write_text(SOURCE.format(how=how))
    with pytest.raises(ConfigError) as raised:
        load(tmp_path)
    assert says in str(raised.value)


def test_messages_with_a_schema_in_a_file_become_rows(
    topical: Callable[..., Topical], broker: Broker, tmp_path: Path
) -> None:
    topic = broker.topic("avro_files", 1)
    folder = tmp_path / topic / "config" / "pipelines"
    folder.mkdir(parents=True)
    schema = record(
        id="long", amount=DECIMAL, at={"type": "long", "logicalType": "timestamp-micros"}
    )
    (folder / "order.avsc").write_text(json.dumps(schema))
    lake = topical(
        "id BIGINT, amount DECIMAL(12,2), at TIMESTAMP",
        format_="avro, files: [order.avsc]",
        extra="key: [id]",
        topic=topic,
    )
    row = {"id": 1, "amount": Decimal("1.50"), "at": datetime(2024, 5, 1, 10, 0, 0, 123456, UTC)}
    late = binary(schema, {**row, "id": 2})
    lake.send(binary(schema, row), late, b"", late + b"x", (b"2", None))
    lake.take()
    (found,) = lake.values()
    assert {**found, "amount": str(found["amount"])} == {**row, "amount": "1.50"}
    reasons = sorted(q["reason"].partition(":")[0] for q in lake.quarantine())
    assert reasons == [
        "the message does not fit its schema",
        "the message is longer than its schema allows",
    ]
