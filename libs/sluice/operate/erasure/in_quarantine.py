"""Quarantined rows of subjects, found in their raw form: JSON, a line, a message."""

import json
from base64 import b64decode
from binascii import Error
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sluice.delta.log.opened import exists
from sluice.delta.notes.note_tables import change_rows, read_table
from sluice.language.hidden_columns import INTERVAL
from sluice.operate.erasure.remains import Sought

TEXT = "raw"
MESSAGE = {"topic", "partition", "offset", "key", "value"}
ENCODED = ("key", "value")


def without(uri: str, sought: Sought) -> int:
    """Delete the quarantined rows of subjects from the table at `uri`; return how many."""
    if not exists(uri):
        return 0
    rows, gone = read_table(uri), 0
    for start in pc.unique(rows.filter(_theirs(rows, sought))[INTERVAL]).to_pylist():
        before, after = change_rows(uri, partial(_kept, sought), [(INTERVAL, "=", start)])
        gone += before - after
    return gone


def _kept(sought: Sought, rows: pa.Table) -> pa.Table:
    return rows.filter(pc.invert(_theirs(rows, sought)))


def _theirs(rows: pa.Table, sought: Sought) -> pa.BooleanArray:
    return pa.array([_is_theirs(text, sought) for text in rows[TEXT].to_pylist()], pa.bool_())


def _is_theirs(text: str | None, sought: Sought) -> bool:
    message = _row(text) if sought.in_messages else None
    if isinstance(message, dict) and message.keys() >= MESSAGE:
        return any(_has_them(_decoded(message[part]), sought) for part in ENCODED)
    return _has_them(text, sought)


def _row(text: str | None) -> Any:
    """Return what a text says as JSON; None if it is none."""
    try:
        return json.loads(text or "null")
    except ValueError:
        return None


def _has_them(text: str | None, sought: Sought) -> bool:
    if text is None:
        return False
    row = _row(text)
    if row is None:
        return sought.is_word(text)
    names = sought.subjects.column_names
    if isinstance(row, dict) and not set(names) <= row.keys():
        row |= {name: row[theirs] for name, theirs in sought.in_files.items() if theirs in row}
    if not isinstance(row, dict) or not set(names) <= row.keys():
        return sought.is_in(text)
    return tuple(_text(row[name]) for name in names) in sought.texts


def _decoded(value: str | None) -> str | None:
    try:
        return None if value is None else b64decode(value).decode(errors="replace")
    except Error:
        return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
