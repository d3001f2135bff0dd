"""Summaries of tables: each one's present state and its history, prepared for people.

The input is plain rows: the history, counts of batches, intervals, rows in quarantine.
The output is frozen values from which a page can be written without further queries.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from sluice.declare.table import Table
from sluice.gate.counting.batch_counts import KeptCounts
from sluice.gate.counting.batch_counts import newest as newest_batch
from sluice.gate.outcomes.results import WHOLE
from sluice.gate.outcomes.standing import begin, is_whole, key, standing
from sluice.language.row import Row
from sluice.language.spans import newest
from sluice.read.status import TableStatus
from sluice.report.checks import (
    SHOWN,
    Check,
    ExpectationSummary,
    State,
    expectation,
    worst,
)


@dataclass(frozen=True)
class TableRecord:
    """Record that the report gets of a table; only the table and its status are required."""

    table: Table
    status: TableStatus
    columns: tuple[tuple[str, str], ...] = ()  # name and type
    expected: tuple[str, ...] | None = None  # labels of today's expectations; None: unknown
    results: tuple[Row, ...] = ()  # rows of history.SCHEMA
    batches: tuple[KeptCounts, ...] = ()
    intervals: tuple[Row, ...] = ()  # with rows_read, rows_accepted, rows_quarantined; or the load
    quarantine: tuple[Row, ...] = ()  # a few rows of quarantine.SCHEMA
    data_docs: str = ""  # the file of Great Expectations' own page


@dataclass(frozen=True)
class TableSummary:
    """One table's page."""

    record: TableRecord
    expectations: tuple[ExpectationSummary, ...]
    batches: tuple[Check, ...]  # the worst check of each batch
    intervals: tuple[Row, ...]  # none of a dimension, which has only its load

    @property
    def failing(self) -> list[ExpectationSummary]:
        """Expectations that the newest check found not met, the worst first."""
        unmet = (e for e in self.expectations if e.latest.state is not State.PASSED)
        return sorted(unmet, key=lambda e: -e.latest.state.weight)

    @property
    def state(self) -> State | None:
        """State of its newest batch and of the whole table; None if nothing was ever expected.

        Stopped, whatever was expected, if its last batch failed.
        """
        if self.record.status.failure:
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
    def gaps(self) -> list[str]:
        """Lines on intervals that were not delivered, or without a file."""
        stands = self.record.status
        missing = [f"missing: {newest(stands.missing)}"] if stands.missing else []
        empty = [f"no files: {newest(stands.without_files)}"] if stands.without_files else []
        return missing + empty

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
    of_intervals = () if record.table.is_loaded else record.intervals
    by_interval = sorted(of_intervals, key=lambda row: row["interval_start"])
    return TableSummary(
        record,
        tuple(expectation(rows) for rows in _by_expectation(results, current)),
        tuple(worst(list(rows)) for _, rows in groupby(of_batches, key=begin))[-SHOWN:],
        tuple(by_interval)[-SHOWN:],
    )


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
