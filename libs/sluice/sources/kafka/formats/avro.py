"""Messages of Avro: with the id of a schema in the registry, or without a registry.

The registry's have a zero byte and the schema's id before the encoded value. Others are bare
values, single objects, or containers of rows. The schema of bare values is in the last of the
declared files; the others define types for it. Each file of single objects is a version of the
schema; a message names its version by a fingerprint. Containers bring their schemas.
"""

import io
import json
from collections.abc import Mapping, Sequence
from functools import partial
from secrets import token_bytes
from typing import Any, NamedTuple

from fastavro import reader, schemaless_reader, schemaless_writer
from fastavro.schema import (
    SchemaParseException,
    UnknownType,
    fingerprint,
    parse_schema,
    to_parsing_canonical_form,
)

from sluice.sources.kafka.formats.avro_columns import changes_of, columns_of_record, plain_record
from sluice.sources.kafka.formats.debezium import (
    VALUES,
    Changes,
    ConnectType,
    Envelope,
    Envelopes,
    by_columns,
    debezium,
)
from sluice.sources.kafka.formats.json import parse_text
from sluice.sources.kafka.formats.records import (
    ArrowFields,
    FormatReader,
    SparkTypes,
    Unusable,
    plain,
    several,
)
from sluice.sources.kafka.formats.registry import Registry
from sluice.sources.kafka.formats.schemas import parse_files
from sluice.sources.spec import ValueFormat

PREFIX = 5  # bytes before the value
MARK = 16  # bytes after it, when many are decoded at once


class Parsed(NamedTuple):
    """A schema as the field of a record, and the meaning of its columns in Debezium; or its fault.

    fastavro finds types of other schemas by names only within a record. `marked`: the schema of
    many values, if they are records; `record`: their fields, if all are plain; `changes`: the way
    to read many, if they are plain envelopes of Debezium.
    """

    schema: Any
    row: Mapping[str, ConnectType]
    after: Mapping[str, ConnectType]
    fault: str = ""
    marked: Any = None
    record: Mapping[str, Any] | None = None
    changes: Envelopes | None = None


class Schemas(dict[bytes, Parsed]):
    """Schemas by the prefixes of messages; the registry is asked once for each."""

    def __init__(self, registry: Registry) -> None:
        super().__init__()
        self._registry = registry

    def __missing__(self, prefix: bytes) -> Parsed:
        try:
            self[prefix] = self._parse(prefix)
        except Unusable as fault:
            self[prefix] = Parsed(None, {}, {}, str(fault))
        return self[prefix]

    def _parse(self, prefix: bytes) -> Parsed:
        if len(prefix) < PREFIX or prefix[0] != 0:
            raise Unusable("the message does not begin with the id of a schema")
        schema_id = int.from_bytes(prefix[1:], "big")
        found = self._registry.schema(schema_id)
        if found.get("schemaType", "AVRO") != "AVRO":
            raise Unusable(f"schema {schema_id} is {found['schemaType']}, not Avro")
        named: dict[str, Any] = {}
        try:
            for _, _, other in self._registry.references(found):
                parse_schema(json.loads(other["schema"]), named_schemas=named)
            written = _record("_sluice_one", {"value": json.loads(found["schema"])})
            one: Any = parse_schema(written, named_schemas=named)
        except (SchemaParseException, UnknownType, ValueError) as fault:
            raise Unusable(f"schema {schema_id} can't be read: {fault}") from None
        schema = one["fields"][0]["type"]
        image = _meanings(_image(schema, named))
        marked, record = _mark_schema(schema, named), plain_record(schema, named)
        changes = changes_of(record, _image(schema, named), image) if record else None
        return Parsed(one, _meanings(schema), image, "", marked, record, changes)


def avro_reader(value: ValueFormat, key: tuple[str, ...], table: str) -> FormatReader:
    """Return the reader of messages whose schemas the registry has."""
    schemas = Schemas(Registry.of(value, table))

    def read(data: bytes) -> Any:
        return _decode(schemas[data[:PREFIX]], data)

    def read_key(data: bytes) -> Any:
        found = read(data)
        return Envelope(found, schemas[data[:PREFIX]].row) if isinstance(found, dict) else found

    # Columns and changes of values of one plain schema; None if that is not sure.

    def changes(values: Sequence[bytes], types: SparkTypes) -> Changes | None:
        parsed = _schema_of_all(schemas, values)
        return parsed.changes(values, types) if parsed and parsed.changes else None

    def columns(values: Sequence[bytes], types: SparkTypes) -> ArrowFields | None:
        parsed = _schema_of_all(schemas, values)
        record = parsed.record if parsed else None
        return columns_of_record(record, values, types) if record else None

    if value.is_debezium:
        return debezium(partial(_envelope, schemas), read_key, key, by_columns(changes, key))
    return plain(read, read, key, partial(_values, schemas), columns)


