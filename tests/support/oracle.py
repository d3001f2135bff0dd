"""Brute-force readings of what views mean, in plain Python, over whole tables."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Any

from tests.support.lake import Row

Value = Callable[[Row], Any]
Windows = Callable[[datetime], list[tuple[datetime, datetime]]]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def column(name: str) -> Value:
    return lambda row: row.get(name)


def ordered(rows: Iterable[Row], *keys: tuple[Value, str]) -> list[Row]:
    """Rows by `keys`: (value, 'asc' or 'desc', with 'first' or 'last' for nulls if it matters)."""
    found = list(rows)
    for value, how in reversed(keys):
        descending = "desc" in how
        nulls_first = "first" in how if "nulls" in how else not descending
        nulls = [row for row in found if value(row) is None]
        others = [row for row in found if value(row) is not None]
        others.sort(key=lambda row: _comparable(value(row)), reverse=descending)
        found = nulls + others if nulls_first else others + nulls
    return found


def _comparable(value: Any) -> Any:
    """NaN is greater than any number; nulls in a key come first."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value


def grouped(rows: Iterable[Row], *by: Value) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by group; null is a group like any other."""
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(value(row) for value in by)].append(row)
    return found


def ranked(rows: Sequence[Row], function: str, *keys: tuple[Value, str]) -> list[tuple[int, Row]]:
    """(rank, row) of rows that are in order by `keys`."""
    found, position = [], 0
    alike = groupby(rows, key=lambda row: tuple(value(row) for value, _ in keys))
    for dense, (_, tied) in enumerate(alike, start=1):
        first = position + 1
        for row in tied:
            position += 1
            found.append(
                ({"row_number": position, "rank": first, "dense_rank": dense}[function], row)
            )
    return found


def top(
    rows: Iterable[Row],
    by: Sequence[Value],
    keys: Sequence[tuple[Value, str]],
    ties: Sequence[str],
    limit: int | str,
    offset: int = 0,
    function: str = "row_number",
) -> list[tuple[int, Row]]:
    """(rank, row) of the first rows of each group."""
    found = []
    for group in grouped(rows, *by).values():
        in_order = ordered(group, *keys, *[(column(c), "asc") for c in ties])
        for rank, row in ranked(in_order, function, *keys):
            last = row[limit] if isinstance(limit, str) else limit
            if last is not None and offset < rank <= offset + last:
                found.append((rank, row))
    return found


def windows_of(size: timedelta, advance: timedelta | None = None) -> Windows:
    """Tumbling or hopping windows [start, start + size), aligned to the epoch."""
    return partial(_windows_of, size, advance or size)


def _windows_of(
    size: timedelta, advance: timedelta, time: datetime
) -> list[tuple[datetime, datetime]]:
    start = EPOCH + (time - EPOCH) // advance * advance
    found = []
    while start + size > time:
        found.append((start, start + size))
        start -= advance
    return found


def windowed(rows: Iterable[Row], time: str, windows: Windows) -> list[Row]:
    """Each row once for each window that it is in; rows without a time are in none."""
    return [
        {**row, "window_start": start, "window_end": end}
        for row in rows
        if row[time] is not None
        for start, end in windows(row[time])
    ]


def in_sessions(
    rows: Iterable[Row], key: Sequence[Value], time: Value, gap: timedelta
) -> list[Row]:
    """Each row with its session's bounds: rows of a key at most `gap` apart are together."""
    found: list[Row] = []
    timed = [row for row in rows if time(row) is not None]
    for group in grouped(timed, *key).values():
        sessions: list[list[Row]] = []
        for row in sorted(group, key=time):
            if sessions and time(row) <= time(sessions[-1][-1]) + gap:
                sessions[-1].append(row)
            else:
                sessions.append([row])
        for session in sessions:
            bounds = {"window_start": time(session[0]), "window_end": time(session[-1]) + gap}
            found += [{**row, **bounds} for row in session]
    return found


def present(rows: Iterable[Row], value: str) -> list[Any]:
    """The values that are not null."""
    return [row[value] for row in rows if row[value] is not None]


def total(rows: Iterable[Row], value: str) -> Any:
    """The sum, null of nothing; floating point is added exactly and rounded once."""
    values = present(rows, value)
    if not values:
        return None
    return math.fsum(values) if isinstance(values[0], float) else sum(values)
