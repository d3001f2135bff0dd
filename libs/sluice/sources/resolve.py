"""Resolution of sources."""

from collections.abc import Iterator, Mapping

from sluice.declare.document import Where
from sluice.declare.resolution.declared import check_columns
from sluice.declare.resolution.scope import Report, Scope
from sluice.declare.table import HIDDEN_TYPES, INTERVAL, ROW_ID, Table
from sluice.sources.spec import Source

TOPICS = ("subscribe", "subscribePattern", "assign")
BROKERS = "kafka.bootstrap.servers"


def resolve(spec: Source, inputs: Mapping[Where, Table], report: Report) -> Table:  # noqa: ARG001
    """Return a source's table: its columns without the one that says what a row does."""
    for where, message in _useless(spec):
        report.add(where, message)
    check_columns(spec, report)
    if spec.time:
        Scope(spec.types).check_time(spec.time, report, "time")
    key = spec.key or (INTERVAL, ROW_ID)
    hidden = {name: HIDDEN_TYPES[name] for name in key if name in HIDDEN_TYPES}
    return Table(spec.name, spec.pipeline, spec.KIND, spec.row_types, key, spec, hidden=hidden)


def _useless(spec: Source) -> Iterator[tuple[Where, str]]:
    """Yield settings without effect, and missing ones that a format requires."""
    if "max_ahead" in spec.model_fields_set and not spec.time:
        yield ("max_ahead",), "`max_ahead` guards the event time: name its column as `time`"
    if spec.format == "kafka":
        yield from _kafka(spec)


def _kafka(spec: Source) -> Iterator[tuple[Where, str]]:
    if spec.path:
        yield ("path",), f"kafka has no path: name the topic in `options` ({TOPICS[0]})"
    if spec.delivery == "interval":
        yield ("format",), "kafka is read as it arrives, not by interval: write delivery: stream"
    if not any(topic in spec.options for topic in TOPICS):
        yield ("options",), f"no topic is named: give `options` one of {', '.join(TOPICS)}"
    if BROKERS not in spec.options:
        yield ("options",), f"`options` must name the brokers: {BROKERS}"
