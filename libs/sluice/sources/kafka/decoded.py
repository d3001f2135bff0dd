"""Messages decoded into Arrow: the declared columns as texts, and what is known of each row."""

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, LongType, StringType, StructField

from sluice.declare.delivered_row import FILE, ID, OP
from sluice.files.conversion import BLOCK, ROW
from sluice.files.json_texts import MARK
from sluice.sources.kafka.broker import Message
from sluice.sources.kafka.columns import Column
from sluice.sources.kafka.kept import AT, KEY, LEFT_OUT, VALUE
from sluice.sources.kafka.records import INSERT, Fields, Part, Reader, Record, Unusable

FAULT = "_sluice_fault"
LONGEST_FAULT = 300
OWN = (
    *(StructField(name, StringType()) for name in (MARK, FAULT, FILE, OP, ID)),
    *(StructField(name, LongType()) for name in (BLOCK, ROW, AT, LEFT_OUT)),
    *(StructField(name, BinaryType()) for name in (KEY, VALUE)),
)
AT_ONCE = 2_000  # messages that are Python's objects at a time; Arrow holds the others
NO_ROW = Record({})


class Rows(NamedTuple):
    """Rows of messages, by column: the message of each, its fields, and what else is known of it.

    `does` and `nths` are those of records, for rows that say them. `faults`: why there is NO_ROW.
    """

    messages: Sequence[Message]
    fields: Sequence[Fields]
    does: Sequence[str] | None = None
    nths: Sequence[int] | None = None
    faults: Sequence[str | None] | None = None


def decoded_all(
    topic: str, columns: Sequence[Column], messages: Sequence[Message], reader: Reader
) -> pa.Table:
    """Return the rows of any number of messages, decoded some at a time.

    A column has its values if all of its parts have them, else texts.
    """
    starts = range(0, len(messages) or 1, AT_ONCE)
    with _without_collector():
        blocks = (decoded(topic, columns, messages[n : n + AT_ONCE], reader) for n in starts)
        parts = [part for block in blocks for part in block]
    for column in columns:
        if not column.is_nested:
            parts = _of_one_type(parts, column.name)
    return pa.concat_tables(parts)


def _of_one_type(parts: list[pa.Table], name: str) -> list[pa.Table]:
    """Return parts whose columns of that name are of one type; nulls alone are of any."""
    nth = parts[0].column_names.index(name)
    if len({part.schema.types[nth] for part in parts}) == 1:
        return parts
    has_values = [part.column(nth).null_count < len(part) for part in parts]
    types = {p.schema.types[nth] for p, has in zip(parts, has_values, strict=True) if has}
    type_ = types.pop() if len(types) == 1 else pa.string()
    return [
        part.set_column(
            nth, name, part.column(nth).cast(type_) if has else pa.nulls(len(part), type_)
        )
        for part, has in zip(parts, has_values, strict=True)
    ]