def _values(schemas: Schemas, values: Sequence[bytes]) -> Sequence[Mapping[str, Any]] | None:
    """Return values of one schema, decoded at once; None unless each is one record and whole.

    They are decoded as a list with a random separator after each, which shows its end.
    """
    parsed = _schema_of_all(schemas, values)
    if parsed is None or parsed.marked is None:
        return None
    mark = token_bytes(MARK)
    count = io.BytesIO()
    schemaless_writer(count, "long", len(values))
    data = count.getvalue() + b"".join([value[PREFIX:] + mark for value in values]) + b"\0"
    try:
        found: list[Any] = decode_value(0, parsed.marked, data)["all"]
    except Unusable:
        return None
    is_whole = all(each["mark"] == mark for each in found)
    return [each["value"] for each in found] if is_whole else None


def _schema_of_all(schemas: Schemas, values: Sequence[bytes]) -> Parsed | None:
    prefixes = {value[:PREFIX] for value in values}
    return schemas[prefixes.pop()] if len(prefixes) == 1 else None


def _envelope(schemas: Schemas, data: bytes) -> Envelope:
    parsed = schemas[data[:PREFIX]]
    found = _decode(parsed, data)
    if not isinstance(found, dict):
        raise Unusable("the message is not an object")
    return Envelope(found, parsed.after)


def _decode(parsed: Parsed, data: bytes) -> Any:
    if parsed.fault:
        raise Unusable(parsed.fault)
    return decode_value(PREFIX, parsed.schema, data)["value"]


def _mark_schema(schema: Any, named: Mapping[str, Any]) -> Any:
    """Return the schema of a list of records, each followed by a separator; None for others."""
    if not isinstance(schema, dict) or schema.get("type") != "record":
        return None
    mark = {"type": "fixed", "name": "_sluice_mark", "size": MARK}
    parts = {"value": schema["name"], "mark": mark}
    item = {"type": "array", "items": _record("_sluice_marked", parts)}
    return parse_schema(_record("_sluice_many", {"all": item}), named_schemas=dict(named))


def _record(name: str, types: Mapping[str, Any]) -> dict[str, Any]:
    fields = [{"name": name, "type": type_} for name, type_ in types.items()]
    return {"type": "record", "name": name, "fields": fields}


def _image(schema: Any, named: Mapping[str, Any]) -> Any:
    """Return the record of a row in an envelope, which may only refer to it by name."""
    fields = schema.get("fields", ()) if isinstance(schema, Mapping) else ()
    image = next((_solid(f["type"]) for f in fields if f["name"] == "after"), None)
    return named.get(image) if isinstance(image, str) else image


def _solid(type_: Any) -> Any:
    if isinstance(type_, list):
        return next((each for each in type_ if each != "null"), None)
    return type_


def _meanings(schema: Any) -> Mapping[str, ConnectType]:
    """Return the meanings of a record's columns: Connect's names of their types."""
    fields = schema.get("fields", ()) if isinstance(schema, Mapping) else ()
    known = {}
    for field in fields:
        type_ = _solid(field["type"])
        if isinstance(type_, Mapping):  # a named type that was given before is called by its name
            type_ = None if "logicalType" in type_ else type_.get("connect.name")
        known[field["name"]] = type_
    return {name: ConnectType(of, {}) for name, of in known.items() if of in VALUES}


MARKER, HEADER = b"\xc3\x01", 10  # bytes before a single object: the marker and a fingerprint


def avro_file_reader(value: ValueFormat, key: tuple[str, ...]) -> FormatReader:
    """Return the reader of messages whose schemas are in files, or in the messages."""
    if value.encoding == "container":
        return several(_of_container, parse_text, key)
    schemas = parse_files(value)
    if value.encoding != "single-object":
        return plain(partial(decode_value, 0, schemas[-1]), parse_text, key)
    forms = [to_parsing_canonical_form(schema) for schema in schemas]
    prints = [bytes.fromhex(fingerprint(form, "CRC-64-AVRO")) for form in forms]
    known = dict(zip(prints, schemas, strict=True))
    return plain(partial(_of_single_object, known), parse_text, key)


def _of_single_object(known: Mapping[bytes, Any], data: bytes) -> Any:
    if data[:2] != MARKER or len(data) < HEADER:
        raise Unusable("the message is not an Avro single object: it does not begin with C3 01")
    named = data[2:HEADER]
    if named not in known:
        raise Unusable(f"none of `files` has the schema with the fingerprint {named.hex()}")
    return decode_value(HEADER, known[named], data)


def _of_container(data: bytes) -> list[Any]:
    try:
        return list(reader(io.BytesIO(data)))
    except Exception as fault:  # noqa: BLE001 # fastavro raises whatever its decoders do
        raise Unusable(f"the message is not an Avro container file: {fault!r:.200}") from None


def decode_value(start: int, schema: Any, data: bytes) -> Any:
    """Return the value that begins there. Raises Unusable unless it fits the schema completely."""
    rest = io.BytesIO(data)
    rest.seek(start)
    try:
        found = schemaless_reader(rest, schema, None)
    except Exception as fault:  # noqa: BLE001 # fastavro raises whatever its decoders do
        raise Unusable(f"the message does not fit its schema: {fault!r:.200}") from None
    if rest.tell() < len(data):
        raise Unusable("the message is longer than its schema allows")
    return found
