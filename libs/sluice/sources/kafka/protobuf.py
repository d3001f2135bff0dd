"""Messages of protobuf: bare ones of a declared type, or with the id of a schema before them.

Confluent's prefix is a zero byte, the id of a schema, and the numbers of the message in it: as
varints, first their count, then each. A single zero means the schema's first message.

Values are as protobuf's mapping to JSON has them. A field that was not sent is null where protobuf
knows it (HasField), else its default. Numbers stay numbers, and a Timestamp has microseconds:
further digits are cut.
"""

import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from sluice.sources import ValueFormat
from sluice.sources.kafka.connection import Registry
from sluice.sources.kafka.json import parse_text
from sluice.sources.kafka.records import FormatReader, Unusable, make_row_reader
from sluice.sources.kafka.schemas import declared_type, nth_type, pool_of

SERIALIZED = "?format=serialized"
NUMBERS = 5  # bytes before the numbers of the message
DEEPEST = 100  # nested messages


class Type(NamedTuple):
    """The class of a message, or why there is none."""

    made: type[Message] | None
    fault: str = ""


def protobuf_reader(value: ValueFormat, key: tuple[str, ...], table: str) -> FormatReader:
    """Return the reader of messages whose types are in files, or in a registry."""
    if value.files:
        return make_row_reader(
            partial(value_of, GetMessageClass(declared_type(value))), parse_text, key
        )
    types = MessageTypes(Registry.of(value, table))
    return make_row_reader(types.value, types.key, key)


class MessageTypes(dict[bytes, Type]):
    """Types by the prefixes of messages; the registry is asked once for each."""

    def __init__(self, registry: Registry) -> None:
        super().__init__()
        self._registry = registry

    def value(self, data: bytes) -> Any:
        """Return the fields of a message. Raises Unusable without its type."""
        end = _end(data)
        type_ = self[data[:end]]
        if type_.made is None:
            raise Unusable(type_.fault)
        return value_of(type_.made, data[end:])

    def key(self, data: bytes) -> Any:
        """Return a message's key: its fields, or a bare text."""
        return self.value(data) if data.startswith(b"\0") else parse_text(data)

    def __missing__(self, prefix: bytes) -> Type:
        try:
            self[prefix] = Type(self._find_class(prefix))
        except Unusable as fault:
            self[prefix] = Type(None, str(fault))
        return self[prefix]

    def _find_class(self, prefix: bytes) -> type[Message]:
        nths = _numbers(prefix)
        schema_id = int.from_bytes(prefix[1:NUMBERS], "big")
        what = f"schema {schema_id}"
        found = self._registry.schema(schema_id, SERIALIZED)
        if found.get("schemaType") != "PROTOBUF":
            raise Unusable(f"{what} is of {found.get('schemaType', 'AVRO')}, not of protobuf")
        file = _file(found, f"schema-{schema_id}.proto", what)
        others = self._registry.references(found, SERIALIZED)
        imported = [_file(other, name, words) for name, words, other in others]
        try:
            pool = pool_of([file, *imported])
            made: type[Message] = GetMessageClass(nth_type(pool, file, nths))
        except ValueError as fault:
            raise Unusable(f"{what} can't be read: {fault}") from None
        except IndexError:
            raise Unusable(f"{what} has no message {nths}") from None
        return made


def _file(found: Any, name: str, what: str) -> FileDescriptorProto:
    """Return a descriptor under its import name, which differs from its name in the registry."""
    try:
        file = FileDescriptorProto.FromString(b64decode(found["schema"], validate=True))
    except (ValueError, DecodeError):
        raise Unusable(f"the schema registry gives {what} without ?format=serialized") from None
    file.name = name
    return file


def _numbers(prefix: bytes) -> tuple[int, ...]:
    """Return the numbers of the message in its schema."""
    found, at = [], NUMBERS
    while at < len(prefix):
        number, at = _varint(prefix, at)
        found.append(number)
    return tuple(found[1:]) or (0,)


def _end(data: bytes) -> int:
    """Return where a message begins. Raises Unusable without the prefix."""
    if len(data) <= NUMBERS or data[0] != 0:
        raise Unusable("the message does not begin with the id of a schema")
    if data[NUMBERS] == 0:
        return NUMBERS + 1
    count, at = _varint(data, NUMBERS)
    if not 0 < count <= DEEPEST:
        raise Unusable(f"the message gives its type by {count} numbers")
    for _ in range(count):
        number, at = _varint(data, at)
        if number < 0:
            raise Unusable(f"the message's type has the number {number}")
    return at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a signed number in base 128, and where it ends."""
    number = shift = 0
    while at < len(data) and shift < 64:
        byte, at = data[at], at + 1
        number |= (byte & 127) << shift
        if byte < 128:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
    raise Unusable("the message ends within the numbers of its type")


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
    return tuple((field.name, _reader(field)) for field in type_.fields)


def _reader(field: FieldDescriptor) -> ValueReader:
    name = field.name
    if field.is_repeated and field.message_type and field.message_type.GetOptions().map_entry:
        inner = _value(field.message_type.fields_by_name["value"])
        return lambda m: {
            str(k).lower() if isinstance(k, bool) else str(k): inner(v)
            for k, v in getattr(m, name).items()
        }
    one = _value(field)
    if field.is_repeated:
        return lambda m: [one(each) for each in getattr(m, name)]
    if field.has_presence:
        return lambda m: one(getattr(m, name)) if m.HasField(name) else None
    return lambda m: one(getattr(m, name))


def _value(field: FieldDescriptor) -> ValueReader:
    if field.message_type:
        return WELL_KNOWN.get(field.message_type.full_name, _fields)
    if field.enum_type:
        names = {number: each.name for number, each in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number, number)
    return SCALARS.get(field.type, lambda value: value)


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
    FieldDescriptor.TYPE_BYTES: lambda value: b64encode(value).decode(),
    FieldDescriptor.TYPE_DOUBLE: _double,
    FieldDescriptor.TYPE_FLOAT: _float,
}
WRAPPERS = ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64")
WELL_KNOWN: Mapping[str, ValueReader] = {
    **{
        f"google.protobuf.{name}Value": lambda wrapper: _value(
            wrapper.DESCRIPTOR.fields_by_name["value"]
        )(wrapper.value)
        for name in WRAPPERS
    },
    **{f"google.protobuf.{name}": _as_text for name in ("Duration", "FieldMask")},
    **{f"google.protobuf.{name}": _as_json for name in ("Any", "ListValue", "Struct", "Value")},
    "google.protobuf.Timestamp": _moment,
}
