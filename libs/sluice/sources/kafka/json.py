"""Messages of JSON, read one by one or in columns; numbers are kept as they were written.

msgspec reads single messages. Python's slower parser checks those that msgspec refuses or might
misread, so that every message has one meaning. Arrow reads many into columns. It refuses invalid
JSON, a repeated field, and a value whose type differs from its column's. Any refusal leaves the
messages to the slower ways.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.json as pj
from pyspark.sql.types import BooleanType, DataType, DecimalType, DoubleType, IntegralType, LongType

from sluice.interpreter.values import arrow_type
from sluice.sources.kafka.debezium import VALUES, Changes, ConnectType, Envelope
from sluice.sources.kafka.records import Number, Unusable

SHOWN = 80  # characters of a field's name in a reason

_MINUS_ZERO = re.compile(rb"-0(?![0-9.eE])")
_FAST = msgspec.json.Decoder(float_hook=Number)
_PAYLOAD = re.compile(rb'"payload"\s*:\s*\Z')
_AGAIN = msgspec.json.Encoder(enc_hook=str)

LOOKED_AT = 8  # messages that show how columns are written
_LOOK = msgspec.json.Decoder(list[dict[str, Any]])
_EXPONENT = re.compile(rb"[0-9][eE]|NaN|Inf")


def parse_json(data: bytes) -> Any:
    """Return the value of a message. Raises Unusable unless it is one JSON value."""
    try:
        found = _FAST.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _parse_slowly(data)
    return found if _is_whole(found, data) else _parse_slowly(data)


class _Wrapped(msgspec.Struct, forbid_unknown_fields=True):
    """A value of Connect's with its schema, as they were written."""

    schema: msgspec.Raw
    payload: msgspec.Raw


def _is_whole(found: Any, data: bytes) -> bool:
    """True if a value certainly holds the whole content of its message.

    msgspec reads -0 as 0, and keeps the last of two fields with one name. If it dropped a field,
    the value written again has fewer colons than the message. An escape may be a colon.
    """
    if _MINUS_ZERO.search(data) or (b"\\" in data and b"\\u00" in data):
        return False
    return _AGAIN.encode(found).count(b":") == data.count(b":")


def rows_of_json(values: Sequence[bytes]) -> Sequence[Mapping[str, Any]] | None:
    """Return what `read_bare` returns for each value, decoded at once; None if that is not sure."""
    lines = lines_of(values)
    if not lines:
        return None
    try:
        found = _FAST.decode_lines(lines)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if len(found) != len(values) or not _is_whole(found, lines):
        return None
    has_schemas = b'"schema"' in lines and any(map(_has_schema, found))
    return None if has_schemas else found


def lines_of(values: Sequence[bytes]) -> bytes:
    """Return values on separate lines; nothing unless each, if valid, certainly is one object.

    Each is in braces, and no JSON continues after a brace with another one. Two objects on one line
    are more rows than values.
    """
    lines = b"\n".join(values)
    breaks = len(values) - 1
    is_lines = lines.count(b"\n") == lines.count(b"}\n{") == breaks
    return lines if is_lines and lines[:1] == b"{" and lines[-1:] == b"}" else b""


def _parse_slowly(data: bytes) -> Any:
    try:
        found = _PARSER.decode(data.decode("utf-8"))
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Unusable("the message has half of a surrogate pair") from None
    except UnicodeDecodeError:
        raise Unusable("the message is not in UTF-8") from None
    except (ValueError, RecursionError):
        raise Unusable("the message is not JSON") from None
    return found


def parse_text(data: bytes) -> Any:
    """Return the value of a JSON key, or a bare text. Raises Unusable for a broken object."""
    try:
        return parse_json(data)
    except Unusable:
        if data.lstrip().startswith(b"{"):
            raise
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Unusable("the message's key is neither JSON nor a text in UTF-8") from None


def read_bare(data: bytes) -> Any:
    """Return the value of a message, or its payload if Connect sent it with a schema."""
    found = parse_json(data)
    return found["payload"] if _has_schema(found) else found


def envelope(data: bytes) -> Envelope:
    """Return a change, sent with or without its schema."""
    found = parse_json(data)
    if not isinstance(found, dict):
        raise Unusable("the message is not an object")
    if not _has_schema(found):
        return Envelope(found, {})
    if not isinstance(found["payload"], dict):
        raise Unusable("the message has no payload")
    return Envelope(found["payload"], meanings_of(found["schema"], "after"))


def key_of_envelope(data: bytes) -> Any:
    """Return a message's key, with the meanings of its columns if its schema was sent."""
    found = parse_json(data)
    if not _has_schema(found):
        return found
    if not isinstance(found["payload"], dict):
        return found["payload"]
    return Envelope(found["payload"], meanings_of(found["schema"], ""))


def _has_schema(found: Any) -> bool:
    return isinstance(found, dict) and len(found) == 2 and "schema" in found and "payload" in found


def without_schema(values: Sequence[bytes]) -> tuple[Sequence[bytes], Any]:
    """Return the payloads of values and the schema, if Connect sent the same one before each.

    Else return the values and None. Each payload is the rest of its value, which may be anything.
    """
    try:
        first = _WRAPPED.decode(values[0])
        schema = parse_json(values[0])["schema"]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, Unusable):
        return values, None
    head = values[0][: -len(bytes(first.payload)) - 1]
    is_alike = _PAYLOAD.search(head) and values[0].endswith(bytes(first.payload) + b"}")
    if not is_alike or not all(v.startswith(head) and v[-1:] == b"}" for v in values):
        return values, None
    return [value[len(head) : -1] for value in values], schema