@contextmanager
def _without_collector() -> Iterator[None]:
    """Collect no garbage: messages have no cycles, and the search for some takes a third."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def decoded(
    topic: str, columns: Sequence[Column], messages: Sequence[Message], reader: Reader
) -> Iterator[pa.Table]:
    """Yield the rows of messages in parts: the declared columns, as texts or values, and OWN."""
    nested = [c for c in columns if c.is_nested]
    live = [m for m in messages if m.value is not None and not m.left_out]
    parts = [] if nested else _by_columns(columns, live, reader)
    for part in parts:
        its = [live[n] for n in part.places]
        does = None if part.does == INSERT else [part.does] * len(its)
        rows = Rows(its, [NO_ROW.fields] * len(its), does, part.nths)
        yield pa.table({**part.columns, **_own(topic, rows)})
    rest = _left(messages, live, parts)
    if rest or not parts:
        found = _at_once(nested, rest, reader) or _one_by_one(nested, rest, reader)
        yield pa.table({**{c.name: c.of(found.fields) for c in columns}, **_own(topic, found)})


def _by_columns(
    columns: Sequence[Column], messages: Sequence[Message], reader: Reader
) -> Sequence[Part]:
    """Return the rows that the format can surely read by columns."""
    values = _values(messages) if reader.whole else ()
    types = {column.name: column.type for column in columns}
    return (reader.whole(values, types) if reader.whole and values else None) or ()


def _left(
    messages: Sequence[Message], live: Sequence[Message], parts: Sequence[Part]
) -> Sequence[Message]:
    """Return the messages that no part has read, in order."""
    places = {n for part in parts for n in part.places} if parts else ()
    if len(places) == len(messages):
        return ()
    read = {live[n][:2] for n in places}
    return [m for m in messages if m[:2] not in read] if read else messages


def _values(messages: Sequence[Message]) -> Sequence[bytes]:
    """Return the values of messages; nothing if one has none."""
    values = [m.value for m in messages if m.value is not None and not m.left_out]
    return values if len(values) == len(messages) else ()


def _at_once(nested: Sequence[Column], messages: Sequence[Message], reader: Reader) -> Rows | None:
    """Return the rows of messages that are one row each, if the format has a way for many."""
    values = _values(messages) if reader.many else ()
    fields = reader.many(values) if reader.many and values else None
    if fields is None:
        return None
    try:
        shaped = [_shaped(each, nested) for each in fields] if nested else fields
    except Unusable:
        return None
    return Rows(messages, shaped)


def _one_by_one(nested: Sequence[Column], messages: Sequence[Message], reader: Reader) -> Rows:
    found = list(_rows(nested, messages, reader))
    records = [record for _, record, _ in found]
    return Rows(
        [message for message, _, _ in found],
        [record.fields for record in records],
        [record.does for record in records],
        [record.nth for record in records],
        [fault for _, _, fault in found],
    )


def _rows(
    nested: Sequence[Column], messages: Iterable[Message], reader: Reader
) -> Iterator[tuple[Message, Record, str | None]]:
    """Yield the rows of messages; a message with a fault gives none of its rows."""
    for message in messages:
        try:
            _check_size(message)
            records = reader(message)
            if nested:
                records = [r._replace(fields=_shaped(r.fields, nested)) for r in records]
        except Unusable as fault:
            says = str(fault)[:LONGEST_FAULT].encode("utf-8", "replace").decode()
            yield message, NO_ROW, says
        else:
            for record in records:
                yield message, record, None


def _check_size(message: Message) -> None:
    if message.left_out:
        raise Unusable(f"the message has {message.left_out:,} bytes, more than `max_message_bytes`")


def _shaped(fields: Fields, nested: Sequence[Column]) -> Fields:
    return {**fields, **{column.name: column.shaped(fields) for column in nested}}


def _own(topic: str, found: Rows) -> dict[str, pa.Array]:
    """Return the columns of OWN."""
    text, count = pa.string(), len(found.fields)
    parts = list(zip(*found.messages, strict=True)) or [()] * len(Message._fields)
    partitions, offsets, times = (pa.array(part, pa.int64()) for part in parts[:3])
    keys, values = (pa.array(part, pa.binary()) for part in parts[3:5])
    left_out = pa.array([size or None for size in parts[5]], pa.int64())
    place = [partitions.cast(text), offsets.cast(text)]
    if found.nths:
        place.append(pa.array([_place(nth) if nth else None for nth in found.nths], text))
    return {
        MARK: pa.nulls(count, text),
        FAULT: pa.array(found.faults, text) if found.faults else pa.nulls(count, text),
        FILE: pc.binary_join_element_wise(topic, partitions.cast(text), "/"),
        OP: pa.array(found.does, text) if found.does else pa.repeat(INSERT, count),
        ID: pc.binary_join_element_wise(*place, "-", null_handling="skip"),
        BLOCK: partitions,
        ROW: offsets,
        AT: times,
        LEFT_OUT: left_out,
        KEY: keys,
        VALUE: values,
    }


def _place(nth: int) -> str:
    """Return a number as a text that sorts as the number does: 9, a10, a99, aa100."""
    return f"{'a' * (len(str(nth)) - 1)}{nth}"
