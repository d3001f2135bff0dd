"""Messages of a topic, one by one and in columns, where a million of them take little room."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluice.language.wall_clock import EPOCH

MILLISECOND = timedelta(milliseconds=1)
LATEST = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MILLISECOND
NUMBER, BYTES = pa.int64(), pa.binary()
COLUMNS = pa.schema(
    [
        *((name, NUMBER) for name in ("partition", "offset", "at")),
        *((name, BYTES) for name in ("key", "value")),
        ("left_out", NUMBER),
    ]
)


class Message(NamedTuple):
    """One message; its time is in milliseconds.

    `left_out`: bytes of its key and value if they are more than a message may have.
    """

    partition: int
    offset: int
    at: int
    key: bytes | None
    value: bytes | None
    left_out: int = 0

    @property
    def moment(self) -> datetime:
        return moment_of(self.at)


def moment_of(at: int) -> datetime:
    """Return the time of a message, at most LATEST.

    A producer may count in another unit than milliseconds, and so name a time that no calendar has.
    """
    return EPOCH + min(at, LATEST) * MILLISECOND


def arrange_messages(messages: Iterable[Message]) -> pa.Table:
    """Return messages in COLUMNS, in order."""
    parts = list(zip(*messages, strict=True)) or [()] * len(COLUMNS)
    arrays = [pa.array(part, field.type) for part, field in zip(parts, COLUMNS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=COLUMNS)


def each_message(messages: pa.Table | pa.RecordBatch) -> Iterator[Message]:
    """Yield the messages that are in COLUMNS."""
    parts = (messages.column(name).to_pylist() for name in COLUMNS.names)
    return map(Message._make, zip(*parts, strict=True))


def arrange_events(events: Sequence[Any], most: int) -> pa.RecordBatch:
    """Return the client's events in COLUMNS; `most`: the bytes that a message may have.

    A topic may have millions, so each costs as few calls as can be.
    """
    from confluent_kafka import Message as Event

    def numbers(of: Callable[[Any], Any]) -> pa.Array:
        return pa.array(np.fromiter(map(of, events), np.int64, len(events)))

    times = map(itemgetter(1), map(Event.timestamp, events))
    at = pa.array(np.fromiter(times, np.int64, len(events)))
    key, value = (pa.array(list(map(of, events)), BYTES) for of in (Event.key, Event.value))
    size = _size(key, value)
    is_large = pc.greater(size, most)
    left_out = pc.if_else(is_large, size, 0)
    if pc.any(is_large).as_py():
        nothing = pa.scalar(None, BYTES)
        key, value = (pc.if_else(is_large, nothing, part) for part in (key, value))
    columns = [numbers(Event.partition), numbers(Event.offset), at, key, value, left_out]
    return pa.RecordBatch.from_arrays(columns, schema=COLUMNS)


def bytes_of(messages: pa.RecordBatch) -> int:
    """Return the bytes of keys and values."""
    return int(pc.sum(_size(messages.column("key"), messages.column("value"))).as_py() or 0)


def _size(key: pa.Array, value: pa.Array) -> pa.Array:
    sizes = (pc.fill_null(pc.binary_length(part), 0).cast(NUMBER) for part in (key, value))
    return pc.add(*sizes)
