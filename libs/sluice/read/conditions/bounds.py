"""Bounds of a column's values in a file or row group, by statistics, without reading them.

Bounds may be wider than the values, never narrower. Some statistics can't be trusted to hold every
value: floats with NaN, decimals that went through JSON, types without an order. For such a column
the bounds are unknown, and its file is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

EXACT_IN_JSON = 15  # decimal digits that a double preserves
CUT = timedelta(microseconds=999)  # statistics in the Delta log are cut to milliseconds


@dataclass(frozen=True, slots=True)
class Bounds:
    """Range that holds all non-null values: [low, high], both None if there is no such value."""

    low: Any = None
    high: Any = None
    has_nulls: bool = True
    is_known: bool = True


UNKNOWN = Bounds(is_known=False)
ONLY_NULLS = Bounds()


def known(low: Any, high: Any, nulls: int | None, rows: int | None) -> Bounds:
    """Return bounds from a minimum, a maximum and a null count; any of them may be missing."""
    if low is None or high is None:
        return ONLY_NULLS if nulls is not None and nulls == rows else UNKNOWN
    return Bounds(low, high, has_nulls=nulls != 0)


def from_log(kind: pa.DataType, stats: Mapping[str, Any], column: str) -> Bounds:
    """Return the bounds of a data file from one flattened add action."""
    if f"partition.{column}" in stats:
        value = stats[f"partition.{column}"]
        return known(value, value, int(value is None), 1)
    low, high = stats.get(f"min.{column}"), stats.get(f"max.{column}")
    found = known(low, high, stats.get(f"null_count.{column}"), stats.get("num_records"))
    if low is None or high is None:
        return found
    if not _is_trusted(kind, low) or (isinstance(low, Decimal) and kind.precision > EXACT_IN_JSON):
        return UNKNOWN
    if isinstance(low, datetime):
        return Bounds(_shift(low, -CUT), _shift(high, CUT), found.has_nulls)
    return found


def from_parquet(kind: pa.DataType, statistics: Any, rows: int) -> Bounds:
    """Return a row group's bounds from a Parquet column chunk's statistics (None if missing)."""
    if statistics is None:
        return UNKNOWN
    nulls = statistics.null_count if statistics.has_null_count else None
    if not statistics.has_min_max:
        return known(None, None, nulls, rows)
    low, high = statistics.min, statistics.max
    return known(low, high, nulls, rows) if _is_trusted(kind, low) else UNKNOWN


def _shift(moment: datetime, by: timedelta) -> datetime:
    """Return the time shifted by that much, or itself at the end of the calendar."""
    try:
        return moment + by
    except OverflowError:
        return moment


def _is_trusted(kind: pa.DataType, value: Any) -> bool:
    """True if such a statistic has the column's own type and is ordered as its values are."""
    if pa.types.is_timestamp(kind):
        aware = isinstance(value, datetime) and value.tzinfo is not None
        return kind.unit == "us" and isinstance(value, datetime) and aware == (kind.tz is not None)
    if pa.types.is_date(kind):
        return isinstance(value, date) and not isinstance(value, datetime)
    if pa.types.is_decimal(kind):
        return isinstance(value, Decimal)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return isinstance(value, int)
    return pa.types.is_string(kind) and isinstance(value, str)
