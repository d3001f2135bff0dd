"""Messages of JSON; numbers are kept as they were written.

msgspec reads them. Python's slower parser checks messages that msgspec refuses or might misread, so
that every message has one meaning.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from sluice.sources.kafka.formats.debezium.envelopes import ConnectType, Envelope
from sluice.sources.kafka.formats.records import Number, Unusable

SHOWN = 80  # characters of a field's name in a reason


class _Wrapped(msgspec.Struct, forbid_unknown_fields=True):
    """A value of Connect's with its schema, as they were written."""

    schema: msgspec.Raw
    payload: msgspec.Raw


def of_json(data: bytes) -> Any:
    """Return the value of a message. Raises Unusable unless it is one JSON value."""
    try:
        found = _FAST.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _checked(data)
    return found if _is_whole(found, data) else _checked(data)


def _is_whole(found: Any, data: bytes) -> bool:
    """True if a value certainly holds the whole content of its message.

    msgspec reads -0 as 0, and keeps the last of two fields with one name. If it dropped a field,
    the value written again has fewer colons than the message. An escape may be a colon.
    """
    if _MINUS_ZERO.search(data) or (b"\\" in data and b"\\u00" in data):
        return False
    return _AGAIN.encode(found).count(b":") == data.count(b":")


def rows_of_json(values: Sequence[bytes]) -> Sequence[Mapping[str, Any]] | None:
    """Return the results of `bare` for all values, decoded at once; None unless that is certain."""
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


def _checked(data: bytes) -> Any:
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


def of_text(data: bytes) -> Any:
    """Return the value of a JSON key, or a bare text. Raises Unusable for a broken object."""
    try:
        return of_json(data)
    except Unusable:
        if data.lstrip().startswith(b"{"):
            raise
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Unusable("the message's key is neither JSON nor a text in UTF-8") from None


def bare(data: bytes) -> Any:
    """Return the value of a message, or its payload if Connect sent it with a schema."""
    found = of_json(data)
    return found["payload"] if _has_schema(found) else found


def envelope(data: bytes) -> Envelope:
    """Return a change, sent with or without its schema."""
    found = of_json(data)
    if not isinstance(found, dict):
        raise Unusable("the message is not an object")
    if not _has_schema(found):
        return Envelope(found, {})
    if not isinstance(found["payload"], dict):
        raise Unusable("the message has no payload")
    return Envelope(found["payload"], meanings_of(found["schema"], "after"))


def key_of_envelope(data: bytes) -> Any:
    """Return a message's key, with the meanings of its columns if its schema was sent."""
    found = of_json(data)
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
        schema = of_json(values[0])["schema"]
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
    parts = _fields(json.loads(schema))
    if image:
        parts = next((_fields(part) for part in parts if part["field"] == image), ())
    return {
        part["field"]: ConnectType(part["name"], part.get("parameters") or {})
        for part in parts
        if part.get("name")
    }


def _fields(schema: Any) -> Sequence[Mapping[str, Any]]:
    """Return the fields of a struct; those of no schema are none."""
    found = ((schema or {}).get("fields") or ()) if isinstance(schema, dict | None) else None
    if not isinstance(found, list | tuple) or not all(map(_is_field, found)):
        raise Unusable("the message's `schema` is none of Connect's")
    return found


def _is_field(part: Any) -> bool:
    if not isinstance(part, dict) or not isinstance(part.get("parameters"), dict | None):
        return False
    return isinstance(part.get("field"), str) and isinstance(part.get("name"), str | None)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Unusable(f"field {twice[:SHOWN]} is repeated")
    return found


_MINUS_ZERO = re.compile(rb"-0(?![0-9.eE])")
_WRAPPED = msgspec.json.Decoder(_Wrapped)
_FAST = msgspec.json.Decoder(float_hook=Number)
_PAYLOAD = re.compile(rb'"payload"\s*:\s*\Z')
_AGAIN = msgspec.json.Encoder(enc_hook=str)
_PARSER = json.JSONDecoder(
    object_pairs_hook=_once, parse_float=Number, parse_int=Number, parse_constant=Number
)
