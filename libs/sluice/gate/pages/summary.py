"""Summaries of tables: each one's present state and its history, prepared for people.

The input is plain rows, as `history`, `facts` and the tables of intervals and quarantine hold them.
The output is frozen values from which a page can be written without further queries.
"""

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sluice.delta.notes.failures import Failure
from sluice.gate.counting.facts import KeptFacts
from sluice.gate.counting.facts import newest as newest_batch
from sluice.gate.outcomes.results import WHOLE
from sluice.gate.pages.checks import (
    SHOWN,
    Check,
    ExpectationSummary,
    Row,
    State,
    expectation,
    is_whole,
    key,
    moment,
    moment_text,
    standing,
    worst,
)

UNUSUAL_SHOWN = 10


@dataclass(frozen=True)
class TableRecord:
    """Record that the report gets of a table; only its name is required."""

    pipeline: str
    table: str
    kind: str = "source"
    is_delivered: bool = True
    is_loaded_whole: bool = False  # its intervals are one: the load
    description: str = ""
    version: int | None = None
    row_count: int | None = None
    updated_at: dt.datetime | None = None
    behind: tuple[str, ...] = ()  # inputs with versions not read yet
    columns: tuple[tuple[str, str], ...] = ()  # name and type
    expected: tuple[str, ...] | None = None  # labels of today's expectations; None: unknown
    results: tuple[Row, ...] = ()  # rows of history.SCHEMA
    batches: tuple[KeptFacts, ...] = ()
    intervals: tuple[Row, ...] = ()  # with rows_read, rows_accepted, rows_quarantined; or the load
    quarantine: tuple[Row, ...] = ()  # a few rows of quarantine.SCHEMA
    failure: Failure | None = None  # the last one, if no batch has succeeded since
    data_docs: str = ""  # the file of Great Expectations' own page


@dataclass(frozen=True)
class IntervalCounts:
    """Counts of one interval's delivery."""

    when: str
    read: int
    accepted: int
    quarantined: int


@dataclass(frozen=True)
class Unusual:
    """An unusual fact of a batch."""

    when: str
    what: str


@dataclass(frozen=True)
class Quarantined:
    """One row in quarantine: its fields if it parsed, else only its text."""

    when: str
    reason: str
    file: str
    text: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Reason:
    """Rows in quarantine for the same reason."""

    says: str
    rows: tuple[Quarantined, ...]

    @property
    def columns(self) -> list[str]:
        """Fields of the rows that parsed."""
        return list(dict.fromkeys(name for row in self.rows for name in row.fields))

    @property
    def has_texts(self) -> bool:
        return any(row.text and not row.fields for row in self.rows)


@dataclass(frozen=True)
class TableSummary:
    """One table's page."""

    record: TableRecord
    expectations: tuple[ExpectationSummary, ...]
    batches: tuple[Check, ...]  # the worst check of each batch
    intervals: tuple[IntervalCounts, ...]
    unusual: tuple[Unusual, ...] = ()
    in_quarantine: tuple[Quarantined, ...] = ()

    @property
    def reasons(self) -> list[Reason]:
        """Rows in quarantine by reason, the newest first."""
        by_reason: dict[str, list[Quarantined]] = {}
        for row in self.in_quarantine:
            by_reason.setdefault(row.reason, []).append(row)
        return [Reason(says, tuple(rows)) for says, rows in by_reason.items()]

    @property
    def failing(self) -> list[ExpectationSummary]:
        """Expectations that the newest check found not met, the worst first."""
        unmet = (e for e in self.expectations if e.latest.state is not State.PASSED)
        return sorted(unmet, key=lambda e: -e.latest.state.weight)

    @property
    def name(self) -> str:
        return f"{self.record.pipeline}.{self.record.table}"

    @property
    def failed_at(self) -> str:
        """Time of its last batch's failure, if none has succeeded since."""
        return moment_text(self.record.failure.at) if self.record.failure else ""

    @property
    def state(self) -> State | None:
        """State of its newest batch and of the whole table; None if nothing was ever expected.

        Stopped, whatever was expected, if its last batch failed.
        """
        if self.record.failure:
            return State.STOPPED
        whole = [e.latest for e in self.expectations if e.says.endswith(WHOLE)]
        found = [check.state for check in (*self.batches[-1:], *whole)]
        return max(found, key=lambda state: state.weight) if found else None

    @property
    def unmet(self) -> int:
        return sum(e.latest.state is not State.PASSED for e in self.expectations)

    @property
    def quarantined(self) -> int:
        """Rows in quarantine in all intervals, including those that are not shown."""
        return sum(row["rows_quarantined"] for row in self.record.intervals)

    @property
    def read(self) -> int:
        return sum(row["rows_read"] for row in self.record.intervals)

    @property
    def is_unusual(self) -> bool:
        """True if its newest batch was unusual."""
        return bool(self.record.batches and newest_batch(self.record.batches).unusual)


def summary(record: TableRecord) -> TableSummary:
    """Return a table's page, made from its record."""
    results = standing(record.results)
    of_batches = [row for row in results if not is_whole(row)]
    of_table = [row for row in results if is_whole(row)]
    current = [k for rows in (of_batches, of_table) for k in _current(rows, record.expected)]
    return TableSummary(
        record,
        tuple(expectation(rows) for rows in _by_expectation(results, current)),
        tuple(worst(list(rows)) for _, rows in groupby(of_batches, key=moment))[-SHOWN:],
        tuple(_interval(row) for row in _by_interval(record))[-SHOWN:],
        tuple(_unusual(record.batches))[:UNUSUAL_SHOWN],
        tuple(_quarantined(row) for row in record.quarantine),
    )


def _by_interval(record: TableRecord) -> list[Row]:
    """Return the intervals in order; a dimension's one load has no interval."""
    return [] if record.is_loaded_whole else sorted(record.intervals, key=_start)


def _start(row: Row) -> dt.datetime:
    start: dt.datetime = row["interval_start"]
    return start


def _current(results: Sequence[Row], expected: tuple[str, ...] | None) -> list[tuple[str, str]]:
    """Return the expectations of the last check, without those that left the configuration."""
    last = max((row["checked_at"] for row in results), default=None)
    return [
        key(row)
        for row in results
        if row["checked_at"] == last and (expected is None or row["expectation"] in expected)
    ]


def _by_expectation(results: Sequence[Row], keys: Sequence[tuple[str, str]]) -> list[list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {key: [] for key in keys}
    for row in results:
        if key(row) in found:
            found[key(row)].append(row)
    return list(found.values())


def _interval(row: Row) -> IntervalCounts:
    return IntervalCounts(
        moment_text(row["interval_start"]),
        row["rows_read"],
        row["rows_accepted"],
        row["rows_quarantined"],
    )


def _unusual(batches: Sequence[KeptFacts]) -> list[Unusual]:
    """Return unusual facts, newest first."""
    newest = sorted(batches, key=lambda kept: kept.moment, reverse=True)
    return [
        Unusual(moment_text(kept.moment), what.partition(": ")[2] or what)
        for kept in newest
        for what in kept.unusual
    ]


def _quarantined(row: Row) -> Quarantined:
    try:
        fields = json.loads(row["raw"] or "")
    except ValueError:
        fields = None
    named = fields if isinstance(fields, dict) else {}
    when, file = moment_text(row["_sluice_interval"]), str(row["file"] or "")
    return Quarantined(when, row["reason"] or "", file.rpartition("/")[2], row["raw"] or "", named)
