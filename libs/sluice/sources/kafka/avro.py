"""Messages of Avro: with the id of a schema in the registry, or without a registry.

They are read one by one, or in columns: each field of all messages at once, by NumPy.

Those of the registry have a zero byte and the schema's id before the encoded value. Others are bare
values, single objects, or containers of rows. The schema of bare values is in the last of the
declared files; the others define types for it. Each file of single objects is a version of the
schema; a message names its version by a fingerprint. Containers bring their schemas.

Records of plain fields are read in columns, and envelopes of Debezium with such records. The reader
of single messages gets those that it might refuse or read differently: a number too long, an index
of no type, bytes left over.
"""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from fastavro import reader, schemaless_reader
from fastavro.schema import (
    SchemaParseException,
    UnknownType,
    fingerprint,
    parse_schema,
    to_parsing_canonical_form,
)

from sluice.sources import ValueFormat
from sluice.sources.kafka.connection import Registry
from sluice.sources.kafka.debezium import (
    DECIMAL,
    DIGITS,
    VALUES,
    Changes,
    ConnectType,
    Envelope,
    Envelopes,
    by_columns,
    debezium,
)
from sluice.sources.kafka.json import parse_text
from sluice.sources.kafka.records import (
    ArrowFields,
    FormatReader,
    SparkTypes,
    Unusable,
    make_row_reader,
    several,
)
from sluice.sources.kafka.schemas import parse_files

PREFIX = 5  # bytes before the value


class Parsed(NamedTuple):
    """A schema as the field of a record, and the meaning of its columns in Debezium; or its fault.

    fastavro finds types of other schemas by names only within a record. `record`: its fields, if
    all are plain; `changes`: the way to read many, if they are plain envelopes of Debezium.
    """

    schema: Any
    row: Mapping[str, ConnectType]
    after: Mapping[str, ConnectType]
    fault: str = ""
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
            value = {"name": "value", "type": json.loads(found["schema"])}
            written = {"type": "record", "name": "_sluice_one", "fields": [value]}
            one: Any = parse_schema(written, named_schemas=named)
        except (SchemaParseException, UnknownType, ValueError) as fault:
            raise Unusable(f"schema {schema_id} can't be read: {fault}") from None
        schema = one["fields"][0]["type"]
        image = _meanings(_image(schema, named))
        record = plain_record(schema, named)
        changes = changes_of(record, _image(schema, named), image) if record else None
        return Parsed(one, _meanings(schema), image, "", record, changes)


def avro_reader(value: ValueFormat, key: tuple[str, ...], table: str) -> FormatReader:
    """Return the reader of messages whose schemas the registry has."""
    schemas = Schemas(Registry.of(value, table))

    def read(data: bytes) -> Any:
        return _decode(schemas[data[:PREFIX]], data)

    def read_key(data: bytes) -> Any:
        found = read(data)
        return Envelope(found, schemas[data[:PREFIX]].row) if isinstance(found, dict) else found

    # Columns and changes are of values of one plain schema; None if that is not sure.
    def changes(values: Sequence[bytes], types: SparkTypes) -> Changes | None:
        parsed = _schema_of_all(schemas, values)
        return parsed.changes(values, types) if parsed and parsed.changes else None

    def columns(values: Sequence[bytes], types: SparkTypes) -> ArrowFields | None:
        parsed = _schema_of_all(schemas, values)
        record = parsed.record if parsed else None
        return columns_of_record(record, values, types) if record else None

    if value.is_debezium:
        return debezium(partial(_envelope, schemas), read_key, key, by_columns(changes, key))
    return make_row_reader(read, read, key, by_columns=columns)


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
        return make_row_reader(partial(decode_value, 0, schemas[-1]), parse_text, key)
    forms = [to_parsing_canonical_form(schema) for schema in schemas]
    prints = [bytes.fromhex(fingerprint(form, "CRC-64-AVRO")) for form in forms]
    known = dict(zip(prints, schemas, strict=True))
    return make_row_reader(partial(_of_single_object, known), parse_text, key)


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


PADDING = b"\0" * 16  # padding after all messages, so that no read passes the end
LONGEST = 10  # bytes of a number
PLAIN = ("null", "boolean", "int", "long", "double", "string", "bytes")
SHOWN = ("boolean", "int", "long", "string")  # written the same in any column
Ints = npt.NDArray[np.int64]
RowNumbers = npt.NDArray[np.intp]


