"""Messages as rows of the declared columns, each with its reason, its identity and what it does.

A message's identity is its partition and offset, so reading it again gives the same rows. In
quarantine a message is kept whole, as JSON, with key and value in base64.

Messages are decoded into Arrow: the declared columns as texts, and what is known of each row.
Columns whose texts are all plain are then converted by Arrow at once; `files.spelled` accepts
more. A column with any other text is left to the slower rules in SQL, which give a reason for each
text that they reject.
"""

import gc
import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegralType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from sluice.declare.declared import FILE, KEPT, OP
from sluice.extras import require
from sluice.files.conversion import BLOCK, NESTED, ROW, ddl
from sluice.files.here import as_texts
from sluice.files.json import MARK
from sluice.files.spelled import Texts, of_texts
from sluice.gate.sql import text
from sluice.interpreter.values import arrow_type
from sluice.interpreter.values.casts import read_texts
from sluice.language.names import ID
from sluice.sources import Source, ValueFormat
from sluice.sources.kafka.debezium import debezium
from sluice.sources.kafka.records import (
    COLUMNS,
    INSERT,
    NUMBER,
    ColumnarRecords,
    Fields,
    FormatReader,
    Message,
    Number,
    Record,
    Unusable,
    each_message,
    make_row_reader,
    read_message,
    to_json,
)


def rows_of(
    session: SparkSession, spec: Source, messages: pa.Table, reader: FormatReader
) -> DataFrame:
    """Return the rows of messages, with BLOCK and ROW as their place."""
    declared = session.createDataFrame([], ddl(spec)).schema.fields
    columns = [DecodedColumn(f.name, f.dataType, as_texts(f.dataType, session)) for f in declared]
    topic = spec.kafka.topic if spec.kafka else ""
    found = decode_all(topic, columns, messages, reader)
    values = set()
    for nth, column in enumerate(columns):
        array, has_values = _convert_plain(found.column(nth).combine_chunks(), column)
        found = found.set_column(nth, column.name, array)
        values |= {column.name} if has_values else set()
    types = (c.type if c.name in values else c.texts for c in columns)
    fields = [*(StructField(c.name, t) for c, t in zip(columns, types, strict=True)), *OWN]
    rows = session.createDataFrame(found, StructType(fields))
    rows = rows.withColumn(KEPT, F.expr(kept_as_sql(topic))).drop(AT, KEY, VALUE, LEFT_OUT)
    own = Texts({}, MARK)
    return of_texts(rows, spec, own, reason=FAULT, values=values)


@dataclass(frozen=True)
class DecodedColumn:
    """A declared column; `texts` is its type with STRING in place of every scalar in it."""

    name: str
    type: DataType
    texts: DataType

    @property
    def is_nested(self) -> bool:
        return isinstance(self.type, NESTED)

    def shape(self, fields: Fields) -> Any:
        """Return a record's value as texts of the type. Raises Unusable if its shape is another."""
        value = fields.get(self.name)
        return None if value is None else _shape(value, self.type, self.name)

    def of(self, records: Sequence[Fields]) -> pa.Array:
        """Return the values of records as texts, or as BIGINT if all are whole numbers.

        `shape` has looked at nested ones.
        """
        values = [fields.get(self.name) for fields in records]
        if self.is_nested:
            return pa.array(values, arrow_type(self.texts))
        kinds = set(map(type, values)) - {type(None)}
        if kinds == {int}:
            try:
                return pa.array(values, pa.int64())
            except OverflowError:  # a number of more than 64 bits
                pass
        elif kinds <= {str, Number}:
            return pa.array(values, pa.string())
        return pa.array([None if v is None else _text(v, self.type) for v in values], pa.string())


def _convert_plain(found: pa.Array, column: DecodedColumn) -> tuple[pa.Array, bool]:
    """Return a column's values and True, if all are plain and need no rules; else its texts."""
    if column.is_nested:
        return found, False
    if found.type == arrow_type(column.type):
        return found, True
    if pa.types.is_integer(found.type) and isinstance(column.type, IntegralType):
        with suppress(pa.ArrowInvalid):  # a number beyond the type
            return found.cast(arrow_type(column.type)), True
    texts = found.cast(pa.string())
    values = plain_values(texts, column.type)
    return (texts, False) if values is None else (values, True)


