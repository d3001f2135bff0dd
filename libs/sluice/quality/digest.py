"""Kept results made ready for people: what each table looks like today, and how it got there.

Input are plain rows, as `history` and the tables of intervals hold them; output are frozen values
that a page can be written from without a further question. Where an interval was checked several
times, its last check stands.
"""

import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Any

Row = Mapping[str, Any]
SHOWN = 60  # intervals, newest last


class State(StrEnum):
    """How a check ended; the later, the more it asks for attention."""

    PASSED = "passed"
    ASIDE = "rows set aside"
    WARNED = "warned"
    STOPPED = "stopped"


FAILED = {"quarantine": State.ASIDE, "warn": State.WARNED, "stop": State.STOPPED}


@dataclass(frozen=True)
class TableFacts:
    """All that the report is told of a table; only its name is needed."""

    pipeline: str
    table: str
    kind: str = "source"
    version: int | None = None
    row_count: int | None = None
    updated_at: dt.datetime | None = None
    columns: tuple[tuple[str, str], ...] = ()  # name and type
    results: tuple[Row, ...] = ()  # rows of history.SCHEMA
    intervals: tuple[Row, ...] = ()  # interval_start, rows_read, rows_accepted, rows_quarantined


@dataclass(frozen=True)
class Check:
    """One expectation, once."""

    when: str
    state: State
    observed: str
    share: float  # of rows unexpected, 0 to 1


@dataclass(frozen=True)
class ExpectationDigest:
    """One expectation through time, with rows that failed it last."""

    label: str
    says: str
    on_failure: str
    checks: tuple[Check, ...]
    sample: tuple[Row, ...]
    sample_when: str
    suspects: frozenset[str]  # the columns that it is about

    @property
    def latest(self) -> Check:
        return self.checks[-1]

    @property
    def sample_columns(self) -> list[str]:
        """The suspects first, then the others as they come."""
        columns = dict.fromkeys(column for row in self.sample for column in row)
        return sorted(columns, key=lambda column: column not in self.suspects)


@dataclass(frozen=True)
class Interval:
    """What one interval delivered."""

    when: str
    read: int
    accepted: int
    quarantined: int


@dataclass(frozen=True)
class TableDigest:
    """One table's page."""

    facts: TableFacts
    expectations: tuple[ExpectationDigest, ...]
    batches: tuple[Check, ...]  # the worst check of each batch
    intervals: tuple[Interval, ...]

    @property
    def name(self) -> str:
        return f"{self.facts.pipeline}.{self.facts.table}"

    @property
    def state(self) -> State | None:
        """Of its newest batch; None: nothing was ever expected."""
        return self.batches[-1].state if self.batches else None

    @property
    def unmet(self) -> int:
        return sum(e.latest.state is not State.PASSED for e in self.expectations)

    @property
    def quarantined(self) -> int:
        """Rows in quarantine, of all intervals, also those that are not shown."""
        return sum(row["rows_quarantined"] for row in self.facts.intervals)

    @property
    def read(self) -> int:
        return sum(row["rows_read"] for row in self.facts.intervals)


def digest(facts: TableFacts) -> TableDigest:
    """A table's page from its facts."""
    results = standing(facts.results)
    return TableDigest(
        facts,
        tuple(_expectation(rows) for rows in _by_expectation(results, _current(results))),
        tuple(_worst(list(rows)) for _, rows in groupby(results, key=_moment))[-SHOWN:],
        tuple(_interval(row) for row in sorted(facts.intervals, key=_start))[-SHOWN:],
    )


def standing(results: Iterable[Row]) -> list[Row]:
    """The last check of each expectation in each interval (or batch), oldest interval first."""
    last = {
        (_moment(row), *_key(row)): row
        for row in sorted(results, key=lambda row: row["checked_at"])
    }
    return sorted(last.values(), key=_moment)


def _moment(row: Row) -> dt.datetime:
    moment: dt.datetime = row.get("interval_start") or row["checked_at"]
    return moment


def _start(row: Row) -> dt.datetime:
    start: dt.datetime = row["interval_start"]
    return start


def _current(results: Sequence[Row]) -> list[tuple[str, str]]:
    """The expectations of the last check: ones that left the configuration are not shown."""
    last = max((row["checked_at"] for row in results), default=None)
    return [_key(row) for row in results if row["checked_at"] == last]


def _key(row: Row) -> tuple[str, str]:
    return row["expectation"], row["says"]


def _by_expectation(results: Sequence[Row], keys: Sequence[tuple[str, str]]) -> list[list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {key: [] for key in keys}
    for row in results:
        if _key(row) in found:
            found[_key(row)].append(row)
    return list(found.values())


def _expectation(rows: Sequence[Row]) -> ExpectationDigest:
    newest = rows[-1]
    failed = next((row for row in reversed(rows) if not row["success"]), newest)
    result = json.loads(failed["result"])
    return ExpectationDigest(
        newest["expectation"],
        newest["says"],
        newest["on_failure"],
        tuple(_check(row) for row in rows[-SHOWN:]),
        tuple(r for r in (result.get("result") or {}).get("unexpected_rows") or () if r),
        moment_text(_moment(failed)),
        _suspects(result["expectation_config"]["kwargs"]),
    )


def _suspects(kwargs: Row) -> frozenset[str]:
    single = [kwargs[key] for key in ("column", "column_A", "column_B") if key in kwargs]
    return frozenset([*single, *kwargs.get("column_list", ())])


def _check(row: Row) -> Check:
    unexpected, elements = row["unexpected_count"] or 0, row["element_count"] or 0
    share = unexpected / elements if elements else 0.0
    state = State.PASSED if row["success"] else FAILED[row["on_failure"]]
    return Check(moment_text(_moment(row)), state, row["observed"], share)


def _worst(rows: Sequence[Row]) -> Check:
    checks = [_check(row) for row in rows]
    worst = max(checks, key=lambda check: list(State).index(check.state))
    unmet = sum(check.state is not State.PASSED for check in checks)
    observed = f"{unmet} of {len(checks)} expectations not met" if unmet else "all met"
    return Check(worst.when, worst.state, observed, worst.share)


def _interval(row: Row) -> Interval:
    return Interval(
        moment_text(row["interval_start"]),
        row["rows_read"],
        row["rows_accepted"],
        row["rows_quarantined"],
    )


def moment_text(moment: dt.datetime) -> str:
    """A date where that says it all, else with the time; UTC."""
    utc = moment.astimezone(dt.UTC) if moment.tzinfo else moment
    return f"{utc:%Y-%m-%d}" if utc.time() == dt.time() else f"{utc:%Y-%m-%d %H:%M}"
