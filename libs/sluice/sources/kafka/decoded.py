"""Messages decoded into Arrow: the declared columns as texts, and what is known of each row."""

import gc
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import LongType, StringType, StructField

from sluice.declare.delivered_row import FILE, ID, KEPT, OP
from sluice.files.conversion import BLOCK, ROW
from sluice.files.json_texts import MARK
from sluice.sources.kafka.broker import Message
from sluice.sources.kafka.columns import Column
from sluice.sources.kafka.kept import kept_of
from sluice.sources.kafka.records import Reader, Record, Unusable

FAULT = "_sluice_fault"
LONGEST_FAULT = 300
TEXTS = (MARK, FAULT, KEPT, FILE, OP, ID)
OWN = (
    *(StructField(name, StringType()) for name in TEXTS),
    StructField(BLOCK, LongType()),
    StructField(ROW, LongType()),
)
AT_ONCE = 5_000  # messages that are Python's objects at a time; Arrow holds the others
NO_ROW = Record({})
Row = tuple[Message, Record, str | None]  # the last is the fault for which there is NO_ROW


def decoded_all(
    topic: str, columns: Sequence[Column], messages: Sequence[Message], reader: Reader
) -> pa.Table:
    """Return the rows of any number of messages, decoded some at a time."""
    starts = range(0, len(messages) or 1, AT_ONCE)
    with _without_collector():
        return pa.concat_tables(
            decoded(topic, columns, messages[n : n + AT_ONCE], reader) for n in starts
        )


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
    topic: str, columns: Sequence[Column], messages: Iterable[Message], reader: Reader
) -> pa.Table:
    """Return the rows of messages: the declared columns as texts, and OWN."""
    found = list(_rows([c for c in columns if c.is_nested], messages, reader))
    fields = [record.fields for _, record, _ in found]
    return pa.table({**{c.name: c.of(fields) for c in columns}, **_own(topic, found)})


def _rows(nested: Sequence[Column], messages: Iterable[Message], reader: Reader) -> Iterator[Row]:
    """Yield the rows of messages; a message with a fault gives none of its rows."""
    for message in messages:
        try:
            _check_size(message)
            records = reader(message)
            if nested:
                records = [_shaped(record, nested) for record in records]
        except Unusable as fault:
            says = str(fault)[:LONGEST_FAULT].encode("utf-8", "replace").decode()
            yield message, NO_ROW, says
        else:
            for record in records:
                yield message, record, None


def _check_size(message: Message) -> None:
    if message.left_out:
        raise Unusable(f"the message has {message.left_out:,} bytes, more than `max_message_bytes`")


def _shaped(record: Record, nested: Sequence[Column]) -> Record:
    shaped = {column.name: column.shaped(record.fields) for column in nested}
    return record._replace(fields={**record.fields, **shaped})


def _own(topic: str, found: Sequence[Row]) -> dict[str, pa.Array]:
    """Return the columns of OWN."""
    messages, shown, text = [row[0] for row in found], json.dumps(topic), pa.string()
    partitions = pa.array([message.partition for message in messages], pa.int64())
    offsets = pa.array([message.offset for message in messages], pa.int64())
    nths = pa.array([_place(record.nth) if record.nth else None for _, record, _ in found], text)
    place = [partitions.cast(text), offsets.cast(text), nths]
    return {
        MARK: pa.nulls(len(found), text),
        FAULT: pa.array([fault for _, _, fault in found], text),
        KEPT: pa.array([kept_of(shown, message) for message in messages], text),
        FILE: pc.binary_join_element_wise(topic, partitions.cast(text), "/"),
        OP: pa.array([record.does for _, record, _ in found], text),
        ID: pc.binary_join_element_wise(*place, "-", null_handling="skip"),
        BLOCK: partitions,
        ROW: offsets,
    }


def _place(nth: int) -> str:
    """Return a number as a text that sorts as the number does: 9, a10, a99, aa100."""
    return f"{'a' * (len(str(nth)) - 1)}{nth}"
