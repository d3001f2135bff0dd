"""What a table's log says of the times in a column, by the statistics of its files.

The log cuts times to milliseconds, so bounds are taken for that much wider. Where a file has no
statistics, nothing is promised.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pyarrow as pa
from deltalake import DeltaTable

CUT = timedelta(milliseconds=1)
Bounds = tuple[datetime | None, datetime | None]


def may_hold(uri: str, version: int, column: str, start: datetime, end: datetime) -> bool:
    """Whether the table may have a time of [start, end) in a column."""
    return any(
        low is None or high is None or (low - CUT < end and high + CUT >= start)
        for low, high in _bounds(uri, version, column)
    )


def not_before(uri: str, version: int, column: str) -> datetime | None:
    """A time that the latest of a column is not before; None if that is not known."""
    highest = [high for _, high in _bounds(uri, version, column)]
    known = [high for high in highest if isinstance(high, datetime)]
    return max(known) if known and len(known) == len(highest) else None


def _bounds(uri: str, version: int, column: str) -> Sequence[Bounds]:
    """Of each file."""
    actions = pa.table(DeltaTable(uri, version=version).get_add_actions(flatten=True)).to_pydict()
    unknown = [None] * len(actions["path"])
    lows, highs = (actions.get(f"{kind}.{column}", unknown) for kind in ("min", "max"))
    return list(zip(lows, highs, strict=True))
