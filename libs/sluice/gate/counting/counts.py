"""Counts that one pass over a batch finds, as plain numbers.

Conflicts: rows of one key that differ in one delivery, where nothing shows which is later.

Rows equal in every column are repeats, and rows that a `sequence` distinguishes are versions;
neither conflict. Nor do rows that are quarantined for another reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluice.errors import QualityStop
from sluice.gate.counting.batch_counts import BatchCounts
from sluice.gate.rules.sql import as_json

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
