"""Reasons why a delivered table lacks rows: forgotten, quarantined, withdrawn, never delivered."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from sluice.declare.table import Table
from sluice.delta.log.opened import exists, opened
from sluice.delta.reading.local import read_rows
from sluice.delta.reading.spark_reads import is_readable
from sluice.engine.judging.forgotten import noted
from sluice.errors import HistoryLost
from sluice.language.internal import FORGOTTEN, QUARANTINE
from sluice.operate.lineage.reasons import AbsenceReason, Wanted, of, shown, values
from sluice.operate.lineage.walk import At, Walk
from sluice.read.changelog import Changelog
from sluice.read.conditions.key_order import only
from sluice.read.lake import Lake
from sluice.read.origin import origin


def undelivered(walk: Walk, table: Table, at: At, wanted: Wanted) -> Iterator[AbsenceReason]:
    """Yield every known reason why a source or a dimension lacks the rows."""
    found = [
        *_forgotten(walk, table, at, wanted),
        *_quarantined(walk, table, wanted),
        *_deleted(walk, table, at, wanted),
        *_later(walk, table, at, wanted),
    ]
    yield from found or [*_withdrawn(walk, table, at, wanted)] or [_never(table, wanted)]


def _forgotten(walk: Walk, table: Table, at: At, wanted: Wanted) -> Iterator[AbsenceReason]:
    """Yield the erasures of subjects that have the wanted values, by their hashes."""
    given, schema = values(wanted), walk.read(at).rows.schema
    for note in noted(walk.context.lake.uri(table.id, FORGOTTEN)):
        if set(note.columns) <= given.keys():
            fields = [schema.field(name) for name in note.columns]
            subject = pa.table([[given[f.name]] for f in fields], schema=pa.schema(fields))
            if note.has(walk.session, subject):
                when = f"at {note.ended_at}" if note.ended_at else f"since {note.begun_at}"
                what = f"its subject was forgotten {when}; its rows are withheld"
                yield AbsenceReason(table.id, "forgotten", what)


def _quarantined(walk: Walk, table: Table, wanted: Wanted) -> Iterator[AbsenceReason]:
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
        yield AbsenceReason(table.id, "quarantined", str(reason), shown(of_it))


def _deleted(walk: Walk, table: Table, at: At, wanted: Wanted) -> Iterator[AbsenceReason]:
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


def _later(walk: Walk, table: Table, at: At, wanted: Wanted) -> Iterator[AbsenceReason]:
    """Yield the rows that the table has by now, in a version that is not reflected yet."""
    uri = walk.context.lake.uri(table.id)
    newest = _newest(uri)
    if newest > at[1] and is_readable(uri, newest):
        rows = of(read_rows(uri, newest), wanted)
        if rows.num_rows:
            what = f"version {newest} has it, version {at[1]} is reflected"
            yield AbsenceReason(table.id, "not reflected yet", what, shown(rows))


def _withdrawn(walk: Walk, table: Table, at: At, wanted: Wanted) -> Iterator[AbsenceReason]:
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


def _never(table: Table, wanted: Wanted) -> AbsenceReason:
    named = ", ".join(f"{column} = {value}" for column, value in values(wanted).items())
    return AbsenceReason(table.id, "never delivered", f"no row has {named}")


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
    return opened(uri).version()
