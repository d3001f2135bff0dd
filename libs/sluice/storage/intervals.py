"""Which intervals of a source were delivered, and what came with each.

One small table a source, `<source>__intervals`, written after the source's own commit: if a crash
comes in between, the interval is read once more and nothing changes.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from sluice.errors import UsageError
from sluice.specs.interval import Interval

_TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        ("interval_start", _TIME),
        ("interval_end", _TIME),
        ("files", pa.string()),
        ("rows_read", pa.int64()),
        ("rows_accepted", pa.int64()),
        ("rows_quarantined", pa.int64()),
        ("delivered_at", _TIME),
    ]
)


@dataclass(frozen=True)
class Delivery:
    """One delivered interval; `files` is the fingerprint of what was read."""

    interval: Interval
    files: str
    rows_read: int
    rows_accepted: int
    rows_quarantined: int


def deliveries(uri: str) -> list[Delivery]:
    """Every delivered interval, in order."""
    if not DeltaTable.is_deltatable(uri):
        return []
    rows = DeltaTable(uri).to_pyarrow_table().sort_by("interval_start").to_pylist()
    return [
        Delivery(
            Interval(r["interval_start"], r["interval_end"]),
            r["files"],
            r["rows_read"],
            r["rows_accepted"],
            r["rows_quarantined"],
        )
        for r in rows
    ]


def is_delivered(uri: str, interval: Interval, files: str) -> bool:
    """Whether exactly these files were read for exactly this interval."""
    return any(d.interval == interval and d.files == files for d in deliveries(uri))


def replaced_by(delivered: list[Delivery], interval: Interval, source: str) -> list[Delivery]:
    """The deliveries that one of `interval` replaces: those that lie wholly inside it.

    Raises UsageError if one overlaps it only in part.
    """
    inside = [d for d in delivered if _overlaps(d.interval, interval)]
    for delivery in inside:
        if delivery.interval.start < interval.start or delivery.interval.end > interval.end:
            raise UsageError(
                f"{source}: the interval {_text(interval)} overlaps only a part of "
                f"{_text(delivery.interval)}, which was delivered before",
                hint="run an interval that contains the earlier one whole; its rows are replaced",
            )
    return inside


def record(uri: str, delivery: Delivery) -> None:
    """Note a delivery in place of those that it replaces."""
    row = {
        "interval_start": delivery.interval.start,
        "interval_end": delivery.interval.end,
        "files": delivery.files,
        "rows_read": delivery.rows_read,
        "rows_accepted": delivery.rows_accepted,
        "rows_quarantined": delivery.rows_quarantined,
        "delivered_at": datetime.now(UTC),
    }
    rows = pa.Table.from_pylist([row], schema=SCHEMA)
    if not DeltaTable.is_deltatable(uri):
        write_deltalake(uri, rows, mode="append")
        return
    start, end = (t.isoformat() for t in (delivery.interval.start, delivery.interval.end))
    predicate = f"interval_start >= '{start}' AND interval_start < '{end}'"
    write_deltalake(uri, rows, mode="overwrite", predicate=predicate)


def _overlaps(a: Interval, b: Interval) -> bool:
    return a.start < b.end and b.start < a.end


def _text(interval: Interval) -> str:
    return f"[{interval.start.isoformat()}, {interval.end.isoformat()})"
