"""Check of declared columns against the fields that messages have by the schemas in files."""

from collections.abc import Iterable, Iterator

from sluice.declare.text.document import Where
from sluice.extras import is_installed
from sluice.language.names import unknown
from sluice.sources.topic import ValueFormat


def check_fields(value: ValueFormat, columns: Iterable[str]) -> Iterator[tuple[Where, str]]:
    """Yield mistakes in the files, or columns that no message has, with their places.

    Nothing is checked of other messages, or where the client of Kafka is not installed.
    """
    if not value.files or not is_installed("kafka"):
        return
    try:
        name, fields = _fields(value)
    except LookupError as fault:
        yield ("value", "message"), str(fault)
    except ValueError as fault:
        yield ("value", "files"), str(fault)
    else:
        for column in columns:
            if column not in fields:
                yield ("schema",), f"{name} has no such field: {unknown('field', column, fields)}"


def _fields(value: ValueFormat) -> tuple[str, list[str]]:
    """Return a message's name, and the names of its fields."""
    if value.format == "protobuf":
        from sluice.sources.kafka.formats.protobuf.types import declared_type

        found = declared_type(value)
        return found.full_name, [field.name for field in found.fields]
    from sluice.sources.kafka.formats.avro.files import avro_fields

    name, fields = avro_fields(value)
    return name, sorted(fields)
