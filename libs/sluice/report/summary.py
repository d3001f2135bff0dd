"""Summaries of tables: each one's present state and its history, prepared for people.

The input is plain rows: the history, counts of batches, intervals, rows in quarantine.
The output is frozen values from which a page can be written without further queries.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from sluice.declare.table import Table
from sluice.gate.counts import KeptCounts
from sluice.gate.counts import newest as newest_batch
from sluice.gate.history import begin, is_whole, key, standing
from sluice.gate.results import WHOLE
from sluice.language.interval import newest
from sluice.language.names import Row
from sluice.pages import Text, moment
from sluice.read.status import TableStatus

SHOWN = 60  # checks, newest last


class State(StrEnum):
    """Result of a check, in order of rising attention."""

    PASSED = "passed"
    QUARANTINED = "rows quarantined"
    WARNED = "warned"
    STOPPED = "stopped"

    @property
    def weight(self) -> int:
        return list(State).index(self)

    @property
    def look(self) -> str:
        return self.name.lower()

    @property
    def chip(self) -> Text:
        return Text(self.value, f"chip {self.look}")


FAILED = {"quarantine": State.QUARANTINED, "warn": State.WARNED, "stop": State.STOPPED}


@dataclass(frozen=True)
class Check:
    """One check of an expectation; `number` is the observed value if that is a number."""

    when: str
    state: State
    observed: str
    number: float | None = None


@dataclass(frozen=True)
class ExpectationSummary:
    """One expectation through time, with the rows that failed it last."""

    label: str
    says: str
    on_failure: str
    checks: tuple[Check, ...]
    sample: tuple[Row, ...]
    sample_when: str
    suspects: frozenset[str]  # the columns it is about
    unit: str = ""  # of the checks' numbers

    @property
    def latest(self) -> Check:
        return self.checks[-1]

    @property
    def varies(self) -> bool:
        """True if there is something to draw."""
        return len({check.number for check in self.checks if check.number is not None}) > 1

    @property
    def sample_columns(self) -> list[str]:
        """Columns of the sample: the suspects first, then the others in their order."""
        columns = dict.fromkeys(column for row in self.sample for column in row)
        return sorted(columns, key=lambda column: column not in self.suspects)


def expectation(rows: Sequence[Row]) -> ExpectationSummary:
    """Return the summary of one expectation's standing results."""
    newest = rows[-1]
    failed = next((row for row in reversed(rows) if not row["success"]), newest)
    result = json.loads(failed["result"])
    kwargs = result["expectation_config"]["kwargs"]
    single = [kwargs[name] for name in ("column", "column_A", "column_B") if name in kwargs]
    return ExpectationSummary(
        newest["expectation"],
        newest["says"],
        newest["on_failure"],
        tuple(check(row) for row in rows[-SHOWN:]),
        tuple(r for r in (result.get("result") or {}).get("unexpected_rows") or () if r),
        moment(begin(failed)),
        frozenset([*single, *kwargs.get("column_list", ())]),
        "" if newest["unexpected_count"] is None else "% unexpected",
    )


def check(row: Row) -> Check:
    """Return one result as a check."""
    state = State.PASSED if row["success"] else FAILED[row["on_failure"]]
    return Check(moment(begin(row)), state, row["observed"], _number(row))


def worst(rows: Sequence[Row]) -> Check:
    """Return all results of one batch as one check."""
    checks = [check(row) for row in rows]
    found = max(checks, key=lambda check: check.state.weight)
    unmet = sum(check.state is not State.PASSED for check in checks)
    observed = f"{unmet} of {len(checks)} expectations not met" if unmet else "all met"
    return Check(found.when, found.state, observed)


def _number(row: Row) -> float | None:
    """Return the observed number; of an expectation about rows, GX's share without nulls."""
    details = json.loads(row["result"]).get("result") or {}
    if row["unexpected_count"] is not None:
        return float(details.get("unexpected_percent") or 0)
    found = details.get("observed_value")
    return float(found) if isinstance(found, int | float) else None


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
    def whole(self) -> str:
        """Text on why every batch computes the table whole; '' if none does."""
        return self.record.status.caution

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
