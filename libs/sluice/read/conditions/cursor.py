"""Cursor: the end of a page, as a text that a service can pass to its caller and back.

It holds the values of the order's columns in the last row taken, hidden ones included. So the next
page begins right after that row, whatever was added or removed since.
"""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa

from sluice.errors import UsageError
from sluice.read.conditions.key_order import KeyOrder, KeyRange, places
from sluice.read.conditions.values import from_text


@dataclass(frozen=True)
class Cursors:
    """Cursors of a read: the `order` of a row, to which `complete` adds hidden columns.

    `after`: the cursor after which the read began.
    """

    order: Sequence[str] = ()
    complete: Callable[[pa.RecordBatch], Any] = lambda row: row
    after: str | None = None

    def behind(self, row: pa.RecordBatch) -> str | None:
        """Return the cursor after this row."""
        if not self.order:
            return None
        found = self.complete(row)
        values = {name: _text(found.column(name)[0].as_py()) for name in self.order}
        return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def behind(cursor: str, order: KeyOrder, schema: pa.Schema) -> KeyRange:
    """Return the rows after a cursor in an order. Raises UsageError for another read's."""
    try:
        named = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        texts = [named[name] for name in order.columns]
    except (ValueError, KeyError, TypeError):
        raise _refused(cursor) from None
    if len(named) != len(texts) or not all(text is None or isinstance(text, str) for text in texts):
        raise _refused(cursor)
    kinds = [schema.field(name).type for name in order.columns]
    values = (
        None if text is None else from_text(text, kind, name)
        for text, kind, name in zip(texts, kinds, order.columns, strict=True)
    )
    place = places(tuple(values))
    if order.descending:
        return KeyRange(order.columns, high=place, is_open=True)
    return KeyRange(order.columns, low=place, is_open=True)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, date):  # and datetimes
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)


def _refused(cursor: str) -> UsageError:
    return UsageError(
        f"{cursor!r} is not a cursor of this read",
        hint="give `after` the previous page's cursor: `rows.cursor`, or the command's last line",
    )
