"""Kept results of the gate: one row per expectation and batch, for reports and trends.

The table lies at `<lake>/__quality/results`. Batches append to it. From time to time, it is
compacted to the rows of `newest`, so reading it costs the same after a year. The rows are Arrow, so
appending them needs no Spark. Running a batch again leaves its rows twice. Readers use the last
`checked_at` of a (table, interval_start, expectation).
"""

import datetime as dt
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from sluice.gate.results import WHOLE
from sluice.language.names import QUALITY, Row

if TYPE_CHECKING:
    from sluice.gate.results import ExpectationOutcome, Verdict

TABLE = f"{QUALITY}/results"
KEY = ("pipeline", "table", "expectation", "says")
KEPT, MANY_FILES = 120, 64
SAMPLES = ("unexpected_rows", "partial_unexpected_list", "partial_unexpected_counts")
TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("pipeline", pa.string()),
        ("table", pa.string()),
        ("interval_start", TIME),
        ("batch", pa.int64()),
        ("checked_at", TIME),
        ("expectation", pa.string()),
        ("says", pa.string()),
        ("on_failure", pa.string()),
        ("success", pa.bool_()),
        ("element_count", pa.int64()),
        ("unexpected_count", pa.int64()),
        ("observed", pa.string()),
        ("result", pa.string()),
    ]
)


def rows(
    verdict: "Verdict",
    *,
    run: str,
    batch: int,
    checked_at: dt.datetime,
    interval_start: dt.datetime | None = None,
) -> pa.Table:
    """Return a verdict as rows of SCHEMA, kept also if it stops; a view's batch has no interval."""
    pipeline, _, table = verdict.table.partition(".")
    common = {
        "run": run,
        "pipeline": pipeline,
        "table": table,
        "interval_start": interval_start,
        "batch": batch,
        "checked_at": checked_at,
    }
    return pa.Table.from_pylist([common | _row(o) for o in verdict.outcomes], schema=SCHEMA)


def newest_of_each(rows: pa.Table) -> pa.Table:
    """Return the newest KEPT results of each expectation."""
    ordered = rows.sort_by([("checked_at", "descending")])
    seen: Counter[tuple[Any, ...]] = Counter()
    nth = []
    for key in zip(*(ordered[c].to_pylist() for c in KEY), strict=True):
        nth.append(seen[key])
        seen[key] += 1
    return ordered.filter(pc.less(pa.array(nth, pa.int64()), KEPT))


def without_samples(rows: pa.Table) -> pa.Table:
    """Return results without values of the data: samples, and observations other than numbers."""
    found = [_without_samples(row) for row in rows.to_pylist()]
    return pa.Table.from_pylist(found, schema=rows.schema)


def _without_samples(row: dict[str, Any]) -> dict[str, Any]:
    result = json.loads(row["result"])
    details = {k: v for k, v in (result.get("result") or {}).items() if k not in SAMPLES}
    is_number = isinstance(details.get("observed_value", 0), int | float)
    observed = row["observed"] if is_number else ""
    kept = details if is_number else {k: v for k, v in details.items() if k != "observed_value"}
    fault = {"exception_traceback": None, "exception_message": None}
    info = {**result.get("exception_info", {}), **fault}
    result |= {"result": kept, "exception_info": info}
    return row | {"observed": observed, "result": json.dumps(result, ensure_ascii=False)}


def _row(outcome: "ExpectationOutcome") -> dict[str, Any]:
    return {
        "expectation": outcome.expectation.label,
        "says": outcome.says,
        "on_failure": outcome.expectation.on_failure,
        "success": outcome.success,
        "element_count": outcome.element_count,
        "unexpected_count": outcome.unexpected_count,
        "observed": outcome.observed,
        "result": json.dumps(outcome.result, ensure_ascii=False, default=str),
    }


def by_table(results: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the results of each table, by its id."""
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in results:
        found[f"{row['pipeline']}.{row['table']}"].append(row)
    return dict(found)


def standing(results: Iterable[Row]) -> list[Row]:
    """Return each expectation's last check per interval (or batch), oldest interval first."""
    last = {(begin(row), *key(row)): row for row in sorted(results, key=itemgetter("checked_at"))}
    return sorted(last.values(), key=begin)


def newest(rows: Sequence[Row]) -> list[Row]:
    """Return the results of the newest batch, and of the newest check of the whole table."""
    last = {is_whole(r): r["checked_at"] for r in sorted(rows, key=itemgetter("checked_at"))}
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
