"""Records of one message: what its rows hold, and what they do to the table.

A reader of a format returns records whose fields are texts, lists and mappings of texts, or None.
It raises Unusable for a message that it can't read; that becomes the reason of the message's row.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sluice.sources.kafka.message import Message

if TYPE_CHECKING:
    import pyarrow as pa

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


def plain(
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
