"""Messages of protobuf: bare ones of a declared type, or with the id of a schema before them.

Confluent's prefix is a zero byte, the id of a schema, and the numbers of the message in it: as
varints, first their count, then each. A single zero means the schema's first message.
"""

from base64 import b64decode
from functools import partial
from typing import Any, NamedTuple

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from sluice.sources.kafka.formats.json.messages import of_text
from sluice.sources.kafka.formats.protobuf.types import declared_type, nth_type, pool_of
from sluice.sources.kafka.formats.protobuf.values import value_of
from sluice.sources.kafka.formats.records import FormatReader, Unusable, plain
from sluice.sources.kafka.formats.registry import Registry
from sluice.sources.topic import ValueFormat

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
        return plain(partial(value_of, GetMessageClass(declared_type(value))), of_text, key)
    types = MessageTypes(Registry.of(value, table))
    return plain(types.value, types.key, key)


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
        return self.value(data) if data.startswith(b"\0") else of_text(data)

    def __missing__(self, prefix: bytes) -> Type:
        try:
            self[prefix] = Type(self._made(prefix))
        except Unusable as fault:
            self[prefix] = Type(None, str(fault))
        return self[prefix]

    def _made(self, prefix: bytes) -> type[Message]:
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
