"""Expectations over large whole tables, answered from statistics or from what has changed.

A greatest value lies in the few files whose statistics reach farthest; a share of nulls is in the
log. Sums go on from the sum kept at an earlier version. Values that were unique then still are,
unless one added since is there twice. What neither answers is left to the sweep.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sluice.gate.rules.uniqueness import SAMPLES, Repeats, UniquenessRule
from sluice.read.stored.scan import Scan
from sluice.read.stored.small_feed import small_feed
from sluice.report.stored import Stored

STATE, OTHER = "sluice", "sluice_other"  # in a result's meta: what was examined
LEAST, GREATEST = "expect_column_min_to_be_between", "expect_column_max_to_be_between"
SUM, MEAN = "expect_column_sum_to_be_between", "expect_column_mean_to_be_between"
SHARE = "expect_column_proportion_of_non_null_values_to_be_between"


@dataclass(frozen=True)
class Earlier:
    """State kept from an earlier check of a table."""

    version: int
    table: str
    total: Decimal | None = None
    is_unique: bool = False

    @classmethod
    def of(cls, result: Mapping[str, Any] | None, which: str = STATE) -> "Earlier | None":
        """Return the state in a kept result."""
        state = ((result or {}).get("meta") or {}).get(which)
        if not result or not state:
            return None
        unexpected = (result.get("result") or {}).get("unexpected_count")
        known = None if state["total"] is None else Decimal(state["total"])
        return cls(state["version"], state["table"], known, unexpected == 0)


def state(now: Stored, total: Decimal | None) -> dict[str, Any]:
    """Return the state kept of a check, for the next one to continue from."""
    known = None if total is None else str(total)
    return {"version": now.at.version, "table": now.at.table, "total": known}


def number(type_: str, column: str, now: Stored, total: Decimal | None) -> Any:
    """Return what such an expectation observes; None if statistics (and a sum) don't show it."""
    if column not in now.types or pa.types.is_floating(now.types[column]):
        return None
    if type_ in (LEAST, GREATEST):
        return extreme(now, column, greatest=type_ == GREATEST)
    given, rows = given_values(now, column), now.snapshot.count()
    if type_ == SHARE:
        return None if given is None else (given / rows if rows else 0.0)
    if total is None or type_ == SUM:
        return total
    return float(total / given) if given else None


def extreme(now: Stored, column: str, *, greatest: bool) -> Any:
    """Return the least or greatest value; reads farthest files first, until none can top it."""
    files = now.snapshot.files([column])
    if any(not file.bounds[column].is_known for file in files):
        return None
    found, best = None, pc.max if greatest else pc.min
    reaches = [(f.bounds[column].high if greatest else f.bounds[column].low, f) for f in files]
    filled = (pair for pair in reaches if pair[0] is not None)
    for reach, file in sorted(filled, key=lambda pair: pair[0], reverse=greatest):
        if found is not None and best(pa.array([found, reach])).as_py() == found:
            break
        for group in now.snapshot.row_groups(file, [column]):
            values = now.snapshot.read(group, [column])[column]
            found = best(pa.array([found, best(values).as_py()], values.type)).as_py()
    return found


def given_values(now: Stored, column: str) -> int | None:
    """Return the number of non-null values, from the log; None if it does not show them."""
    if now.snapshot.kept:
        return None
    actions, names = now.snapshot.actions, ("num_records", f"null_count.{column}")
    if not set(names) <= set(actions.column_names) or any(actions[n].null_count for n in names):
        return None
    rows, nulls = (pc.sum(actions[n]).as_py() or 0 for n in names)
    return int(rows - nulls)


def total(now: Stored, column: str, earlier: Earlier | None) -> Decimal | None:
    """Return a sum of whole numbers or decimals, from an earlier sum and the changes since."""
    is_exact = column in now.types and not pa.types.is_floating(now.types[column])
    if not earlier or not is_exact or earlier.total is None or earlier.table != now.at.table:
        return None
    changed = _changed(now, earlier, column)
    if changed is None:
        return None
    went, came = (Decimal(pc.sum(rows[column]).as_py() or 0) for rows in changed)
    return earlier.total - went + came


def repeats(rule: UniquenessRule, now: Stored, earlier: Earlier | None) -> Repeats | None:
    """Return values added since that are now repeated, if all values were unique before."""
    if earlier is None or not earlier.is_unique or earlier.table != now.at.table:
        return None
    column, given = rule.columns[0], given_values(now, rule.columns[0])
    if len(rule.columns) > 1 or given is None or "row_condition" in rule.expectation.kwargs:
        return None
    changed = _changed(now, earlier, column)
    if changed is None:
        return None
    counted = _counted(now, column, pc.unique(changed[1][column]).drop_null())
    repeated = sum(counted.values())
    samples = (json.dumps({column: value}, default=str) for value in list(counted)[:SAMPLES])
    distinct = given - repeated + len(counted)
    return Repeats(now.snapshot.count(), given, distinct, repeated, tuple(samples))


def _changed(now: Stored, earlier: Earlier, column: str) -> tuple[pa.Table, pa.Table] | None:
    """Return the column of rows removed and of rows added since; None if they are many."""
    versions = (earlier.version, now.at.version)
    return small_feed(now.name, now.at.uri, *versions, [column], now.limits)


def _counted(now: Stored, column: str, values: pa.Array) -> Counter[Any]:
    """Count those of the values that the table has more than once, a page at a time."""
    found: Counter[Any] = Counter()
    for page in Scan(now.snapshot).unordered((column,)) if len(values) else ():
        mine = page[column]
        found.update(mine.filter(pc.is_in(mine, values)).to_pylist())
    return Counter({value: count for value, count in found.items() if count > 1})
