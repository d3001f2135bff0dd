"""The delivered intervals of a source, and the counts of each delivery.

Each source has one small table, `<source>__intervals`. An interval's note is withdrawn before the
source's own commit and appended after it. After a crash in between, the interval counts as not
delivered: it is read once more, and nothing changes. A note never outlives the rows that it
describes. Only a batch of messages keeps its note while they are judged again: it names the offsets
that were read, and those stay the same. An interval without rows, that had none before, has a note
and no commit: it names the newest batch. If overlapping deliveries ran at once, the note of the
later batch counts. Each note is a separate file; MANY_FILES of them are merged into one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from sluice.delta.log.position import Head
from sluice.delta.note_tables import (
    append_rows,
    change_rows,
    delete_rows,
    read_rows,
    read_table,
    replace_rows,
    tidy_rows,
)
from sluice.delta.places.delta_rs import is_table
from sluice.delta.places.failpoint import passing
from sluice.errors import DeliveriesLost, UsageError
from sluice.language.interval import EPOCH, Interval
from sluice.language.names import INTERVAL

NO_INTERVAL = EPOCH  # of what is not delivered by interval
IS_UNDATED = f"{INTERVAL} = '{NO_INTERVAL.isoformat()}'"  # rows in quarantine that are in none
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
NOTED = ("files", "rows_read", "rows_accepted", "rows_quarantined", "batch")
# Rows in quarantine and rows stored, by the start of their interval; None: as in the notes.
Counts = tuple[Mapping[datetime, int], Mapping[datetime, int] | None]


@dataclass(frozen=True)
class Note:
    """Note of one delivered interval; `files` is the fingerprint of what was read.

    `batch` is the number of the commit that put its rows into the table.
    """

    interval: Interval
    files: str
    rows_read: int
    rows_accepted: int
    rows_quarantined: int
    batch: int = 0


def deliveries(uri: str) -> list[Note]:
    """Return every delivered interval, in order."""
    return [Note(_interval(row), **{name: row[name] for name in NOTED}) for row in notes(uri)]


def notes(uri: str) -> list[dict[str, Any]]:
    """Return the valid notes, in order of time, as rows of SCHEMA; none without a table."""
    return _standing(read_table(uri)).to_pylist() if is_table(uri) else []


def _standing(rows: pa.Table) -> pa.Table:
    """Return the notes, in order of time, that no note of a later batch overlaps."""
    rows = rows.sort_by([(c, "ascending") for c in ("interval_start", "batch", "delivered_at")])
    standing: list[tuple[int, Interval, int]] = []
    for nth, row in enumerate(rows.to_pylist()):
        interval, batch = _interval(row), row["batch"]
        while standing and standing[-1][1].overlaps(interval) and standing[-1][2] <= batch:
            standing.pop()
        if not standing or not standing[-1][1].overlaps(interval):
            standing.append((nth, interval, batch))
    return rows.take(pa.array([nth for nth, _, _ in standing], pa.int64()))


def _interval(row: Mapping[str, Any]) -> Interval:
    return Interval(row["interval_start"], row["interval_end"])


def is_delivered(uri: str, interval: Interval, files: str) -> bool:
    """True if exactly these files were read for exactly this interval."""
    return any(d.interval == interval and d.files == files for d in deliveries(uri))


def newest_batch(noted: Sequence[Note]) -> int:
    """Return the number of the newest commit that a note names."""
    return max((d.batch for d in noted), default=0)


def check_kept(source: str, noted: Sequence[Note], at: Head | None) -> None:
    """Raise DeliveriesLost if the table was restored to a state before a batch that a note names.

    The notes must be read before the head.
    """
    newest, now = newest_batch(noted), at.next_batch - 1 if at else 0
    if newest > now:
        raise DeliveriesLost(
            f"batch {newest} was delivered to {source}, but its table is only at batch {now}: "
            "it alone was restored to an older state",
            hint=f"run `sluice rebuild {source}`: it reads all delivered files again",
        )


def replaced_by(
    delivered: list[Note], interval: Interval, source: str, timezone: str = "UTC"
) -> list[Note]:
    """Return the deliveries that one of `interval` replaces: those completely inside it.

    Raises UsageError if one overlaps it only in part.
    """
    inside = [d for d in delivered if d.interval.overlaps(interval)]
    for delivery in inside:
        if not interval.covers(delivery.interval):
            raise UsageError(
                f"{source}: the interval {interval.format(timezone)} overlaps only a part of "
                f"{delivery.interval.format(timezone)}, which was delivered before",
                hint="run an interval that contains the whole earlier one; its rows are replaced",
            )
    return inside


def withdraw(uri: str, interval: Interval) -> None:
    """Delete the notes of deliveries inside `interval`, whose rows are about to be replaced."""
    overlapping = [("interval_start", "<", interval.end), ("interval_end", ">", interval.start)]
    if read_rows(uri, overlapping):
        start, end = (t.isoformat() for t in (interval.start, interval.end))
        inside = f"interval_start >= '{start}' AND interval_start < '{end}'"
        replace_rows(uri, SCHEMA.empty_table(), inside)
        passing("withdrawn", uri)


def withdraw_all(uri: str) -> None:
    """Delete all notes, because every row is about to be replaced."""
    delete_rows(uri, "true")


def recount(uri: str, counted: Callable[[], Counts]) -> None:
    """Correct each interval's row counts in the notes, after some rows were removed. Safe to
    repeat.

    `counted` is called after the notes are read: notes of rows that it misses come later.
    """

    def change(rows: pa.Table) -> pa.Table:
        (quarantined, stored), noted, right = counted(), _standing(rows).to_pylist(), []
        for note in noted:
            bad = _inside_of(_interval(note), quarantined)
            good = note["rows_accepted"]
            if stored is not None:
                good = _inside_of(_interval(note), stored)
            counts = {"rows_read": good + bad, "rows_accepted": good, "rows_quarantined": bad}
            right.append(note | counts)
        return rows if right == noted else pa.Table.from_pylist(right, schema=SCHEMA)

    change_rows(uri, change)


def _inside_of(interval: Interval, counted: Mapping[datetime, int]) -> int:
    return sum(n for at, n in counted.items() if interval.start <= at < interval.end)


def record(uri: str, note: Note) -> None:
    """Add a note. It is valid until one of a later batch overlaps it, or it is withdrawn."""
    row = {
        "interval_start": note.interval.start,
        "interval_end": note.interval.end,
        "delivered_at": datetime.now(UTC),
        **{name: getattr(note, name) for name in NOTED},
    }
    append_rows(uri, pa.Table.from_pylist([row], schema=SCHEMA))
    passing("recorded", uri)
    tidy_rows(uri, MANY_FILES, _standing)
