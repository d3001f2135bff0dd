"""Check of declared columns against the fields that messages have by the schemas in files."""

from collections.abc import Iterable, Iterator

from sluice.declare.document import Where
from sluice.extras import is_installed
from sluice.language.names import unknown
from sluice.sources.kafka.spec import Value


def check_fields(value: Value, columns: Iterable[str]) -> Iterator[tuple[Where, str]]:
    """Yield what is wrong with the files, or the columns that no message has, and where.

    Nothing is checked of other messages, or where the client of Kafka is not installed.
    """
    if not value.files or not is_installed("kafka"):
        return
    from sluice.sources.kafka.avro_files import avro_fields

    try:
        record, fields = avro_fields(value)
    except ValueError as fault:
        yield ("value", "files"), str(fault)
        return
    for column in columns:
        if column not in fields:
            yield (
                ("schema",),
                f"{record} has no such field: {unknown('field', column, sorted(fields))}",
            )
