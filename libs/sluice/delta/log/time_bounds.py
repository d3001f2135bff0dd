"""Bounds of the times in a column, from the statistics of the table's files in its log.

The log cuts times down to milliseconds, so upper bounds are raised by that much. A file without
statistics has no bounds.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from sluice.delta.log.active import active_files
from sluice.delta.log.opened import opened
from sluice.delta.log.vectors import file_name, kept_rows

CUT = timedelta(milliseconds=1)
TimeBounds = tuple[datetime | None, datetime | None]


def may_hold(uri: str, version: int, column: str, start: datetime, end: datetime) -> bool:
    """True if the table may have a time in [start, end) in a column."""
    return any(
        low is None or high is None or (low < end and high + CUT > start)
        for low, high in _bounds(uri, version, column)
    )


def not_before(uri: str, version: int, column: str) -> datetime | None:
    """Return a time that is not after the column's latest; None if it is unknown.

    A file with marked rows may have lost its latest. Any row that it still has is not before its
    first time, if none is null.
    """
    table = opened(uri, version)
    marked, actions = kept_rows(table), active_files(table)
    known = [
        high if file_name(path) not in marked else low if nulls == 0 else None
        for path, low, high, nulls in _of_files(actions, "path", *_named(column, "null_count"))
    ]
    return max((time for time in known if isinstance(time, datetime)), default=None)


def _bounds(uri: str, version: int, column: str) -> Iterator[TimeBounds]:
    """Yield the bounds of each file, None where they are unknown."""
    return _of_files(active_files(opened(uri, version)), *_named(column))


def _named(column: str, *others: str) -> list[str]:
    return [f"{kind}.{column}" for kind in ("min", "max", *others)]


def _of_files(actions: pa.Table, *names: str) -> Iterator[Any]:
    """Yield these columns of each file's action, None where it has none."""
    unknown = [None] * actions.num_rows
    columns = actions.select([n for n in names if n in actions.column_names]).to_pydict()
    return zip(*(columns.get(name, unknown) for name in names), strict=True)
