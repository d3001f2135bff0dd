"""Settings that would have no effect where they stand: refused, before somebody relies on them."""

from collections.abc import Iterator

from sluice.specs.dimension import Dimension
from sluice.specs.document import Where
from sluice.specs.resolution.scope import Report
from sluice.specs.source import Source
from sluice.specs.window_store import WindowStore

TOPICS = ("subscribe", "subscribePattern", "assign")
BROKERS = "kafka.bootstrap.servers"


def check_effect(spec: Source | Dimension | WindowStore, report: Report) -> None:
    """Note what is set and would not be looked at, and what a format can't do without."""
    for where, message in _useless(spec):
        report.add(where, message)


def _useless(spec: Source | Dimension | WindowStore) -> Iterator[tuple[Where, str]]:
    match spec:
        case Source():
            yield from _source(spec)
        case Dimension():
            yield from _dimension(spec)
        case WindowStore() if spec.duplicates and spec.sequence:
            why = "`sequence` says which of two rows stands; with `duplicates` both do: drop one"
            yield ("sequence",), why


def _source(spec: Source) -> Iterator[tuple[Where, str]]:
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


def _dimension(spec: Dimension) -> Iterator[tuple[Where, str]]:
    if spec.format == "kafka":
        kinds = "json, csv, parquet, delta, jdbc"
        yield ("format",), f"a dimension is loaded whole, and a topic has no end: use {kinds}"
    elif spec.format == "jdbc" and spec.path:
        yield ("path",), "a database has no path: name its table in `options` (dbtable or query)"
