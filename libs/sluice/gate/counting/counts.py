"""Counts that one pass over a batch finds, as plain numbers."""

from dataclasses import dataclass
from typing import Any

from sluice.gate.counting.batch_counts import BatchCounts
from sluice.gate.counting.conflicts import Conflicts


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
