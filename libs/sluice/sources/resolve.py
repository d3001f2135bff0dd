"""Resolution of sources."""

from collections.abc import Iterator, Mapping

from sluice.declare.resolution.delivered_columns import check_columns
from sluice.declare.resolution.scope import Scope, TableMistakes
from sluice.declare.table import Table
from sluice.declare.text.document import Where
from sluice.language.hidden_columns import HIDDEN_TYPES, ID, INTERVAL
from sluice.sources.kafka.formats.fields import check_fields
from sluice.sources.spec import Source


def resolve(spec: Source, inputs: Mapping[Where, Table], mistakes: TableMistakes) -> Table:  # noqa: ARG001
    """Return a source's table: its columns without the one with the row's operation."""
    for where, message in _useless(spec):
        mistakes.add(where, message)
    check_columns(spec, mistakes)
    for where, message in check_fields(spec.value, spec.types) if spec.value else ():
        mistakes.add(where, message)
    if spec.time:
        Scope(spec.types).check_time(spec.time, mistakes, "time")
    key = spec.key or (INTERVAL, ID)
    hidden = {name: HIDDEN_TYPES[name] for name in key if name in HIDDEN_TYPES}
    return Table(spec.name, spec.pipeline, spec.KIND, spec.row_types, key, spec, hidden=hidden)


def _useless(spec: Source) -> Iterator[tuple[Where, str]]:
    """Yield settings without effect."""
    if "max_ahead" in spec.model_fields_set and not spec.time:
        yield ("max_ahead",), "`max_ahead` guards the event time: name its column as `time`"
