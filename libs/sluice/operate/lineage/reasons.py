"""Reasons why rows are absent from a table, and the rows that are meant."""

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from sluice.language.names import RESERVED_PREFIX
from sluice.read.order import Span

Wanted = tuple[Span, ...]
Why = Literal[
    "filtered",
    "outranked",
    "expired",
    "no match",
    "excluded",
    "no such value",
    "quarantined",
    "deleted",
    "withdrawn",
    "not reflected yet",
    "never delivered",
    "differs",
]


@dataclass(frozen=True)
class Reason:
    """One reason why rows are absent from a table, which may be behind the one in question.

    `what`: the condition, or the reason in words. `rows`: those kept out, as they would be or were.
    `others`: those that keep them out.
    """

    table: str
    why: Why
    what: str
    rows: pa.Table | None = None
    others: pa.Table | None = None


def of(rows: pa.Table, wanted: Wanted) -> pa.Table:
    """Return the rows that lie in all spans."""
    for span in wanted:
        rows = span.rows(rows)
    return rows


def values(wanted: Wanted) -> dict[str, Any]:
    """Return the columns of which one value is wanted."""
    return {
        column: place[-1] if len(place) > 1 else None
        for span in wanted
        if span.low is not None and span.low == span.high and not span.is_open
        for column, place in zip(span.columns, span.low, strict=False)
    }


def shown(rows: pa.Table) -> pa.Table:
    """Return the columns that readers see."""
    return rows.select([c for c in rows.column_names if not c.startswith(RESERVED_PREFIX)])
