"""Messages decoded into Arrow: the declared columns as texts, and what is known of each row."""

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, LongType, StringType, StructField

from sluice.declare.delivered_row import FILE, OP
from sluice.files.conversion import BLOCK, ROW
from sluice.files.json_texts import MARK
from sluice.language.hidden_columns import ID
from sluice.sources.kafka.client.message import COLUMNS, NUMBER, Message, one_by_one
from sluice.sources.kafka.decoding.columns import DecodedColumn
from sluice.sources.kafka.decoding.kept import AT, KEY, LEFT_OUT, VALUE
from sluice.sources.kafka.formats.records import (
    INSERT,
    ColumnarRecords,
    Fields,
    FormatReader,
    Record,
    Unusable,
)

FAULT = "_sluice_fault"
LONGEST_FAULT = 300
OWN = (
    *(StructField(name, StringType()) for name in (MARK, FAULT, FILE, OP, ID)),
    *(StructField(name, LongType()) for name in (BLOCK, ROW, AT, LEFT_OUT)),
    *(StructField(name, BinaryType()) for name in (KEY, VALUE)),
)
AT_ONCE = 2_000  # messages held as Python objects at a time; Arrow holds the others
NO_ROW = Record({})


class DecodedRows(NamedTuple):
    """Rows of messages, by column: the message of each, its fields, and what else is known of it.

    `does` and `nths` are those of records, for rows that say them. `faults`: why there is NO_ROW.
    """

    messages: pa.RecordBatch
    fields: Sequence[Fields]
    does: Sequence[str] | None = None
    nths: Sequence[int] | None = None
    faults: Sequence[str | None] | None = None


def decoded_all(
    topic: str, columns: Sequence[DecodedColumn], messages: pa.Table, reader: FormatReader
) -> pa.Table:
    """Return the rows of any number of messages, decoded some at a time.

    A column has its values if all of its parts have them, else texts.
    """
    none = pa.RecordBatch.from_pylist([], COLUMNS)
    some = messages.combine_chunks().to_batches(max_chunksize=AT_ONCE) or [none]
    with _without_collector():
        blocks = (decoded(topic, columns, each, reader) for each in some)
        parts = [part for block in blocks for part in block]
    for column in columns:
        if not column.is_nested:
            parts = _of_one_type(parts, column.name)
    return pa.concat_tables(parts)


def _of_one_type(parts: list[pa.Table], name: str) -> list[pa.Table]:
    """Return parts whose columns of that name have one type; a column of nulls fits any."""
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
    topic: str, columns: Sequence[DecodedColumn], messages: pa.RecordBatch, reader: FormatReader
) -> Iterator[pa.Table]:
    """Yield the rows of messages in parts: the declared columns, as texts or values, and OWN."""
    nested = [c for c in columns if c.is_nested]
    parts = [] if nested else _by_columns(columns, messages, reader)
    for part in parts:
        its = messages.take(pa.array(part.places, NUMBER))
        does = None if part.does == INSERT else [part.does] * len(its)
        rows = DecodedRows(its, [NO_ROW.fields] * len(its), does, part.nths)
        yield pa.table({**part.columns, **_own(topic, rows)})
    rest = _left(messages, parts)
    if len(rest) or not parts:
        found = _at_once(nested, rest, reader) or _one_by_one(nested, rest, reader)
        yield pa.table({**{c.name: c.of(found.fields) for c in columns}, **_own(topic, found)})


def _by_columns(
    columns: Sequence[DecodedColumn], messages: pa.RecordBatch, reader: FormatReader
) -> Sequence[ColumnarRecords]:
    """Return the rows that the format can surely read by columns, of messages that have a value."""
    values = messages.column("value")
    if not reader.whole or values.null_count == len(values):
        return ()
    types = {column.name: column.type for column in columns}
    parts = reader.whole(values.drop_null().to_pylist(), types) or ()
    if not values.null_count:
        return parts
    live = np.flatnonzero(values.is_valid())
    return [part._replace(places=live[part.places].tolist()) for part in parts]


def _left(messages: pa.RecordBatch, parts: Sequence[ColumnarRecords]) -> pa.RecordBatch:
    """Return the messages that no part has read, in order."""
    is_left = np.ones(len(messages), np.bool_)
    for part in parts:
        is_left[part.places] = False
    return messages if is_left.all() else messages.filter(pa.array(is_left))


def _at_once(
    nested: Sequence[DecodedColumn], messages: pa.RecordBatch, reader: FormatReader
) -> DecodedRows | None:
    """Return the rows of messages that are one row each, if the format has a way for many."""
    values = messages.column("value")
    if not reader.many or values.null_count or not len(values):
        return None
    fields = reader.many(values.to_pylist())
    if fields is None:
        return None
    try:
        shaped = [_shaped(each, nested) for each in fields] if nested else fields
    except Unusable:
        return None
    return DecodedRows(messages, shaped)


def _one_by_one(
    nested: Sequence[DecodedColumn], messages: pa.RecordBatch, reader: FormatReader
) -> DecodedRows:
    found = list(_rows(nested, one_by_one(messages), reader))
    records = [record for _, record, _ in found]
    return DecodedRows(
        messages.take(pa.array([place for place, _, _ in found], NUMBER)),
        [record.fields for record in records],
        [record.does for record in records],
        [record.nth for record in records],
        [fault for _, _, fault in found],
    )


def _rows(
    nested: Sequence[DecodedColumn], messages: Iterable[Message], reader: FormatReader
) -> Iterator[tuple[int, Record, str | None]]:
    """Yield the rows of messages, each with its message's place; one with a fault gives none."""
    for place, message in enumerate(messages):
        try:
            _check_size(message)
            records = reader(message)
            if nested:
                records = [r._replace(fields=_shaped(r.fields, nested)) for r in records]
        except Unusable as fault:
            says = str(fault)[:LONGEST_FAULT].encode("utf-8", "replace").decode()
            yield place, NO_ROW, says
        else:
            for record in records:
                yield place, record, None


def _check_size(message: Message) -> None:
    if message.left_out:
        raise Unusable(f"the message has {message.left_out:,} bytes, more than `max_message_bytes`")


def _shaped(fields: Fields, nested: Sequence[DecodedColumn]) -> Fields:
    return {**fields, **{column.name: column.shaped(fields) for column in nested}}


def _own(topic: str, found: DecodedRows) -> dict[str, pa.Array]:
    """Return the columns of OWN."""
    text, count, sent = pa.string(), len(found.fields), found.messages
    partition, offset, left_out = (sent.column(n) for n in ("partition", "offset", "left_out"))
    place = [partition.cast(text), offset.cast(text)]
    if found.nths:
        place.append(pa.array([_place(nth) if nth else None for nth in found.nths], text))
    return {
        MARK: pa.nulls(count, text),
        FAULT: pa.array(found.faults, text) if found.faults else pa.nulls(count, text),
        FILE: pc.binary_join_element_wise(topic, place[0], "/"),
        OP: pa.array(found.does, text) if found.does else pa.repeat(INSERT, count),
        ID: pc.binary_join_element_wise(*place, "-", null_handling="skip"),
        BLOCK: partition,
        ROW: offset,
        AT: sent.column("at"),
        LEFT_OUT: pc.if_else(pc.equal(left_out, 0), pa.scalar(None, NUMBER), left_out),
        KEY: sent.column("key"),
        VALUE: sent.column("value"),
    }


def _place(nth: int) -> str:
    """Return a number as a text that sorts as the number does: 9, a10, a99, aa100."""
    return f"{'a' * (len(str(nth)) - 1)}{nth}"