def meanings_of(schema: Any, image: str) -> Mapping[str, ConnectType]:
    """Return the meanings of the columns of an image; of a schema itself without one."""
    return _meanings(json.dumps(schema), image)


@lru_cache(maxsize=256)
def _meanings(schema: str, image: str) -> Mapping[str, ConnectType]:
    """Return the meanings of the columns. Raises Unusable unless it is a schema of Connect."""
    parts = _schema_fields(json.loads(schema))
    if image:
        parts = next((_schema_fields(part) for part in parts if part["field"] == image), ())
    return {
        part["field"]: ConnectType(part["name"], part.get("parameters") or {})
        for part in parts
        if part.get("name")
    }


def _schema_fields(schema: Any) -> Sequence[Mapping[str, Any]]:
    """Return the fields of a struct; those of no schema are none."""
    found = ((schema or {}).get("fields") or ()) if isinstance(schema, dict | None) else None
    if not isinstance(found, list | tuple) or not all(map(_is_field, found)):
        raise Unusable("the message's `schema` is none of Connect's")
    return found


def _is_field(part: Any) -> bool:
    if not isinstance(part, dict) or not isinstance(part.get("parameters"), dict | None):
        return False
    return isinstance(part.get("field"), str) and isinstance(part.get("name"), str | None)


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Unusable(f"field {twice[:SHOWN]} is repeated")
    return found


_WRAPPED = msgspec.json.Decoder(_Wrapped)
_PARSER = json.JSONDecoder(
    object_pairs_hook=_refuse_repeated, parse_float=Number, parse_int=Number, parse_constant=Number
)


def columns_of_json(
    values: Sequence[bytes], types: Mapping[str, DataType]
) -> Mapping[str, pa.Array] | None:
    """Return the declared columns of messages that are one plain object each; None if not sure."""
    payloads, _ = without_schema(values)
    looked = _look_at_first(payloads)
    columns = None if looked is None else _choose_types(looked, types, {})
    lines = lines_of(payloads)
    if columns is None or b'"schema"' in lines:
        return None
    found = _read_lines(lines, pa.schema(columns), len(values))
    return found and {name: found[name].combine_chunks() for name in types}


def changes_of_json(values: Sequence[bytes], types: Mapping[str, DataType]) -> Changes | None:
    """Return envelopes of Debezium, with or without one schema before each; None if not sure."""
    payloads, schema = without_schema(values)
    try:
        meanings = meanings_of(schema, "after") if schema else {}
    except Unusable:  # as each message says by itself
        return None
    images = _images(_look_at_first(payloads))
    columns = None if images is None else _choose_types(images, types, meanings)
    if columns is None:
        return None
    image = pa.struct(columns)
    envelope = pa.schema([("op", pa.string()), ("before", image), ("after", image)])
    found = _read_lines(lines_of(payloads), envelope, len(values))
    if found is None:
        return None
    op, before, after = (found[name].combine_chunks() for name in envelope.names)
    return Changes(op, before, after, meanings)


def _images(looked: Sequence[Any] | None) -> Sequence[Any] | None:
    if looked is None:
        return None
    images = [change.get(name) for change in looked for name in ("after", "before")]
    return [image for image in images if isinstance(image, dict)]


def _read_lines(lines: bytes, schema: pa.Schema, rows: int) -> pa.Table | None:
    if not lines or (_has_fractions(schema) and _EXPONENT.search(lines)):
        return None
    whole = pj.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
    try:
        lines.isascii() or lines.decode()
        found = pj.read_json(pa.BufferReader(lines), whole, options)
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    return found if found.num_rows == rows else None


def _look_at_first(values: Sequence[bytes]) -> Sequence[dict[str, Any]] | None:
    """Return the first messages, if they are objects."""
    try:
        return _LOOK.decode(b"[" + b",".join(values[:LOOKED_AT]) + b"]")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _choose_types(
    looked: Iterable[Mapping[str, Any]],
    types: Mapping[str, DataType],
    meanings: Mapping[str, ConnectType],
) -> list[tuple[str, pa.DataType]] | None:
    """Return how columns are read; None if one is written in a way that has no plain rule."""
    fields = []
    for name, type_ in types.items():
        shown = next((row[name] for row in looked if row.get(name) is not None), "")
        has_meaning = name in meanings and meanings[name].name in VALUES
        read_as = _read_as(shown, LongType() if has_meaning else type_)
        if read_as is None:
            return None
        fields.append((name, read_as))
    return fields


def _read_as(shown: Any, type_: DataType) -> pa.DataType | None:
    match shown:
        case str():
            return pa.string()
        case bool():
            return pa.bool_() if isinstance(type_, BooleanType) else None
        case int() if isinstance(type_, IntegralType):
            return pa.int64()
        case int() | float() if isinstance(type_, DecimalType | DoubleType):
            return arrow_type(type_)
    return None


def _has_fractions(schema: pa.Schema | pa.StructType) -> bool:
    types = [field.type for field in schema]
    return any(
        pa.types.is_decimal(t)
        or pa.types.is_floating(t)
        or (pa.types.is_struct(t) and _has_fractions(t))
        for t in types
    )
