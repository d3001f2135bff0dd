"""Messages of JSON read into columns by Arrow, which keeps numbers as they were written.

Arrow refuses what is no JSON, a field that stands twice, and a value of another type than the
column is read as. Any refusal leaves the messages to the slower ways.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.json as pj
from pyspark.sql.types import BooleanType, DataType, DecimalType, DoubleType, IntegralType

from sluice.interpreter.values.arrow import arrow_type
from sluice.sources.kafka.json_messages import lines_of

LOOKED_AT = 8  # messages that show how columns are written
AT_ONCE = pj.ReadOptions(use_threads=False, block_size=1 << 30)
_EXPONENT = re.compile(rb"[0-9][eE]|NaN|Inf")


def columns_of_json(
    values: Sequence[bytes], types: Mapping[str, DataType]
) -> Mapping[str, pa.Array] | None:
    """Return the declared columns of messages that are one plain object each; None if not sure."""
    lines = lines_of(values)
    if not lines or b'"schema"' in lines:
        return None
    schema = _schema(values[:LOOKED_AT], types)
    if schema is None or (_has_fractions(schema) and _EXPONENT.search(lines)):
        return None
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
    try:
        lines.isascii() or lines.decode()
        found = pj.read_json(pa.BufferReader(lines), AT_ONCE, options)
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    if found.num_rows != len(values):
        return None
    return {name: found[name].combine_chunks() for name in types}


def _schema(values: Iterable[bytes], types: Mapping[str, DataType]) -> pa.Schema | None:
    """Return how the columns are read; None if one is written in a way that has no plain rule."""
    try:
        looked = [msgspec.json.decode(value) for value in values]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    fields = []
    for name, type_ in types.items():
        shown = next((row[name] for row in looked if row.get(name) is not None), "")
        read_as = _read_as(shown, type_)
        if read_as is None:
            return None
        fields.append((name, read_as))
    return pa.schema(fields)


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


def _has_fractions(schema: pa.Schema) -> bool:
    return any(pa.types.is_decimal(t) or pa.types.is_floating(t) for t in schema.types)
