"""Messages of a topic, and the records of each: what its rows hold, and what they do to the table.

Messages are held one by one and in columns, where a million of them take little room.

A reader of a format returns records whose fields are texts, lists and mappings of texts, or None.
It raises Unusable for a message that it can't read; that becomes the reason of the message's row.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluice.language.interval import EPOCH

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


INSERT, DELETE = "insert", "delete"
Fields = Mapping[str, Any]
Many = Callable[[Sequence[bytes]], Sequence[Fields] | None]
SparkTypes = Mapping[str, Any]  # Spark's, by column
ArrowFields = Mapping[str, "pa.Array"]
ByColumns = Callable[[Sequence[bytes], SparkTypes], ArrowFields | None]


class Number(str):
    """A number as it was written."""

    __slots__ = ()


def to_json(value: Any) -> str:
    """Return a value as JSON."""
    if isinstance(value, Number):
        return value
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{to_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(to_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False, default=str)


class Unusable(Exception):
    """A message that can't be read, with the reason."""


class Record(NamedTuple):
    """One row of a message; `nth` counts the rows of the message."""

    fields: Fields
    does: str = INSERT
    nth: int = 0


class ColumnarRecords(NamedTuple):
    """Rows that were read by columns, and the place of each row's message among those given.

    Columns are texts, or values of the column's type. `nths` are those of records.
    """

    places: Sequence[int]
    columns: ArrowFields
    does: str = INSERT
    nths: Sequence[int] | None = None


ReadWhole = Callable[[Sequence[bytes], SparkTypes], Sequence[ColumnarRecords] | None]


@dataclass(frozen=True)
class FormatReader:
    """A reader of a format. `one` returns the rows of a message.

    If given, `many` and `whole` are faster ways for many values. They return the fields of each
    value's only row, or rows by the declared columns. They return None if that is not certain. The
    next slower way then reads these messages, and those whose places `whole` leaves out.
    """

    one: Callable[[Message], Iterable[Record]]
    many: Many | None = None
    whole: ReadWhole | None = None

    def __call__(self, message: Message) -> Iterable[Record]:
        return self.one(message)


def read_message(message: Message) -> Iterable[Record]:
    """Return the row of a message as it is: key and value as bytes, and its place and time."""
    at = message.moment.isoformat()
    place = {"partition": message.partition, "offset": message.offset, "timestamp": at}
    return (Record({"key": message.key, "value": message.value, **place}),)


def as_mapping(value: Any, key: tuple[str, ...]) -> Fields:
    """Return a message's key by column; a bare value is that of the only column."""
    if isinstance(value, dict):
        return {name: value[name] for name in key if name in value}
    return {key[0]: value} if len(key) == 1 and value is not None else {}


def make_row_reader(
    value: Callable[[bytes], Any],
    of_key: Callable[[bytes], Any],
    key: tuple[str, ...],
    many: Many | None = None,
    by_columns: ByColumns | None = None,
) -> FormatReader:
    """Return the reader of messages that are rows; with a key, a null value deletes its row."""

    def whole(values: Sequence[bytes], types: SparkTypes) -> Sequence[ColumnarRecords] | None:
        columns = by_columns(values, types) if by_columns else None
        return [ColumnarRecords(range(len(values)), columns)] if columns else None

    def read(message: Message) -> Iterable[Record]:
        if message.value is None:
            return (_delete(message, of_key, key),)
        return (Record(_object(value(message.value))),)

    return FormatReader(read, many, whole)


def several(
    values: Callable[[bytes], Iterable[Any]], of_key: Callable[[bytes], Any], key: tuple[str, ...]
) -> FormatReader:
    """Return the reader of messages that hold any number of rows."""

    def read(message: Message) -> Iterable[Record]:
        if message.value is None:
            return (_delete(message, of_key, key),)
        found = enumerate(values(message.value))
        return tuple(Record(_object(row), nth=nth) for nth, row in found)

    return FormatReader(read)


def _delete(message: Message, of_key: Callable[[bytes], Any], key: tuple[str, ...]) -> Record:
    if not key:
        raise Unusable("the message has no value")
    if message.key is None:
        raise Unusable("the message has neither a key nor a value")
    return Record(as_mapping(of_key(message.key), key), DELETE)


def _object(found: Any) -> Fields:
    if not isinstance(found, dict):
        raise Unusable("the message is not an object")
    return found
