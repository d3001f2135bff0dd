"""Resolution of sources."""

from collections.abc import Iterable, Iterator

from sluice.declare.document import Where
from sluice.declare.resolution import Scope, TableMistakes, check_columns
from sluice.declare.table import Table
from sluice.extras import is_installed
from sluice.language.names import HIDDEN_TYPES, ID, INTERVAL, unknown
from sluice.sources.spec import Source, ValueFormat


def resolve(spec: Source, mistakes: TableMistakes) -> Table:
    """Return a source's table: its columns without the one with the row's operation."""
    if "max_ahead" in spec.model_fields_set and not spec.time:
        what = "`max_ahead` guards the event time: name its column as `time`"
        mistakes.add(("max_ahead",), what)
    check_columns(spec, mistakes)
    for where, message in _check_fields(spec.value, spec.types) if spec.value else ():
        mistakes.add(where, message)
    if spec.time:
        Scope(spec.types).check_time(spec.time, mistakes, "time")
    key = spec.key or (INTERVAL, ID)
    hidden = {name: HIDDEN_TYPES[name] for name in key if name in HIDDEN_TYPES}
    return Table(spec.name, spec.pipeline, spec.KIND, spec.row_types, key, spec, hidden=hidden)


def _check_fields(value: ValueFormat, columns: Iterable[str]) -> Iterator[tuple[Where, str]]:
    """Yield mistakes in the files, or columns that no message has, with their places.

    Nothing is checked of other messages, or where the client of Kafka is not installed.
    """
    if not value.files or not is_installed("kafka"):
        return
    try:
        name, fields = _fields_of(value)
    except LookupError as fault:
        yield ("value", "message"), str(fault)
    except ValueError as fault:
        yield ("value", "files"), str(fault)
    else:
        for column in columns:
            if column not in fields:
                yield ("schema",), f"{name} has no such field: {unknown('field', column, fields)}"


def _fields_of(value: ValueFormat) -> tuple[str, list[str]]:
    """Return a message's name, and the names of its fields."""
    from sluice.sources.kafka.formats.schemas import avro_fields, declared_type

    if value.format == "protobuf":
        found = declared_type(value)
        return found.full_name, [field.name for field in found.fields]
    name, fields = avro_fields(value)
    return name, sorted(fields)
