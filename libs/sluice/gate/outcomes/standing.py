"""Kept results that stand: each expectation's last check of an interval, and the newest of all."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence

from sluice.gate.outcomes.results import WHOLE
from sluice.language.row import Row


def by_table(results: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the results of each table, by its id."""
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in results:
        found[f"{row['pipeline']}.{row['table']}"].append(row)
    return dict(found)


def standing(results: Iterable[Row]) -> list[Row]:
    """Return each expectation's last check per interval (or batch), oldest interval first."""
    last = {(begin(row), *key(row)): row for row in sorted(results, key=_checked_at)}
    return sorted(last.values(), key=begin)


def newest(rows: Sequence[Row]) -> list[Row]:
    """Return the results of the newest batch, and of the newest check of the whole table."""
    last = {is_whole(row): row["checked_at"] for row in sorted(rows, key=_checked_at)}
    return [row for row in rows if row["checked_at"] == last[is_whole(row)]]


def begin(row: Row) -> dt.datetime:
    """Return the begin of the interval that a result is about, or the time of its batch."""
    found: dt.datetime = row.get("interval_start") or row["checked_at"]
    return found


def is_whole(row: Row) -> bool:
    """True for a result over the whole table."""
    return str(row["says"]).endswith(WHOLE)


def key(row: Row) -> tuple[str, str]:
    """Return the values that distinguish expectations."""
    return row["expectation"], row["says"]


def _checked_at(row: Row) -> dt.datetime:
    at: dt.datetime = row["checked_at"]
    return at