class Doubt(Exception):
    """Raised for messages that columns may misread: the reader of single messages gets them."""


def plain_record(schema: Any, named: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the types of a record's fields; None unless each is plain, a record, or that and null.

    `named`: types that the schema refers to by name.
    """
    try:
        found = _plain(schema, named, ())
    except Doubt:
        return None
    return found if isinstance(found, dict) else None


def _plain(type_: Any, named: Mapping[str, Any], within: tuple[str, ...]) -> Any:
    """Return a plain type's name, a list of one and null, or a mapping of a record's fields."""
    match type_:
        case str() if type_ in PLAIN:
            return type_
        case str() if type_ in named and type_ not in within:
            return _plain(named[type_], named, within)
        case [one, other] if (one == "null") != (other == "null"):
            return [_plain(one, named, within), _plain(other, named, within)]
        case {"type": "record", "name": name, "fields": [_, *_] as fields} if name not in within:
            return {f["name"]: _plain(f["type"], named, (*within, name)) for f in fields}
        case {"type": "bytes", "logicalType": "decimal"}:
            return "bytes"
        case {"type": str() as kind} if kind in PLAIN and "logicalType" not in type_:
            return kind
    raise Doubt


def columns_of_record(
    record: Mapping[str, Any], values: Sequence[bytes], types: SparkTypes
) -> ArrowFields | None:
    """Return the declared columns of messages of that record; None unless each is surely whole."""
    found = read_record(record, values) if fits(record, types) else None
    if found is None:
        return None
    lacking = pa.nulls(len(values), pa.string())
    return {name: found[name] if name in record else lacking for name in types}


def read_record(record: Mapping[str, Any], values: Sequence[bytes]) -> ArrowFields | None:
    """Return the fields of messages of that record; None unless each is surely whole."""
    cursor = _Cursor.of(values)
    every = np.arange(len(values))
    try:
        found = {name: cursor.field(type_, every) for name, type_ in record.items()}
        cursor.check_end()
    except (Doubt, pa.ArrowInvalid):
        return None
    return found


def fits(record: Mapping[str, Any], types: SparkTypes) -> bool:
    """True if a record's fields have the same meaning as columns and as texts."""
    return all(_fits(record[name], type_) for name, type_ in types.items() if name in record)


def _fits(schema: Any, type_: Any) -> bool:
    kinds = schema if isinstance(schema, list) else [schema]
    shown = (*SHOWN, "null", *(("double",) if type_.typeName() == "double" else ()))
    return all(isinstance(kind, str) and kind in shown for kind in kinds)


@dataclass
class _Cursor:
    """Places in the data of many messages: where the next field of each begins, and its end."""

    data: npt.NDArray[np.uint8]
    at: Ints
    ends: Ints

    @classmethod
    def of(cls, values: Sequence[bytes]) -> "_Cursor":
        sizes = np.fromiter(map(len, values), np.int64, len(values))
        ends = np.cumsum(sizes)
        data = np.frombuffer(b"".join([*values, PADDING]), np.uint8)
        return cls(data, ends - sizes + PREFIX, ends)

    def field(self, type_: Any, rows: RowNumbers) -> pa.Array:
        match type_:
            case dict():
                parts = [self.field(each, rows) for each in type_.values()]
                return pa.StructArray.from_arrays(parts, list(type_))
            case list():
                return self._read_optional(type_, rows)
        return self._read_kind(type_, rows)

    def _read_optional(self, type_: list[Any], every: RowNumbers) -> pa.Array:
        """Read a field that some messages have: the place of its type is before it."""
        chosen = self._read_numbers(every)
        if ((chosen != 0) & (chosen != 1)).any():
            raise Doubt
        null = type_.index("null")
        rows = np.flatnonzero(chosen != null)
        found = self.field(type_[1 - null], every[rows])
        places = np.zeros(len(every), np.int64)
        places[rows] = np.arange(len(rows))
        return found.take(pa.array(places, mask=chosen == null))

    def check_end(self) -> None:
        """Raise Doubt unless each message was read to its end."""
        if (self.at != self.ends).any():
            raise Doubt

    def _read_kind(self, kind: str, rows: RowNumbers) -> pa.Array:
        match kind:
            case "null":
                return pa.nulls(len(rows), pa.string())
            case "int" | "long":
                return pa.array(self._read_numbers(rows))
            case "boolean":
                found = self._read_bytes(rows, 1)[:, 0]
                if (found > 1).any():
                    raise Doubt
                return pa.array(found == 1)
            case "double":
                return pa.array(self._read_bytes(rows, 8).view("<f8")[:, 0])
        found = self._read_slices(rows)
        return found.cast(pa.string()) if kind == "string" else found

    def _read_numbers(self, rows: RowNumbers) -> Ints:
        """Read a number of each of these messages: seven bits a byte, the last ones last."""
        at, found = self.at[rows], np.zeros(len(rows), np.uint64)
        left = np.arange(len(rows))
        for nth in range(LONGEST):
            byte = self.data[at[left]]
            found[left] |= (byte & 127).astype(np.uint64) << np.uint64(7 * nth)
            at[left] += 1
            if nth == LONGEST - 1 and (byte > 1).any():
                raise Doubt
            left = left[byte > 127]
            if not len(left):
                break
        self._move(rows, at)
        return (found >> np.uint64(1)).astype(np.int64) ^ -(found & np.uint64(1)).astype(np.int64)

    def _read_bytes(self, rows: RowNumbers, size: int) -> npt.NDArray[np.uint8]:
        at = self.at[rows]
        self._move(rows, at + size)
        found: npt.NDArray[np.uint8] = self.data[at[:, None] + np.arange(size)]
        return found

    def _read_slices(self, rows: RowNumbers) -> pa.Array:
        """Read bytes: every other part of the data, which each part's length precedes."""
        sizes = self._read_numbers(rows)
        if (sizes < 0).any() or (sizes > len(self.data)).any():
            raise Doubt
        starts = self.at[rows]
        self._move(rows, starts + sizes)
        bounds = np.zeros(2 * len(rows) + 1, np.int32)
        bounds[1::2], bounds[2::2] = starts, starts + sizes
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self.data)]
        every = pa.Array.from_buffers(pa.binary(), 2 * len(rows), buffers)
        return every.take(pa.array(np.arange(1, 2 * len(rows), 2)))

    def _move(self, rows: RowNumbers, at: Ints) -> None:
        """Advance to these places. Raises Doubt if one is beyond its message's end."""
        if (at > self.ends[rows]).any():
            raise Doubt
        self.at[rows] = at


