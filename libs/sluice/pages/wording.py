"""Words of pages: times, counts, and values of rows."""

import datetime as dt
import json
from collections.abc import Iterable, Sequence
from typing import Any

from sluice.language.row import Row
from sluice.pages.elements import Card, Content, Entry, Listing, Text


def moment(at: dt.datetime) -> str:
    """Return a date if it says everything, else date and time, in UTC."""
    utc = at.astimezone(dt.UTC) if at.tzinfo else at
    return f"{utc:%Y-%m-%d}" if utc.time() == dt.time() else f"{utc:%Y-%m-%d %H:%M}"


def second(at: dt.datetime | None) -> str:
    """Return date and time to the second."""
    return "–" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"


def ago(at: dt.datetime | None, now: dt.datetime) -> str:
    """Return the time before `now`, in the largest unit that says something."""
    if at is None:
        return "never"
    seconds = max((now - at).total_seconds(), 0)
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            return f"{counted(int(seconds // size), unit)} ago"
    return "just now"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 row`, `2 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def cell(value: Any) -> Content:
    """Return a value of a row."""
    match value:
        case None:
            return Text("null", "missing")
        case dt.datetime():
            return str((value.astimezone(dt.UTC) if value.tzinfo else value).replace(tzinfo=None))
        case bool() | dict() | list():
            return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def data(rows: Iterable[Row], names: Sequence[str], suspects: Iterable[str] = ()) -> Listing:
    """Return rows as a table of these columns; a column that a row lacks is empty there."""
    columns = [(name, "mono suspect" if name in {*suspects} else "mono") for name in names]
    return Listing(columns, [[cell(row[n]) if n in row else "" for n in names] for row in rows])


def tile(number: int, counts: str, of: int | None = None) -> Card:
    """Return a number, of those that there are, with what it counts."""
    total = "" if of is None else Text(f" of {of:,}", "soft")
    return Card([Entry([Text(number, "big"), total], detail=counts)])
