"""Settings for files of delta-rs: small row groups, and statistics where they are correct.

Wrong statistics make readers skip files that hold wanted rows. delta-rs writes those of a decimal
as a float or a 64-bit integer, which round and overflow. It leaves NaN out of a maximum, although
Spark treats NaN as the greatest number. So these columns get none, nor do nested ones, which
delta-rs can't switch one by one. Files without statistics are always read.
"""

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import ColumnProperties, WriterProperties

GROUP_ROWS = 5_000  # rows of a row group: the minimum for a read of one key
SHORT = 32  # characters of a text that is its own bound
EXACT_DIGITS = 15  # decimal digits that a 64-bit float always preserves

_SAFE = (
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
)


def writer_properties(schema: pa.Schema) -> WriterProperties:
    """Return the settings with which delta-rs writes files of these columns."""
    kept = ColumnProperties(statistics_enabled="PAGE")
    return WriterProperties(
        compression="SNAPPY",
        max_row_group_size=GROUP_ROWS,
        default_column_properties=ColumnProperties(statistics_enabled="NONE"),
        column_properties={f.name: kept for f in schema if has_exact_statistics(f.type)},
    )


def has_exact_statistics(type_: pa.DataType) -> bool:
    """True if delta-rs writes the true least and greatest value of a column of this type."""
    if pa.types.is_decimal(type_):
        return bool(type_.precision <= EXACT_DIGITS)
    return any(is_a(type_) for is_a in _SAFE)


def statistics_of(rows: pa.Table) -> dict[str, Any]:
    """Return the statistics of a file for the log: bounds of whole numbers, times, short texts."""
    kinds = (pa.types.is_integer, pa.types.is_date, pa.types.is_string)
    ordered = [
        f.name
        for f in rows.schema
        if any(is_a(f.type) for is_a in kinds) or (pa.types.is_timestamp(f.type) and f.type.tz)
    ]
    bounds = {name: found for name in ordered if (found := _bounds(rows[name]))}
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: _text(low) for name, (low, _) in bounds.items()},
        "maxValues": {name: _text(high) for name, (_, high) in bounds.items()},
        "nullCount": {name: rows[name].null_count for name in ordered},
        "tightBounds": True,
    }


def _bounds(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    """Return the least and the greatest value; None if there is none, or a long text."""
    try:
        known = pc.min_max(column).as_py()
    except OverflowError:  # Python has no such dates
        return None
    low, high = known["min"], known["max"]
    return None if low is None or max(len(str(low)), len(str(high))) > SHORT else (low, high)


def _text(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else value
