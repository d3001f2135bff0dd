"""Envelopes of Debezium in Avro, read by columns."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from sluice.sources.kafka.formats.avro.columns import fits, read_record
from sluice.sources.kafka.formats.debezium.columns import DIGITS, Changes, Envelopes
from sluice.sources.kafka.formats.debezium.envelopes import DECIMAL, VALUES, ConnectType
from sluice.sources.kafka.formats.records import SparkTypes


def changes_of(
    record: Mapping[str, Any], image: Any, meanings: Mapping[str, ConnectType]
) -> Envelopes | None:
    """Return the way to read envelopes of a plain record; None if it is not Debezium's.

    `image`: the schema of a row in it; `meanings`: those of the row's columns.
    """
    row = _row(record.get("after"))
    if not row or row != _row(record.get("before")) or record.get("op") != "string":
        return None
    known = {**meanings, **_decimals(image)}

    def envelopes(values: Sequence[bytes], types: SparkTypes) -> Changes | None:
        plain = {n: t for n, t in types.items() if n not in known or known[n].name not in VALUES}
        found = read_record(record, values) if fits(row, plain) else None
        if found is None:
            return None
        before, after = (_chosen(found[name], types) for name in ("before", "after"))
        return Changes(found["op"], before, after, known)

    return envelopes


def _row(type_: Any) -> Mapping[str, Any] | None:
    """Return the record that a field holds, if it is one, or that and null."""
    parts = type_ if isinstance(type_, list) else [type_]
    return next((part for part in parts if isinstance(part, dict)), None)


def _chosen(image: pa.StructArray, types: SparkTypes) -> pa.StructArray:
    """Return the declared columns of rows; those that the rows lack are null."""
    lacking = pa.nulls(len(image), pa.string())
    has = {field.name for field in image.type}
    columns = [image.field(name) if name in has else lacking for name in types]
    return pa.StructArray.from_arrays(columns, list(types), mask=image.is_null())


def _decimals(image: Any) -> Mapping[str, ConnectType]:
    """Return the meanings of columns that are decimals of Avro's own."""
    found = {}
    for field in image["fields"]:
        parts = field["type"] if isinstance(field["type"], list) else [field["type"]]
        for part in parts:
            if isinstance(part, dict) and part.get("logicalType") == "decimal":
                given = {"scale": str(part.get("scale", 0)), DIGITS: str(part["precision"])}
                found[field["name"]] = ConnectType(DECIMAL, given)
    return found
