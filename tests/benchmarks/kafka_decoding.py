"""CPU seconds to decode messages of about 200 bytes into Arrow, without a broker.

python -m tests.benchmarks.kafka_decoding --rows 200000
"""

import argparse
import io
import json
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fastavro import parse_schema, schemaless_writer
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql.types import DataType, DecimalType, LongType, StringType, TimestampType
from tests.benchmarks.kafka import message
from tests.support.protobuf import descriptors, file
from tests.support.protobuf import message as message_type

from sluice.sources.kafka import avro
from sluice.sources.kafka.broker import Message
from sluice.sources.kafka.columns import Column
from sluice.sources.kafka.decoded import decoded_all
from sluice.sources.kafka.protobuf_types import pool_of
from sluice.sources.kafka.readers import reader_of
from sluice.sources.kafka.spec import Format, Value

FORMATS: tuple[Format, ...] = ("json", "debezium-json", "avro", "debezium-avro", "protobuf")
TYPES: dict[str, DataType] = {
    "order_id": LongType(),
    "customer_id": LongType(),
    "amount": DecimalType(12, 2),
    "at": TimestampType(),
    "note": StringType(),
}
COLUMNS = [Column(name, type_, StringType()) for name, type_ in TYPES.items()]


def _record(name: str, types: dict[str, Any]) -> dict[str, Any]:
    fields = [{"name": field, "type": type_} for field, type_ in types.items()]
    return {"type": "record", "name": name, "fields": fields}


ROW = _record("Row", {n: "long" if n.endswith("_id") else "string" for n in TYPES})
CHANGE = _record("Change", {"before": ["null", ROW], "after": ["null", "Row"], "op": "string"})
SCHEMAS = {1: _record("Key", {"order_id": "long"}), 2: ROW, 3: CHANGE}
PARSED = {id_: parse_schema(schema) for id_, schema in SCHEMAS.items()}


ORDER = message_type("Row", *(f"{'int64' if n.endswith('_id') else 'string'} {n}" for n in TYPES))
ROW_FILE = file("row.proto", "", ORDER)
ROW_CLASS = GetMessageClass(pool_of([ROW_FILE]).FindMessageTypeByName("Row"))
FILES = {"row.desc": descriptors(ROW_FILE)}


def _value(format_: Format) -> Value:
    if format_.endswith("avro"):
        return Value(format=format_, registry="bench")
    if format_ != "protobuf":
        return Value(format=format_)
    with TemporaryDirectory() as folder:
        for name, content in FILES.items():
            Path(folder, name).write_bytes(content)
        given = {"format": format_, "files": [*FILES], "message": "Row"}
        return Value.model_validate(given, context={"folder": Path(folder)})


def _encoded(schema: int, value: Any) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, PARSED[schema], value)
    return b"\0" + schema.to_bytes(4, "big") + out.getvalue()


def _message(n: int, format_: Format) -> Message:
    key, value = message(n, "debezium-json" if format_.startswith("debezium") else "json")
    if format_.endswith("avro"):
        schema = 3 if format_.startswith("debezium") else 2
        key, value = _encoded(1, {"order_id": n}), _encoded(schema, json.loads(value))
    if format_ == "protobuf":
        value = ROW_CLASS(**json.loads(value)).SerializeToString()
    return Message(n % 4, n, 1_714_557_600_000, key, value)


def main() -> None:
    """Measure every format."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    rows = parser.parse_args().rows
    os.environ["AIRFLOW_CONN_BENCH"] = "http://none"
    avro.schema_text = lambda *place: json.dumps(SCHEMAS[place[-1]])  # type: ignore[attr-defined]
    for format_ in FORMATS:
        key = ("order_id",) if format_.startswith("debezium") else ()
        reader = reader_of(_value(format_), key, "bench")
        sent = [_message(n, format_) for n in range(rows)]
        began = time.process_time()
        decoded_all("bench", COLUMNS, sent, reader)
        used = time.process_time() - began
        print(f"{format_}: {rows:,} rows, {used:.2f} CPU s, {rows / used:,.0f} rows/s")


if __name__ == "__main__":
    main()
