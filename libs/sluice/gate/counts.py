"""Counts that one pass over a batch finds, and those that are kept of every batch, expected or not.

Conflicts: rows of one key that differ in one delivery, where nothing shows which is later.

Rows equal in every column are repeats, and rows that a `sequence` distinguishes are versions;
neither conflict. Nor do rows that are quarantined for another reason.

They cover the accepted rows: their number, distinct keys, and nulls per column. A table's last
batches lie in `<lake>/__quality/facts/<pipeline>.<table>.json`. Each batch replaces this one small
file, so reading it costs the same after a year. Counts are notes, not data: losing one loses a
comparison.
"""

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sluice.delta.places.folders import SmallFiles
from sluice.delta.places.lake_layout import LakeLayout
from sluice.errors import QualityStop
from sluice.gate.sql import as_json

KEPT = 90  # batches


@dataclass(frozen=True)
class BatchCounts:
    """Counts of one batch's accepted rows; `keys` is an estimate, None if there is no key."""

    rows: int
    keys: int | None = None
    nulls: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class KeptCounts:
    """Kept counts of a batch, with the warnings given then."""

    counts: BatchCounts
    batch: int
    run: str
    checked_at: dt.datetime
    interval_start: dt.datetime | None = None
    unusual: tuple[str, ...] = ()

    @property
    def moment(self) -> dt.datetime:
        """Start of the batch's interval; for a dimension, the time when it was loaded."""
        return self.interval_start or self.checked_at

    def replaces(self, other: "KeptCounts") -> bool:
        """True if the other is an earlier delivery of the same interval or batch."""
        if self.interval_start:
            return self.interval_start == other.interval_start
        return self.batch == other.batch


def read_counts(lake: LakeLayout, table_id: str) -> list[KeptCounts]:
    """Return the kept batches of a table, oldest first; none if its file is damaged."""
    try:
        rows = json.loads(_files(lake).read(table_id) or b"[]")
        return sorted(map(_read_row, rows), key=lambda kept: kept.moment)
    except (ValueError, TypeError, KeyError):
        return []


def last_unusual(lake: LakeLayout, table_id: str) -> tuple[str, ...]:
    """Return what was unusual in the batch checked last; else name a damaged file of counts."""
    if kept := read_counts(lake, table_id):
        return newest(kept).unusual
    if _files(lake).read(table_id) is None:
        return ()
    folder = "/".join(lake.counts_uri.split("/")[-2:])
    return (f"{folder}/{table_id}.json can't be read: delete it, or the next batch replaces it",)


def newest(kept: Sequence[KeptCounts]) -> KeptCounts:
    """Return the batch checked last, which may be a backfill of an old interval."""
    return max(kept, key=lambda one: one.checked_at)


def keep(lake: LakeLayout, table_id: str, new: KeptCounts, past: Sequence[KeptCounts]) -> None:
    """Keep a batch's counts with those of the past. Safe to repeat."""
    together = [*(kept for kept in past if not new.replaces(kept)), new]
    last = sorted(together, key=lambda kept: kept.moment)[-KEPT:]
    rows = []
    for kept in last:
        times = {"checked_at": kept.checked_at, "interval_start": kept.interval_start}
        row = vars(kept) | {name: at and at.isoformat() for name, at in times.items()}
        rows.append({"facts": vars(row.pop("counts")), **row})
    _files(lake).write(table_id, json.dumps(rows).encode())


def clear(lake: LakeLayout, table_id: str) -> None:
    """Delete the counts of a table; do nothing if there are none."""
    _files(lake).delete(table_id)


def rename(lake: LakeLayout, table_id: str, to: str) -> None:
    """Rename the table of kept counts. Safe to repeat."""
    if text := _files(lake).read(table_id):
        _files(lake).write(to, text)
        clear(lake, table_id)


def _files(lake: LakeLayout) -> SmallFiles:
    return SmallFiles(lake.counts_uri)


def _read_row(row: Mapping[str, Any]) -> KeptCounts:
    start = row["interval_start"]
    return KeptCounts(
        BatchCounts(**row["facts"]),
        row["batch"],
        row["run"],
        dt.datetime.fromisoformat(row["checked_at"]),
        start and dt.datetime.fromisoformat(start),
        tuple(row["unusual"]),
    )


CONFLICT = "_sluice_conflict"  # of a row: 1 if others of its key differ, 2 for the last of these


@dataclass(frozen=True)
class Conflicts:
    """Counts of one delivery's conflicting rows and their keys; `example` is one key, as JSON."""

    keys: int
    rows: int
    example: str

    def __str__(self) -> str:
        if self.keys == 1:
            return f"{self.rows} rows of one key differ within the delivery: {self.example}"
        many = f"{self.rows:,} rows of {self.keys:,} keys differ within the delivery"
        return f"{many}, e.g. of {self.example}"

    def warning(self, table: str, on_conflict: str) -> str:
        """Return the warning for a report."""
        if on_conflict == "quarantine":
            return f"{table}: {self}; they are in quarantine"
        return f"{table}: {self}; the last of each is taken (`on_conflict` can change this)"

    def stop(self, table: str) -> QualityStop:
        """Return the error of a source that accepts no conflicts."""
        return QualityStop(
            f"{table}: {self}",
            hint="nothing of this delivery was committed. Fix the files; or name in `sequence` "
            "a column that shows the later row; or declare `on_conflict: quarantine`, or `last`",
        )


def counts(key: Sequence[str]) -> tuple[str, ...]:
    """Return the aggregates, in SQL, over rows that have CONFLICT."""
    shown = as_json(f"struct({', '.join(f'`{column}`' for column in key)})")
    return (
        f"count_if({CONFLICT} > 0) AS conflicting_rows",
        f"count_if({CONFLICT} = 2) AS conflicting_keys",
        f"min({shown}) FILTER (WHERE {CONFLICT} > 0) AS conflicting_key",
    )


def found_in(counted: Mapping[str, Any]) -> Conflicts | None:
    """Return the found conflicts; None if there are none, or nothing was checked."""
    if not counted.get("conflicting_rows"):
        return None
    keys, rows = counted["conflicting_keys"], counted["conflicting_rows"]
    return Conflicts(keys, rows, counted["conflicting_key"])


@dataclass(frozen=True)
class RowCounts:
    """Counts of one row rule; `samples` are unexpected rows as JSON."""

    elements: int
    considered: int
    unexpected: int
    samples: tuple[str, ...]


@dataclass(frozen=True)
class Tally:
    """Result of the pass, in the order of the suite's rules and measures."""

    read: int
    accepted: int
    rows: tuple[RowCounts, ...]
    observed: tuple[Any, ...]
    counts: BatchCounts | None = None
    bytes_quarantined: int = 0
    conflicts: Conflicts | None = None
    cut: int = 0  # values of accepted rows that lost digits beyond a microsecond
    undated: int = 0  # rows in no interval, all of them in quarantine
