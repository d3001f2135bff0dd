"""Reasons why rows are absent from a table, and the requested rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from sluice.declare.meaning.column_lineage import MadeFrom
from sluice.declare.table import Table
from sluice.language.internal import declared
from sluice.language.names import RESERVED_PREFIX
from sluice.read.conditions.key_order import KeyRange, only

Wanted = tuple[KeyRange, ...]
AbsenceCause = Literal[
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
    "not explained",
    "forgotten",
]


@dataclass(frozen=True)
class AbsenceReason:
    """One reason why rows are absent from the requested table or one of its inputs.

    `what`: the condition, or the reason in words. `rows`: those kept out, as they would be or were.
    `others`: those that keep them out.
    """

    table: str
    why: AbsenceCause
    what: str
    rows: pa.Table | None = None
    others: pa.Table | None = None


def of(rows: pa.Table, wanted: Wanted) -> pa.Table:
    """Return the rows within all ranges."""
    for key_range in wanted:
        rows = key_range.rows(rows)
    return rows


def values(wanted: Wanted) -> dict[str, Any]:
    """Return the columns of which one value is wanted."""
    return {
        column: place[-1] if len(place) > 1 else None
        for key_range in wanted
        if key_range.low is not None and key_range.low == key_range.high and not key_range.is_open
        for column, place in zip(key_range.columns, key_range.low, strict=False)
    }


def shown(rows: pa.Table) -> pa.Table:
    """Return the columns that readers see."""
    return rows.select([c for c in rows.column_names if not c.startswith(RESERVED_PREFIX)])


def not_explained(table: Table, why: str) -> AbsenceReason:
    """Return the reason for a table whose rows can't be traced, with where to look instead."""
    look = " and ".join(f"`sluice read {declared(name)}`" for name in table.inputs)
    what = f"{why}; {look} shows whether the rows are there that it would be made from"
    return AbsenceReason(declared(table.id), "not explained", what)


def no_such(table: Table, inputs: Iterable[str], wanted: Wanted) -> AbsenceReason:
    """Return the reason for a table whose inputs have rows, but none for the wanted ones."""
    named = ", ".join(f"{column} = {value}" for column, value in values(wanted).items())
    what = f"no rows of {', '.join(dict.fromkeys(map(declared, inputs)))} produce {named or 'it'}"
    return AbsenceReason(declared(table.id), "no such value", what)


def mapped_to(made: MadeFrom, wanted: Wanted, name: str) -> Wanted:
    """Return the wanted values of an input: of columns that are copied from it."""
    return tuple(
        only((one.column,), (value,))
        for column, value in values(wanted).items()
        for one in sorted(made.get(column, ()), key=lambda c: c.column)
        if one.table == name and one.is_same
    )
