"""Declared columns of messages: the fields of records as columns of texts."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructType

from sluice.files.retyped import NESTED
from sluice.interpreter.values.arrow_conversion import arrow_type
from sluice.sources.kafka.formats.records import Fields, Number, Unusable, written


@dataclass(frozen=True)
class DecodedColumn:
    """A declared column; `texts` is its type with STRING in place of every scalar in it."""

    name: str
    type: DataType
    texts: DataType

    @property
    def is_nested(self) -> bool:
        return isinstance(self.type, NESTED)

    def shaped(self, fields: Fields) -> Any:
        """Return a record's value as texts of the type. Raises Unusable if its shape is another."""
        value = fields.get(self.name)
        return None if value is None else _shaped(value, self.type, self.name)

    def of(self, records: Sequence[Fields]) -> pa.Array:
        """Return the values of records as texts, or as BIGINT if all are whole numbers.

        `shaped` has looked at nested ones.
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


def _shaped(value: Any, type_: DataType, name: str) -> Any:
    match type_:
        case ArrayType() if isinstance(value, list | tuple):
            return [None if v is None else _shaped(v, type_.elementType, name) for v in value]
        case MapType() if isinstance(value, dict):
            inner = type_.valueType
            return [(k, None if v is None else _shaped(v, inner, name)) for k, v in value.items()]
        case StructType() if isinstance(value, dict):
            parts = ((f, value.get(f.name)) for f in type_.fields)
            return {f.name: None if v is None else _shaped(v, f.dataType, name) for f, v in parts}
        case ArrayType() | MapType() | StructType():
            shape = type_.simpleString().upper()
            raise Unusable(f"column {name}: {written(value)[:80]} is not a valid {shape}")
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
            return written(value)
    return str(value)
