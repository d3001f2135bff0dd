"""Messages as rows of the declared columns, each with its reason, its identity and what it does.

A message's identity is its partition and offset, so a message that is read again gives the same
rows. In quarantine a row keeps its message whole, as JSON: topic, partition, offset, time, and key
and value in base64.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from sluice.declare.delivered_row import FILE, ID, KEPT, OP, REASON
from sluice.files.changes import unknown_word
from sluice.files.conversion import BLOCK, ROW, ddl
from sluice.files.here import as_texts, frame
from sluice.files.json_texts import MARK
from sluice.files.marks import POSITION
from sluice.files.spelled import Texts
from sluice.files.texts import of_texts
from sluice.language.interval import Interval
from sluice.sources.delivery import time_reasons
from sluice.sources.kafka.broker import Message
from sluice.sources.kafka.json_messages import written
from sluice.sources.kafka.records import Reader, Record, Unusable
from sluice.sources.spec import Source

FAULT = "_sluice_fault"
TEXTS = (MARK, FAULT, KEPT, FILE, OP, ID)
OWN = (
    *(StructField(name, StringType()) for name in TEXTS),
    StructField(BLOCK, LongType()),
    StructField(ROW, LongType()),
)


def rows_of(
    session: SparkSession, spec: Source, messages: Sequence[Message], reader: Reader, at: Interval
) -> DataFrame:
    """Return the rows of messages that arrived at a moment, for the gate."""
    declared = session.createDataFrame([], ddl(spec)).schema.fields
    fields = [StructField(f.name, as_texts(f.dataType, session)) for f in declared]
    topic = spec.kafka.topic if spec.kafka else ""
    found = list(_rows(topic, fields, messages, reader))
    read = frame(session, found, [*fields, *OWN])
    typed = of_texts(read, spec, Texts({}, MARK), reason=FAULT)
    return _judged(typed, spec, at)


def _judged(rows: DataFrame, spec: Source, at: Interval) -> DataFrame:
    """Add the source's own objections, and the place of each row."""
    reasons = [F.col(REASON), *time_reasons(spec, at)]
    if spec.change:
        reasons.append(unknown_word(spec.change))
    known = rows.withColumn(REASON, F.coalesce(*reasons))
    known = known.withColumn(POSITION, F.col(ROW)).drop(BLOCK, ROW)
    return known.drop(OP) if spec.change else known


def _rows(
    topic: str, fields: Sequence[StructField], messages: Iterable[Message], reader: Reader
) -> Iterator[tuple[Any, ...]]:
    nothing = (None,) * len(fields)
    for message in messages:
        try:
            for record in reader(message):
                yield (*_values(record, fields), None, None, *_own(topic, message, record))
        except Unusable as fault:
            yield (*nothing, None, str(fault), *_own(topic, message, Record({})))


def _own(topic: str, message: Message, record: Record) -> tuple[Any, ...]:
    place = f"{message.partition}-{message.offset}"
    file = f"{topic}/{message.partition}"
    id_ = f"{place}-{record.nth}" if record.nth else place
    kept = kept_of(topic, message)
    return kept, file, record.does, id_, message.partition, message.offset


def kept_of(topic: str, message: Message) -> str:
    """Return a message as the quarantine keeps it."""
    key, value = (
        None if data is None else b64encode(data).decode() for data in (message.key, message.value)
    )
    place = {"topic": topic, "partition": message.partition, "offset": message.offset}
    return json.dumps({**place, "timestamp": message.at, "key": key, "value": value})


def message_of(kept: str) -> Message:
    """Return the message that the quarantine keeps."""
    found = json.loads(kept)
    key, value = (None if found[n] is None else b64decode(found[n]) for n in ("key", "value"))
    return Message(found["partition"], found["offset"], found["timestamp"], key, value)


def _values(record: Record, fields: Sequence[StructField]) -> Iterator[Any]:
    for field in fields:
        value = record.fields.get(field.name)
        yield None if value is None else _shaped(value, field.dataType, field.name)


def _shaped(value: Any, type_: DataType, name: str) -> Any:
    """Return a value as the texts of a type. Raises Unusable if its shape is another."""
    match type_:
        case StringType():
            return _text(value)
        case ArrayType() if isinstance(value, list | tuple):
            return [None if v is None else _shaped(v, type_.elementType, name) for v in value]
        case MapType() if isinstance(value, dict):
            inner = type_.valueType
            return [(k, None if v is None else _shaped(v, inner, name)) for k, v in value.items()]
        case StructType() if isinstance(value, dict):
            parts = ((f, value.get(f.name)) for f in type_.fields)
            return {f.name: None if v is None else _shaped(v, f.dataType, name) for f, v in parts}
    raise Unusable(f"column {name}: {written(value)[:80]} is no {type_.simpleString().upper()}")


def _text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case bytes():
            return value.decode("utf-8", "replace")
        case dict() | list() | tuple():
            return written(value)
    return str(value)
