"""Bounds of the times in a column, from the statistics of the table's files in its log.

The log cuts times down to milliseconds, so upper bounds are raised by that much. A file without
statistics promises nothing.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sluice.delta.log.active import active_files
from sluice.delta.log.opened import opened

CUT = timedelta(milliseconds=1)
Bounds = tuple[datetime | None, datetime | None]


def may_hold(uri: str, version: int, column: str, start: datetime, end: datetime) -> bool:
    """True if the table may have a time in [start, end) in a column."""
    return any(
        low is None or high is None or (low < end and high + CUT > start)
        for low, high in _bounds(uri, version, column)
    )


def not_before(uri: str, version: int, column: str) -> datetime | None:
    """Return a time that is not after the column's latest; None if it is unknown."""
    highest = [high for _, high in _bounds(uri, version, column)]
    known = [high for high in highest if isinstance(high, datetime)]
    return max(known) if known and len(known) == len(highest) else None


def _bounds(uri: str, version: int, column: str) -> Sequence[Bounds]:
    """Return the bounds of each file, None where they are unknown."""
    actions = active_files(opened(uri, version)).to_pydict()
    unknown = [None] * len(actions["path"])
    lows, highs = (actions.get(f"{kind}.{column}", unknown) for kind in ("min", "max"))
    return list(zip(lows, highs, strict=True))
