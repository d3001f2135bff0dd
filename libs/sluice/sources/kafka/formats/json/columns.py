"""Messages of JSON read into columns by Arrow, which keeps numbers as they were written.

Arrow refuses invalid JSON, a repeated field, and a value whose type differs from its column's. Any
refusal leaves the messages to the slower ways.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.json as pj
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    IntegralType,
    LongType,
)

from sluice.interpreter.values.arrow_conversion import arrow_type
from sluice.sources.kafka.formats.debezium.columns import Changes
from sluice.sources.kafka.formats.debezium.envelopes import VALUES, ConnectType
from sluice.sources.kafka.formats.json.messages import lines_of, meanings_of, without_schema
from sluice.sources.kafka.formats.records import Unusable

LOOKED_AT = 8  # messages that show how columns are written
_LOOK = msgspec.json.Decoder(list[dict[str, Any]])
_EXPONENT = re.compile(rb"[0-9][eE]|NaN|Inf")


def columns_of_json(
    values: Sequence[bytes], types: Mapping[str, DataType]
) -> Mapping[str, pa.Array] | None:
    """Return the declared columns of messages that are one plain object each; None if not sure."""
    payloads, _ = without_schema(values)
    looked = _looked_at(payloads)
    columns = None if looked is None else _fields(looked, types, {})
    lines = lines_of(payloads)
    if columns is None or b'"schema"' in lines:
        return None
    found = _read(lines, pa.schema(columns), len(values))
    return found and {name: found[name].combine_chunks() for name in types}


def changes_of_json(values: Sequence[bytes], types: Mapping[str, DataType]) -> Changes | None:
    """Return envelopes of Debezium, with or without one schema before each; None if not sure."""
    payloads, schema = without_schema(values)
    try:
        meanings = meanings_of(schema, "after") if schema else {}
    except Unusable:  # as each message says by itself
        return None
    images = _images(_looked_at(payloads))
    columns = None if images is None else _fields(images, types, meanings)
    if columns is None:
        return None
    image = pa.struct(columns)
    envelope = pa.schema([("op", pa.string()), ("before", image), ("after", image)])
    found = _read(lines_of(payloads), envelope, len(values))
    if found is None:
        return None
    op, before, after = (found[name].combine_chunks() for name in envelope.names)
    return Changes(op, before, after, meanings)


def _images(looked: Sequence[Any] | None) -> Sequence[Any] | None:
    """Return the rows in changes."""
    if looked is None:
        return None
    images = [change.get(name) for change in looked for name in ("after", "before")]
    return [image for image in images if isinstance(image, dict)]


def _read(lines: bytes, schema: pa.Schema, rows: int) -> pa.Table | None:
    if not lines or (_has_fractions(schema) and _EXPONENT.search(lines)):
        return None
    whole = pj.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
    try:
        lines.isascii() or lines.decode()
        found = pj.read_json(pa.BufferReader(lines), whole, options)
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    return found if found.num_rows == rows else None


def _looked_at(values: Sequence[bytes]) -> Sequence[dict[str, Any]] | None:
    """Return the first messages, if they are objects."""
    try:
        return _LOOK.decode(b"[" + b",".join(values[:LOOKED_AT]) + b"]")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _fields(
    looked: Iterable[Mapping[str, Any]],
    types: Mapping[str, DataType],
    meanings: Mapping[str, ConnectType],
) -> list[tuple[str, pa.DataType]] | None:
    """Return how columns are read; None if one is written in a way that has no plain rule."""
    fields = []
    for name, type_ in types.items():
        shown = next((row[name] for row in looked if row.get(name) is not None), "")
        has_meaning = name in meanings and meanings[name].name in VALUES
        read_as = _read_as(shown, LongType() if has_meaning else type_)
        if read_as is None:
            return None
        fields.append((name, read_as))
    return fields


def _read_as(shown: Any, type_: DataType) -> pa.DataType | None:
    match shown:
        case str():
            return pa.string()
        case bool():
            return pa.bool_() if isinstance(type_, BooleanType) else None
        case int() if isinstance(type_, IntegralType):
            return pa.int64()
        case int() | float() if isinstance(type_, DecimalType | DoubleType):
            return arrow_type(type_)
    return None


def _has_fractions(schema: pa.Schema | pa.StructType) -> bool:
    types = [field.type for field in schema]
    return any(
        pa.types.is_decimal(t)
        or pa.types.is_floating(t)
        or (pa.types.is_struct(t) and _has_fractions(t))
        for t in types
    )
