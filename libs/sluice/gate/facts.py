"""Facts: counts kept of every batch of a source or dimension, expected or not.

They cover the accepted rows: their number, distinct keys, and nulls per column. A table's last
batches lie beside it in `<table>__facts`, one row a batch. Each batch replaces this one small file,
so reading it costs the same after a year. Facts are notes, not data: losing one loses a comparison.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from sluice.delta.arrow import read_rows, replace_rows

KEPT = 90  # batches
TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("interval_start", TIME),
        ("batch", pa.int64()),
        ("run", pa.string()),
        ("checked_at", TIME),
        ("rows", pa.int64()),
        ("keys", pa.int64()),
        ("nulls", pa.map_(pa.string(), pa.int64())),
        ("unusual", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True)
class Facts:
    """Counts of one batch's accepted rows; `keys` is an estimate, None if there is no key."""

    rows: int
    keys: int | None = None
    nulls: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Kept:
    """Facts of a batch as they were kept, with the warnings given then."""

    facts: Facts
    batch: int
    run: str
    checked_at: dt.datetime
    interval_start: dt.datetime | None = None
    unusual: tuple[str, ...] = ()

    @property
    def moment(self) -> dt.datetime:
        """Start of the batch's interval; for a dimension, the time when it was loaded."""
        return self.interval_start or self.checked_at

    def replaces(self, other: "Kept") -> bool:
        """True if the other is an earlier delivery of the same interval or batch."""
        if self.interval_start:
            return self.interval_start == other.interval_start
        return self.batch == other.batch


def read(uri: str) -> list[Kept]:
    """Return the kept batches, oldest first; none if there is no such table."""
    return sorted(map(_kept, read_rows(uri)), key=lambda kept: kept.moment)


def newest(kept: Sequence[Kept]) -> Kept:
    """Return the batch checked last, which may be a backfill of an old interval."""
    return max(kept, key=lambda one: one.checked_at)


def keep(uri: str, new: Kept, past: Sequence[Kept]) -> None:
    """Keep a batch's facts with those of the past. Safe to repeat."""
    together = [*(kept for kept in past if not new.replaces(kept)), new]
    last = sorted(together, key=lambda kept: kept.moment)[-KEPT:]
    replace_rows(uri, pa.Table.from_pylist([_row(k) for k in last], schema=SCHEMA), "true")


def _row(kept: Kept) -> dict[str, Any]:
    return {
        "interval_start": kept.interval_start,
        "batch": kept.batch,
        "run": kept.run,
        "checked_at": kept.checked_at,
        "rows": kept.facts.rows,
        "keys": kept.facts.keys,
        "nulls": list(kept.facts.nulls.items()),
        "unusual": list(kept.unusual),
    }


def _kept(row: Mapping[str, Any]) -> Kept:
    return Kept(
        Facts(row["rows"], row["keys"], dict(row["nulls"] or ())),
        row["batch"],
        row["run"],
        row["checked_at"],
        row["interval_start"],
        tuple(row["unusual"] or ()),
    )
