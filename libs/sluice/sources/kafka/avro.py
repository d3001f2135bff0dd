"""Messages of Avro: a zero byte, the id of a schema in the registry, and the encoded value."""

import io
import json
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from fastavro import schemaless_reader
from fastavro.schema import SchemaParseException, UnknownType, parse_schema

from sluice.sources.kafka.connection import registry_address
from sluice.sources.kafka.debezium import Envelope, Meaning, debezium
from sluice.sources.kafka.records import Reader, Unusable, plain
from sluice.sources.kafka.registry import schema_text
from sluice.sources.kafka.spec import Value

PREFIX = 5  # bytes before the value


class Parsed(NamedTuple):
    """A schema as fastavro takes it, and what its columns mean to Debezium; or its fault."""

    schema: Any
    row: Mapping[str, Meaning]
    after: Mapping[str, Meaning]
    fault: str = ""


class Schemas(dict[bytes, Parsed]):
    """Schemas by the prefixes of messages; the registry is asked once for each."""

    def __init__(self, address: str, user: str, password: str) -> None:
        super().__init__()
        self._ask = partial(schema_text, address, user, password)

    def __missing__(self, prefix: bytes) -> Parsed:
        try:
            self[prefix] = self._parsed(prefix)
        except Unusable as fault:
            self[prefix] = Parsed(None, {}, {}, str(fault))
        return self[prefix]

    def _parsed(self, prefix: bytes) -> Parsed:
        if len(prefix) < PREFIX or prefix[0] != 0:
            raise Unusable("the message does not begin with the id of a schema")
        schema_id = int.from_bytes(prefix[1:], "big")
        written = json.loads(self._ask(schema_id))
        try:
            schema = parse_schema(written)
        except (SchemaParseException, UnknownType) as fault:
            raise Unusable(f"schema {schema_id} can't be read: {fault}") from None
        return Parsed(schema, _meanings(written), _meanings(_image(written)))


def avro_reader(value: Value, key: tuple[str, ...], table: str) -> Reader:
    """Return the reader of messages whose schemas the registry has."""
    schemas = Schemas(*registry_address(value.registry, table))
    if value.is_debezium:
        return debezium(partial(_envelope, schemas), partial(_key, schemas), key)
    read = partial(_value, schemas)
    return plain(read, read, key)


def _value(schemas: Schemas, data: bytes) -> Any:
    return _decoded(schemas[data[:PREFIX]], data)


def _envelope(schemas: Schemas, data: bytes) -> Envelope:
    parsed = schemas[data[:PREFIX]]
    found = _decoded(parsed, data)
    if not isinstance(found, dict):
        raise Unusable("the message is no object")
    return Envelope(found, parsed.after)


def _key(schemas: Schemas, data: bytes) -> Any:
    parsed = schemas[data[:PREFIX]]
    found = _decoded(parsed, data)
    return Envelope(found, parsed.row) if isinstance(found, dict) else found


def _decoded(parsed: Parsed, data: bytes) -> Any:
    if parsed.fault:
        raise Unusable(parsed.fault)
    return decoded_from(PREFIX, parsed.schema, data)


def decoded_from(start: int, schema: Any, data: bytes) -> Any:
    """Return the value that begins there. Raises Unusable unless it is of the schema, and whole."""
    rest = io.BytesIO(data)
    rest.seek(start)
    try:
        found = schemaless_reader(rest, schema, None)
    except Exception as fault:  # noqa: BLE001 # fastavro raises whatever its decoders do
        raise Unusable(f"the message does not fit its schema: {fault!r:.200}") from None
    if rest.tell() < len(data):
        raise Unusable("the message is longer than its schema says")
    return found


def _image(schema: Any) -> Any:
    """Return the record of a row in an envelope; `after` may name the record of `before`."""
    after = _field(schema, "after")
    return after if isinstance(after, Mapping) else _field(schema, "before")


def _field(schema: Any, name: str) -> Any:
    """Return the type of a record's field, without null; None if there is none."""
    fields = schema.get("fields", ()) if isinstance(schema, Mapping) else ()
    return next((_solid(f["type"]) for f in fields if f["name"] == name), None)


def _solid(type_: Any) -> Any:
    if isinstance(type_, list):
        return next((each for each in type_ if each != "null"), None)
    return type_


def _meanings(schema: Any) -> Mapping[str, Meaning]:
    """Return the meanings of a record's columns: Connect's names of their types."""
    fields = schema.get("fields", ()) if isinstance(schema, Mapping) else ()
    types = {f["name"]: _solid(f["type"]) for f in fields}
    return {
        name: Meaning(type_["connect.name"], {})
        for name, type_ in types.items()
        if isinstance(type_, Mapping) and "connect.name" in type_ and "logicalType" not in type_
    }
