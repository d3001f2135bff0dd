"""Values of protobuf's messages, as its mapping to JSON has them.

A field that was not sent is null where protobuf knows it (HasField), else its default. Numbers
stay numbers, and a Timestamp has microseconds: further digits are cut.
"""

import struct
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError, Message

from sluice.sources.kafka.formats.records import Unusable

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 # the zone is written behind it
ValueReader = Callable[[Any], Any]


def value_of(made: type[Message], data: bytes) -> Mapping[str, Any]:
    """Return the fields of a message. Raises Unusable if its bytes are none of that type."""
    name = made.DESCRIPTOR.full_name
    try:
        message = made.FromString(data)
    except DecodeError:
        raise Unusable(f"the message is not a {name}") from None
    if not message.IsInitialized():
        lacking = ", ".join(message.FindInitializationErrors())
        raise Unusable(f"the message is not a {name}: it lacks {lacking}")
    return _fields(message)


def _fields(message: Any) -> dict[str, Any]:
    return {name: read(message) for name, read in _readers(message.DESCRIPTOR)}


@lru_cache(maxsize=1024)
def _readers(type_: Descriptor) -> tuple[tuple[str, ValueReader], ...]:
    """Return the readers of a type's fields; types may contain themselves."""
    return tuple((field.name, _reader(field)) for field in type_.fields)


def _reader(field: FieldDescriptor) -> ValueReader:
    name = field.name
    if field.is_repeated and field.message_type and field.message_type.GetOptions().map_entry:
        inner = _value(field.message_type.fields_by_name["value"])
        return lambda m: {_key(k): inner(v) for k, v in getattr(m, name).items()}
    one = _value(field)
    if field.is_repeated:
        return lambda m: [one(each) for each in getattr(m, name)]
    if field.has_presence:
        return lambda m: one(getattr(m, name)) if m.HasField(name) else None
    return lambda m: one(getattr(m, name))


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _value(field: FieldDescriptor) -> ValueReader:
    """Return the reader of one value of a field."""
    if field.message_type:
        return WELL_KNOWN.get(field.message_type.full_name, _fields)
    if field.enum_type:
        names = {number: each.name for number, each in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number, number)
    return SCALARS.get(field.type, _same)


def _same(value: Any) -> Any:
    return value


def _base64(value: bytes) -> str:
    return b64encode(value).decode()


def _double(value: float) -> Any:
    if value - value == 0:
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"  # noqa: PLR0124


def _float(value: float) -> Any:
    """Return the shortest number that is this value in 32 bits."""
    if value - value != 0:
        return _double(value)
    bits = struct.pack("f", value)
    shown = (float(f"{value:.{digits}g}") for digits in range(6, 10))
    return next((short for short in shown if _is(short, bits)), value)


def _is(value: float, bits: bytes) -> bool:
    try:
        return struct.pack("f", value) == bits
    except OverflowError:
        return False


def _moment(stamp: Any) -> str:
    try:
        at = EPOCH + timedelta(seconds=stamp.seconds, microseconds=stamp.nanos // 1000)
    except OverflowError:
        raise Unusable(f"{stamp.seconds} seconds are not a time of the calendar") from None
    return f"{at.isoformat()}Z"


def _wrapped(wrapper: Any) -> Any:
    return _value(wrapper.DESCRIPTOR.fields_by_name["value"])(wrapper.value)


def _as_text(message: Any) -> str:
    try:
        text: str = message.ToJsonString()
    except ValueError as fault:
        raise Unusable(str(fault)) from None
    return text


def _as_json(message: Any) -> Any:
    try:
        pool = message.DESCRIPTOR.file.pool
        return MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=pool)
    except (ValueError, TypeError) as fault:
        raise Unusable(f"{message.DESCRIPTOR.full_name}: {fault}") from None


SCALARS: Mapping[int, ValueReader] = {
    FieldDescriptor.TYPE_BYTES: _base64,
    FieldDescriptor.TYPE_DOUBLE: _double,
    FieldDescriptor.TYPE_FLOAT: _float,
}
WRAPPERS = ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64")
WELL_KNOWN: Mapping[str, ValueReader] = {
    **{f"google.protobuf.{name}Value": _wrapped for name in WRAPPERS},
    **{f"google.protobuf.{name}": _as_text for name in ("Duration", "FieldMask")},
    **{f"google.protobuf.{name}": _as_json for name in ("Any", "ListValue", "Struct", "Value")},
    "google.protobuf.Timestamp": _moment,
}
