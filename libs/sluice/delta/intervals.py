"""The delivered intervals of a source, and the counts of each delivery.

Each source has one small table, `<source>__intervals`. An interval's note is withdrawn before the
source's own commit and written again after it. After a crash in between, the interval counts as not
delivered: it is read once more, and nothing changes. A note never outlives the rows that it
describes. Each note is a file of its own; MANY_FILES of them are merged into one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
from deltalake import DeltaTable

from sluice.delta.arrow import read_table, replace_rows, tidy_rows
from sluice.delta.failpoint import passing
from sluice.delta.position import Head
from sluice.errors import DeliveriesLost, UsageError
from sluice.language.interval import Interval

MANY_FILES = 32  # the most that are read to list deliveries
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
        ("batch", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Delivery:
    """One delivered interval; `files` is the fingerprint of what was read.

    `batch` is the number of the commit that put its rows into the table.
    """

    interval: Interval
    files: str
    rows_read: int
    rows_accepted: int
    rows_quarantined: int
    batch: int = 0


def deliveries(uri: str) -> list[Delivery]:
    """Return every delivered interval, in order."""
    if not DeltaTable.is_deltatable(uri):
        return []
    rows = read_table(uri).sort_by("interval_start").to_pylist()
    return [
        Delivery(
            Interval(r["interval_start"], r["interval_end"]),
            r["files"],
            r["rows_read"],
            r["rows_accepted"],
            r["rows_quarantined"],
            r["batch"],
        )
        for r in rows
    ]


def is_delivered(uri: str, interval: Interval, files: str) -> bool:
    """True if exactly these files were read for exactly this interval."""
    return any(d.interval == interval and d.files == files for d in deliveries(uri))


def newest_batch(noted: Sequence[Delivery]) -> int:
    """Return the number of the newest commit that a note names."""
    return max((d.batch for d in noted), default=0)


def check_kept(source: str, noted: Sequence[Delivery], at: Head | None) -> None:
    """Raise DeliveriesLost if the table was restored to a state before a batch that a note names.

    The notes must be read before the head.
    """
    newest, now = newest_batch(noted), at.next_batch - 1 if at else 0
    if newest > now:
        raise DeliveriesLost(
            f"batch {newest} was delivered to {source}, but its table is only at batch {now}: an "
            "older state of it was put back alone",
            hint=f"run `sluice rebuild {source}`: it reads again all that was delivered",
        )


def replaced_by(
    delivered: list[Delivery], interval: Interval, source: str, timezone: str = "UTC"
) -> list[Delivery]:
    """Return the deliveries that one of `interval` replaces: those that lie wholly inside it.

    Raises UsageError if one overlaps it only in part.
    """
    inside = [d for d in delivered if d.interval.overlaps(interval)]
    for delivery in inside:
        if not interval.covers(delivery.interval):
            raise UsageError(
                f"{source}: the interval {interval.shown(timezone)} overlaps only a part of "
                f"{delivery.interval.shown(timezone)}, which was delivered before",
                hint="run an interval that contains the earlier one whole; its rows are replaced",
            )
    return inside


def withdraw(uri: str, interval: Interval) -> None:
    """Delete the notes of deliveries inside `interval`, whose rows are about to be replaced."""
    if any(known.interval.overlaps(interval) for known in deliveries(uri)):
        replace_rows(uri, SCHEMA.empty_table(), _inside(interval))
        passing("withdrawn", uri)


def record(uri: str, delivery: Delivery) -> None:
    """Note a delivery in place of those that it replaces, unless a later batch has replaced it.

    If two overlapping deliveries run at once, the note must name the one committed last.
    """
    row = {
        "interval_start": delivery.interval.start,
        "interval_end": delivery.interval.end,
        "files": delivery.files,
        "rows_read": delivery.rows_read,
        "rows_accepted": delivery.rows_accepted,
        "rows_quarantined": delivery.rows_quarantined,
        "delivered_at": datetime.now(UTC),
        "batch": delivery.batch,
    }
    rows, inside = pa.Table.from_pylist([row], schema=SCHEMA), _inside(delivery.interval)
    replace_rows(uri, rows, inside, unless=f"{inside} AND batch > {delivery.batch}")
    passing("recorded", uri)
    tidy_rows(uri, MANY_FILES, lambda known: known)


def _inside(interval: Interval) -> str:
    start, end = (t.isoformat() for t in (interval.start, interval.end))
    return f"interval_start >= '{start}' AND interval_start < '{end}'"
