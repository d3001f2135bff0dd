"""Reasons why rows are absent from a table, and the requested rows."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from sluice.declare.column_lineage import MadeFrom
from sluice.declare.table import Table
from sluice.delta.log.opened import exists, open_version
from sluice.delta.reading.local import read_rows
from sluice.delta.reading.spark_reads import is_readable
from sluice.engine.judging import read_notes
from sluice.errors import HistoryLost
from sluice.language.names import FORGOTTEN, QUARANTINE, RESERVED_PREFIX, declared_id
from sluice.operate.lineage import At, Walk
from sluice.read.changelog import Changelog
from sluice.read.key_order import KeyRange, only
from sluice.read.lake import Lake
from sluice.read.naming import origin

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


def visible_columns(rows: pa.Table) -> pa.Table:
    """Return the columns that readers see."""
    return rows.select([c for c in rows.column_names if not c.startswith(RESERVED_PREFIX)])


def not_explained(table: Table, why: str) -> AbsenceReason:
    """Return the reason for a table whose rows can't be traced, with where to look instead."""
    look = " and ".join(f"`sluice read {declared_id(name)}`" for name in table.inputs)
    what = f"{why}; {look} shows whether the rows are there that it would be made from"
    return AbsenceReason(declared_id(table.id), "not explained", what)


def no_such(table: Table, inputs: Iterable[str], wanted: Wanted) -> AbsenceReason:
    """Return the reason for a table whose inputs have rows, but none for the wanted ones."""
    named = ", ".join(f"{column} = {value}" for column, value in values(wanted).items())
    what = (
        f"no rows of {', '.join(dict.fromkeys(map(declared_id, inputs)))} produce {named or 'it'}"
    )
    return AbsenceReason(declared_id(table.id), "no such value", what)


def mapped_to(made: MadeFrom, wanted: Wanted, name: str) -> Wanted:
    """Return the wanted values of an input: of columns that are copied from it."""
    return tuple(
        only((one.column,), (value,))
        for column, value in values(wanted).items()
        for one in sorted(made.get(column, ()), key=lambda c: c.column)
        if one.table == name and one.is_same
    )


def reasons_undelivered(
    walk: Walk, table: Table, at: At, wanted: Wanted
) -> Iterator[AbsenceReason]:
    """Yield every known reason why a source or a dimension lacks the rows."""
    found = [
        *_find_forgotten(walk, table, at, wanted),
        *_find_quarantined(walk, table, wanted),
        *_find_deletions(walk, table, at, wanted),
        *_find_later(walk, table, at, wanted),
    ]
    named = ", ".join(f"{column} = {value}" for column, value in values(wanted).items())
    never = AbsenceReason(table.id, "never delivered", f"no row has {named}")
    yield from found or [*_find_withdrawn(walk, table, at, wanted)] or [never]


def _find_forgotten(walk: Walk, table: Table, at: At, wanted: Wanted) -> Iterator[AbsenceReason]:
    """Yield the erasures of subjects that have the wanted values, by their hashes."""
    given, schema = values(wanted), walk.read(at).rows.schema
    for note in read_notes(walk.context.lake.uri(table.id, FORGOTTEN)):
        if set(note.columns) <= given.keys():
            fields = [schema.field(name) for name in note.columns]
            subject = pa.table([[given[f.name]] for f in fields], schema=pa.schema(fields))
            if note.has(walk.session, subject):
                when = f"at {note.ended_at}" if note.ended_at else f"since {note.begun_at}"
                what = f"its subject was forgotten {when}; its rows are withheld"
                yield AbsenceReason(table.id, "forgotten", what)


def _find_quarantined(walk: Walk, table: Table, wanted: Wanted) -> Iterator[AbsenceReason]:
    """Yield the rows in quarantine that have the wanted values, by their reason."""
    uri = walk.context.lake.uri(table.id, QUARANTINE)
    given = values(wanted)
    if not given or not exists(uri):
        return
    rows = read_rows(uri, _newest(uri))
    has_them = [_mentions(raw, given) for raw in rows["raw"].to_pylist()]
    met = rows.filter(pa.array(has_them, pa.bool_()))
    for reason in sorted(set(met["reason"].to_pylist()), key=str):
        of_it = met.filter(pa.array([r == reason for r in met["reason"].to_pylist()], pa.bool_()))
        yield AbsenceReason(table.id, "quarantined", str(reason), visible_columns(of_it))


def _find_deletions(walk: Walk, table: Table, at: At, wanted: Wanted) -> Iterator[AbsenceReason]:
    """Yield the deliveries of rows that the last of these deletes."""
    node = walk.nodes.get(table.id)
    if node is None:
        return
    for name, pin in walk.position(node, at[1]).inputs.items():
        rows = of(walk.read((name, pin.version)).rows, wanted)
        if rows.num_rows:
            yield AbsenceReason(
                table.id, "deleted", f"the last of its deliveries in {name} deletes it", rows
            )


def _find_later(walk: Walk, table: Table, at: At, wanted: Wanted) -> Iterator[AbsenceReason]:
    """Yield the rows that the table has by now, in a version that is not reflected yet."""
    uri = walk.context.lake.uri(table.id)
    newest = _newest(uri)
    if newest > at[1] and is_readable(uri, newest):
        rows = of(read_rows(uri, newest), wanted)
        if rows.num_rows:
            what = f"version {newest} has it, version {at[1]} is reflected"
            yield AbsenceReason(table.id, "not reflected yet", what, visible_columns(rows))


def _find_withdrawn(walk: Walk, table: Table, at: At, wanted: Wanted) -> Iterator[AbsenceReason]:
    """Yield the row as it was, if a later delivery took it back."""
    given = values(wanted)
    if not given:
        return
    try:
        changelog = Changelog.open(Lake(walk.project), table.id, at[1])
        found = origin(changelog, only(tuple(given), tuple(given.values())))
    except HistoryLost:
        return
    if found and found.before is not None and found.after is None:
        made = found.commit.position
        run = f" by the run {made.run}" if made and made.run else ""
        what = f"a delivery removed it in version {found.commit.version}, at {found.commit.at}{run}"
        yield AbsenceReason(table.id, "withdrawn", what, pa.Table.from_pylist([found.before]))


def _mentions(raw: str | None, given: dict[str, Any]) -> bool:
    """True if a quarantined row has these values: in its columns, or anywhere in its text."""
    try:
        row = json.loads(raw or "")
    except ValueError:
        row = None
    if isinstance(row, dict) and given.keys() <= row.keys():
        return all(_text(row[name]) == _text(value) for name, value in given.items())
    return all(_text(value) in (raw or "") for value in given.values())


def _text(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _newest(uri: str) -> int:
    return open_version(uri).version()
