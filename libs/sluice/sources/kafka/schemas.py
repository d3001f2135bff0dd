"""Schemas of messages in files: Avro's, and what protoc or a registry wrote of protobuf's.

They are read to check a declaration, too, so nothing here imports Spark.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

from fastavro.schema import SchemaParseException, UnknownType, parse_schema
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from sluice.language.names import unknown
from sluice.sources import ValueFormat

OWN = ("any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct")
PROVIDED = {  # files included in every compiler
    f"google/protobuf/{name}.proto": f"google.protobuf.{name}_pb2"
    for name in (*OWN, "timestamp", "type", "wrappers")
}
WRITE_IT = "write it with: protoc --include_imports --descriptor_set_out=FILE"


def declared_type(value: ValueFormat) -> Descriptor:
    """Return the type of a topic's messages.

    Raises ValueError if a file can't be used, and LookupError if no file has the message.
    """
    files = [file for name, content in value.schemas for file in _files_of_set(name, content)]
    pool = pool_of(files)
    names = [name for file in files for name in _message_names(file.package, file.message_type)]
    if value.message not in names:
        ours = [name for name in names if not name.startswith("google.protobuf.")]
        raise LookupError(unknown("message", value.message, ours))
    return pool.FindMessageTypeByName(value.message)


def pool_of(files: Iterable[FileDescriptorProto]) -> DescriptorPool:
    """Return a pool of those files and of all that they import.

    Raises ValueError if an import is missing, or if a file contradicts another.
    """
    known, pool = {file.name: file for file in files}, DescriptorPool()
    done: set[str] = set()

    def add(name: str, importer: str) -> None:
        if name in done:
            return
        done.add(name)
        if name not in known:
            known[name] = _find_provided(name, importer)
        for other in known[name].dependency:
            add(other, name)
        try:
            pool.Add(known[name])
        except TypeError as fault:
            raise ValueError(f"{name} can't be used: {str(fault).strip()}") from None

    for name in [*known]:
        add(name, "")
    return pool


def nth_type(pool: DescriptorPool, file: FileDescriptorProto, nths: Sequence[int]) -> Descriptor:
    """Return the type that numbers name: a message of a file, then one inside it, and so on.

    Raises IndexError if there is none.
    """
    part: Any = file.message_type[nths[0]]
    names = [part.name]
    for nth in nths[1:]:
        part = part.nested_type[nth]
        names.append(part.name)
    return pool.FindMessageTypeByName(_full(file.package, ".".join(names)))


def _files_of_set(name: str, content: bytes) -> list[FileDescriptorProto]:
    try:
        files = list(FileDescriptorSet.FromString(content).file)
    except DecodeError:
        files = []
    if not files:
        raise ValueError(f"{name} is not a descriptor set; {WRITE_IT}")
    return files


def _find_provided(name: str, importer: str) -> FileDescriptorProto:
    if name not in PROVIDED:
        raise ValueError(f"{importer} imports {name}, which is missing; {WRITE_IT}")
    module = import_module(PROVIDED[name])
    return FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)


def _message_names(within: str, messages: Iterable[DescriptorProto]) -> Iterator[str]:
    for message in messages:
        name = _full(within, message.name)
        yield name
        yield from _message_names(name, (m for m in message.nested_type if not m.options.map_entry))


def _full(within: str, name: str) -> str:
    return f"{within}.{name}" if within else name


def avro_fields(value: ValueFormat) -> tuple[str, frozenset[str]]:
    """Return the name of a message's record, and its fields: of single objects in any version.

    Raises ValueError if a file is not a schema, or if messages would not be records.
    """
    schemas = parse_files(value)
    records = schemas if value.encoding == "single-object" else schemas[-1:]
    for (name, _), schema in zip(value.schemas[-len(records) :], records, strict=True):
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise ValueError(f"{name}: the schema of a message must be a record")
    return records[-1]["name"], frozenset(f["name"] for r in records for f in r["fields"])


def parse_files(value: ValueFormat) -> list[Any]:
    """Return the schemas of the files as fastavro takes them. Raises ValueError for no schema."""
    named: dict[str, Any] = {}
    return [
        _parse_file(name, content, {} if value.encoding == "single-object" else named)
        for name, content in value.schemas
    ]


def _parse_file(name: str, content: bytes, named: dict[str, Any]) -> Any:
    try:
        return parse_schema(json.loads(content), named_schemas=named)
    except UnknownType as fault:
        raise ValueError(f"{name}: type {fault.name} is not defined before it is used") from None
    except (SchemaParseException, ValueError, KeyError, TypeError, AttributeError) as fault:
        raise ValueError(f"{name} is not an Avro schema: {fault}") from None