def plain_values(texts: pa.Array, type_: DataType) -> pa.Array | None:
    """Return the values of texts; None unless all of them are plain and within the type."""
    if isinstance(type_, StringType):
        return texts
    with suppress(pa.ArrowInvalid):  # the 30th of February, or a number beyond the type
        return read_texts(type_, texts)
    return None


def reader_of(value: ValueFormat, key: tuple[str, ...], table: str) -> FormatReader:
    """Return the reader of a source's messages. Raises UsageError if a registry is not known."""
    require("kafka", f"{table}, a Kafka topic,")
    if value.format == "bytes":
        return FormatReader(read_message)
    if value.format == "protobuf":
        from sluice.sources.kafka.protobuf import protobuf_reader

        return protobuf_reader(value, key, table)
    if value.is_avro and not value.registry:
        from sluice.sources.kafka.avro import avro_file_reader

        return avro_file_reader(value, key)
    if value.is_avro:
        from sluice.sources.kafka.avro import avro_reader

        return avro_reader(value, key, table)
    from sluice.sources.kafka.debezium import by_columns
    from sluice.sources.kafka.json import (
        changes_of_json,
        columns_of_json,
        envelope,
        key_of_envelope,
        read_bare,
        rows_of_json,
    )

    if value.is_debezium:
        return debezium(envelope, key_of_envelope, key, by_columns(changes_of_json, key))
    return make_row_reader(read_bare, read_bare, key, rows_of_json, columns_of_json)


AT, KEY, VALUE, LEFT_OUT = "_sluice_at", "_sluice_key", "_sluice_value", "_sluice_left_out"


def kept_as_sql(topic: str) -> str:
    """Return SQL for a message of the topic as the quarantine keeps it, by its parts in columns."""
    parts = {
        "topic": text(json.dumps(topic)),
        "partition": f"string({BLOCK})",
        "offset": f"string({ROW})",
        "timestamp": f"string({AT})",
        "key": _base64(KEY),
        "value": _base64(VALUE),
    }
    named = ", ', ', ".join(f"""'"{name}": ', {part}""" for name, part in parts.items())
    left_out = f"""coalesce(concat(', "bytes": ', string({LEFT_OUT})), '')"""
    return f"concat('{{', {named}, {left_out}, '}}')"


def _base64(column: str) -> str:
    return f"""coalesce(concat('"', base64({column}), '"'), 'null')"""


def message_of(kept: str) -> Message:
    """Return the message that the quarantine keeps."""
    found = json.loads(kept)
    key, value = (None if found[n] is None else b64decode(found[n]) for n in ("key", "value"))
    place = found["partition"], found["offset"], found["timestamp"]
    return Message(*place, key, value, found.get("bytes", 0))


def _shape(value: Any, type_: DataType, name: str) -> Any:
    match type_:
        case ArrayType() if isinstance(value, list | tuple):
            return [None if v is None else _shape(v, type_.elementType, name) for v in value]
        case MapType() if isinstance(value, dict):
            inner = type_.valueType
            return [(k, None if v is None else _shape(v, inner, name)) for k, v in value.items()]
        case StructType() if isinstance(value, dict):
            parts = ((f, value.get(f.name)) for f in type_.fields)
            return {f.name: None if v is None else _shape(v, f.dataType, name) for f, v in parts}
        case ArrayType() | MapType() | StructType():
            shape = type_.simpleString().upper()
            raise Unusable(f"column {name}: {to_json(value)[:80]} is not a valid {shape}")
    return _text(value, type_)


def _text(value: Any, type_: DataType) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case bytes() if isinstance(type_, BinaryType):
            return b64encode(value).decode()
        case bytes():
            return value.decode("utf-8", "replace")
        case dict() | list() | tuple():
            return to_json(value)
    return str(value)


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