def changes_of(
    record: Mapping[str, Any], image: Any, meanings: Mapping[str, ConnectType]
) -> Envelopes | None:
    """Return the way to read envelopes of a plain record; None if it is not Debezium's.

    `image`: the schema of a row in it; `meanings`: those of the row's columns.
    """
    row = _record_in(record.get("after"))
    if not row or row != _record_in(record.get("before")) or record.get("op") != "string":
        return None
    known = {**meanings, **_decimals(image)}

    def envelopes(values: Sequence[bytes], types: SparkTypes) -> Changes | None:
        plain = {n: t for n, t in types.items() if n not in known or known[n].name not in VALUES}
        found = read_record(record, values) if fits(row, plain) else None
        if found is None:
            return None
        before, after = (_declared_columns(found[name], types) for name in ("before", "after"))
        return Changes(found["op"], before, after, known)

    return envelopes


def _record_in(type_: Any) -> Mapping[str, Any] | None:
    """Return the record that a field holds, if it is one, or that and null."""
    parts = type_ if isinstance(type_, list) else [type_]
    return next((part for part in parts if isinstance(part, dict)), None)


def _declared_columns(image: pa.StructArray, types: SparkTypes) -> pa.StructArray:
    """Return the declared columns of rows; those that the rows lack are null."""
    lacking = pa.nulls(len(image), pa.string())
    has = {field.name for field in image.type}
    columns = [image.field(name) if name in has else lacking for name in types]
    return pa.StructArray.from_arrays(columns, list(types), mask=image.is_null())


def _decimals(image: Any) -> Mapping[str, ConnectType]:
    """Return the meanings of columns that are decimals of Avro's own."""
    found = {}
    for field in image["fields"]:
        parts = field["type"] if isinstance(field["type"], list) else [field["type"]]
        for part in parts:
            if isinstance(part, dict) and part.get("logicalType") == "decimal":
                given = {"scale": str(part.get("scale", 0)), DIGITS: str(part["precision"])}
                found[field["name"]] = ConnectType(DECIMAL, given)
    return found
