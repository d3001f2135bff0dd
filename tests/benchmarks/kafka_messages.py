"""Messages of about 200 bytes for the benchmarks of topics, in every format."""

import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fastavro import parse_schema, schemaless_writer
from google.protobuf.message_factory import GetMessageClass
from tests.support.protobuf import descriptors, file
from tests.support.protobuf import message as message_type

from sluice.sources import MessageFormat, ValueFormat
from sluice.sources.kafka.schemas import pool_of

FORMATS: tuple[MessageFormat, ...] = ("json", "debezium-json", "avro", "debezium-avro", "protobuf")
COLUMNS = {
    "order_id": "BIGINT",
    "customer_id": "BIGINT",
    "amount": "DECIMAL(12,2)",
    "at": "TIMESTAMP",
    "note": "STRING",
}


def _record(name: str, types: dict[str, Any]) -> dict[str, Any]:
    fields = [{"name": field, "type": type_} for field, type_ in types.items()]
    return {"type": "record", "name": name, "fields": fields}


ROW = _record("Row", {n: "long" if n.endswith("_id") else "string" for n in COLUMNS})
CHANGE = _record("Change", {"before": ["null", ROW], "after": ["null", "Row"], "op": "string"})
SCHEMAS = {1: _record("Key", {"order_id": "long"}), 2: ROW, 3: CHANGE}
PARSED = {id_: parse_schema(schema) for id_, schema in SCHEMAS.items()}
REGISTERED = {f"/schemas/ids/{n}": {"schema": json.dumps(s)} for n, s in SCHEMAS.items()}
ORDER = message_type("Row", *(f"{'int64' if n.endswith('_id') else 'string'} {n}" for n in COLUMNS))
ROW_FILE = file("row.proto", "", ORDER)
ROW_CLASS = GetMessageClass(pool_of([ROW_FILE]).FindMessageTypeByName("Row"))


def message(n: int, format_: MessageFormat) -> tuple[bytes, bytes]:
    """Return the nth message's key and value; a change holds a row of 200 bytes of JSON."""
    at = f"2024-05-{1 + n % 28:02} 10:00:00"
    row = {"order_id": n, "customer_id": n % 9973, "amount": f"{n % 1000}.25", "at": at}
    row["note"] = "x" * (200 - len(json.dumps({**row, "note": ""})))
    change = {"op": "c", "before": None, "after": row}
    sent = change if format_.startswith("debezium") else row
    if format_ == "protobuf":
        return b"", ROW_CLASS(**row).SerializeToString()
    if format_.endswith("avro"):
        schema = 3 if format_.startswith("debezium") else 2
        return _encoded(1, {"order_id": n}), _encoded(schema, sent)
    return json.dumps({"order_id": n}).encode(), json.dumps(sent).encode()


def _encoded(schema: int, value: Any) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, PARSED[schema], value)
    return b"\0" + schema.to_bytes(4, "big") + out.getvalue()


def value_of(format_: MessageFormat) -> ValueFormat:
    """Return the declaration of a format's messages."""
    if format_.endswith("avro"):
        return ValueFormat(format=format_, registry="bench_registry")
    if format_ != "protobuf":
        return ValueFormat(format=format_)
    with TemporaryDirectory() as folder:
        Path(folder, "row.desc").write_bytes(descriptors(ROW_FILE))
        given = {"format": format_, "files": ["row.desc"], "message": "Row"}
        return ValueFormat.model_validate(given, context={"folder": Path(folder)})
