"""Messages of Avro without a registry: bare values, single objects, or containers of rows.

The schema of bare values is in the last of the declared files; the others define types for it. Each
file of single objects is a version of the schema; a message names its version by a fingerprint.
Containers bring their schemas.
"""

import io
import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from fastavro import reader
from fastavro.schema import (
    SchemaParseException,
    UnknownType,
    fingerprint,
    parse_schema,
    to_parsing_canonical_form,
)

from sluice.sources.kafka.formats.avro.value import decoded_from
from sluice.sources.kafka.formats.json.messages import of_text
from sluice.sources.kafka.formats.records import FormatReader, Unusable, plain, several
from sluice.sources.topic import ValueFormat

MARKER, HEADER = b"\xc3\x01", 10  # bytes before a single object: the marker and a fingerprint


def avro_file_reader(value: ValueFormat, key: tuple[str, ...]) -> FormatReader:
    """Return the reader of messages whose schemas are in files, or in the messages."""
    if value.encoding == "container":
        return several(_of_container, of_text, key)
    schemas = parsed(value)
    if value.encoding != "single-object":
        return plain(partial(decoded_from, 0, schemas[-1]), of_text, key)
    known = {_fingerprint(schema): schema for schema in schemas}
    return plain(partial(_of_single_object, known), of_text, key)


def avro_fields(value: ValueFormat) -> tuple[str, frozenset[str]]:
    """Return the name of a message's record, and its fields: of single objects in any version.

    Raises ValueError if a file is not a schema, or if messages would not be records.
    """
    schemas = parsed(value)
    records = schemas if value.encoding == "single-object" else schemas[-1:]
    for (name, _), schema in zip(value.schemas[-len(records) :], records, strict=True):
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise ValueError(f"{name}: the schema of a message must be a record")
    return records[-1]["name"], frozenset(f["name"] for r in records for f in r["fields"])


def parsed(value: ValueFormat) -> list[Any]:
    """Return the schemas of the files as fastavro takes them. Raises ValueError for no schema."""
    named: dict[str, Any] = {}
    return [
        _parsed(name, content, {} if value.encoding == "single-object" else named)
        for name, content in value.schemas
    ]


def _parsed(name: str, content: bytes, named: dict[str, Any]) -> Any:
    try:
        return parse_schema(json.loads(content), named_schemas=named)
    except UnknownType as fault:
        raise ValueError(f"{name}: type {fault.name} is not defined before it is used") from None
    except (SchemaParseException, ValueError, KeyError, TypeError, AttributeError) as fault:
        raise ValueError(f"{name} is not an Avro schema: {fault}") from None


def _fingerprint(schema: Any) -> bytes:
    return bytes.fromhex(fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO"))


def _of_single_object(known: Mapping[bytes, Any], data: bytes) -> Any:
    if data[:2] != MARKER or len(data) < HEADER:
        raise Unusable("the message is not an Avro single object: it does not begin with C3 01")
    named = data[2:HEADER]
    if named not in known:
        raise Unusable(f"none of `files` has the schema with the fingerprint {named.hex()}")
    return decoded_from(HEADER, known[named], data)


def _of_container(data: bytes) -> list[Any]:
    try:
        return list(reader(io.BytesIO(data)))
    except Exception as fault:  # noqa: BLE001 # fastavro raises whatever its decoders do
        raise Unusable(f"the message is not an Avro container file: {fault!r:.200}") from None