def decode_all(
    topic: str, columns: Sequence[DecodedColumn], messages: pa.Table, reader: FormatReader
) -> pa.Table:
    """Return the rows of any number of messages, decoded some at a time.

    A column has its values if all of its parts have them, else texts.
    """
    none = pa.RecordBatch.from_pylist([], COLUMNS)
    some = messages.combine_chunks().to_batches(max_chunksize=AT_ONCE) or [none]
    with _without_collector():
        blocks = (decode(topic, columns, each, reader) for each in some)
        parts = [part for block in blocks for part in block]
    for column in columns:
        if not column.is_nested:
            parts = _unify_types(parts, column.name)
    return pa.concat_tables(parts)


def _unify_types(parts: list[pa.Table], name: str) -> list[pa.Table]:
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


def decode(
    topic: str, columns: Sequence[DecodedColumn], messages: pa.RecordBatch, reader: FormatReader
) -> Iterator[pa.Table]:
    """Yield the rows of messages in parts: the declared columns, as texts or values, and OWN."""
    nested = [c for c in columns if c.is_nested]
    parts = [] if nested else _read_columns(columns, messages, reader)
    for part in parts:
        its = messages.take(pa.array(part.places, NUMBER))
        does = None if part.does == INSERT else [part.does] * len(its)
        rows = DecodedRows(its, [NO_ROW.fields] * len(its), does, part.nths)
        yield pa.table({**part.columns, **_describe_rows(topic, rows)})
    rest = _select_unread(messages, parts)
    if len(rest) or not parts:
        found = _read_at_once(nested, rest, reader) or _read_each(nested, rest, reader)
        yield pa.table(
            {**{c.name: c.of(found.fields) for c in columns}, **_describe_rows(topic, found)}
        )


def _read_columns(
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


def _select_unread(messages: pa.RecordBatch, parts: Sequence[ColumnarRecords]) -> pa.RecordBatch:
    """Return the messages that no part has read, in order."""
    is_left = np.ones(len(messages), np.bool_)
    for part in parts:
        is_left[part.places] = False
    return messages if is_left.all() else messages.filter(pa.array(is_left))


def _read_at_once(
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
        shaped = [_shape_nested(each, nested) for each in fields] if nested else fields
    except Unusable:
        return None
    return DecodedRows(messages, shaped)


def _read_each(
    nested: Sequence[DecodedColumn], messages: pa.RecordBatch, reader: FormatReader
) -> DecodedRows:
    found = list(_each_row(nested, each_message(messages), reader))
    records = [record for _, record, _ in found]
    return DecodedRows(
        messages.take(pa.array([place for place, _, _ in found], NUMBER)),
        [record.fields for record in records],
        [record.does for record in records],
        [record.nth for record in records],
        [fault for _, _, fault in found],
    )


def _each_row(
    nested: Sequence[DecodedColumn], messages: Iterable[Message], reader: FormatReader
) -> Iterator[tuple[int, Record, str | None]]:
    """Yield the rows of messages, each with its message's place; a faulty message gives no row."""
    for place, message in enumerate(messages):
        try:
            if size := message.left_out:
                raise Unusable(f"the message has {size:,} bytes, more than `max_message_bytes`")
            records = reader(message)
            if nested:
                records = [r._replace(fields=_shape_nested(r.fields, nested)) for r in records]
        except Unusable as fault:
            says = str(fault)[:LONGEST_FAULT].encode("utf-8", "replace").decode()
            yield place, NO_ROW, says
        else:
            for record in records:
                yield place, record, None


def _shape_nested(fields: Fields, nested: Sequence[DecodedColumn]) -> Fields:
    return {**fields, **{column.name: column.shape(fields) for column in nested}}


def _describe_rows(topic: str, found: DecodedRows) -> dict[str, pa.Array]:
    text, count, sent = pa.string(), len(found.fields), found.messages
    partition, offset, left_out = (sent.column(n) for n in ("partition", "offset", "left_out"))
    place = [partition.cast(text), offset.cast(text)]
    if found.nths:
        # Texts that sort as the numbers do: 9, a10, a99, aa100.
        sorted_so = (f"{'a' * (len(str(nth)) - 1)}{nth}" if nth else None for nth in found.nths)
        place.append(pa.array(sorted_so, text))
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
