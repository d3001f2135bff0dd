"""What every batch of a source or dimension is counted for, expected or not, and kept.

Rows, distinct keys and nulls of each column, of the rows that were accepted. The last batches of a
table lie beside it in `<table>__facts`, one row a batch, one small file that each batch replaces:
reading them costs the same after a year. They are notes, not data: losing one loses a comparison.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from sluice.storage.arrow import read_rows, replace_rows

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
    """Counts of one batch's accepted rows; `keys` is an estimate, None where there is no key."""

    rows: int
    keys: int | None = None
    nulls: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Kept:
    """A batch's facts as they were kept, with the warnings that were given then."""

    facts: Facts
    batch: int
    run: str
    checked_at: dt.datetime
    interval_start: dt.datetime | None = None
    unusual: tuple[str, ...] = ()

    @property
    def moment(self) -> dt.datetime:
        """What the batch is about; a dimension's is about the time when it was loaded."""
        return self.interval_start or self.checked_at

    def replaces(self, other: "Kept") -> bool:
        """Whether the other was an earlier delivery of the same."""
        if self.interval_start:
            return self.interval_start == other.interval_start
        return self.batch == other.batch


def read(uri: str) -> list[Kept]:
    """The kept batches, oldest first; none if there is no such table."""
    return sorted(map(_kept, read_rows(uri)), key=lambda kept: kept.moment)


def newest(kept: Sequence[Kept]) -> Kept:
    """The one that was checked last, which may be a backfill of an old interval."""
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
