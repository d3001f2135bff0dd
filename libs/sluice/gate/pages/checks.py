"""Results of one expectation, prepared for people: its checks through time, its last sample.

Where an interval was checked several times, its last check stands.
"""

import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sluice.gate.outcomes.results import WHOLE

Row = Mapping[str, Any]
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


def standing(results: Iterable[Row]) -> list[Row]:
    """Return each expectation's last check per interval (or batch), oldest interval first."""
    last = {
        (moment(row), *key(row)): row for row in sorted(results, key=lambda row: row["checked_at"])
    }
    return sorted(last.values(), key=moment)


def moment(row: Row) -> dt.datetime:
    """Return the interval that a result is about, or the time of a batch without one."""
    found: dt.datetime = row.get("interval_start") or row["checked_at"]
    return found


def is_whole(row: Row) -> bool:
    """True for a result over the whole table."""
    return str(row["says"]).endswith(WHOLE)


def newest(rows: Sequence[Row]) -> list[Row]:
    """Return the results of the newest batch, and of the newest check of the whole table."""
    last = {is_whole(row): row["checked_at"] for row in sorted(rows, key=_checked_at)}
    return [row for row in rows if row["checked_at"] == last[is_whole(row)]]


def _checked_at(row: Row) -> dt.datetime:
    at: dt.datetime = row["checked_at"]
    return at


def key(row: Row) -> tuple[str, str]:
    """Return the values that distinguish expectations."""
    return row["expectation"], row["says"]


def expectation(rows: Sequence[Row]) -> ExpectationSummary:
    """Return the summary of one expectation's standing results."""
    newest = rows[-1]
    failed = next((row for row in reversed(rows) if not row["success"]), newest)
    result = json.loads(failed["result"])
    return ExpectationSummary(
        newest["expectation"],
        newest["says"],
        newest["on_failure"],
        tuple(check(row) for row in rows[-SHOWN:]),
        tuple(r for r in (result.get("result") or {}).get("unexpected_rows") or () if r),
        moment_text(moment(failed)),
        _suspects(result["expectation_config"]["kwargs"]),
        "" if newest["unexpected_count"] is None else "% unexpected",
    )


def check(row: Row) -> Check:
    """Return one result as a check."""
    state = State.PASSED if row["success"] else FAILED[row["on_failure"]]
    return Check(moment_text(moment(row)), state, row["observed"], _number(row))


def worst(rows: Sequence[Row]) -> Check:
    """Return all results of one batch as one check."""
    checks = [check(row) for row in rows]
    found = max(checks, key=lambda check: check.state.weight)
    unmet = sum(check.state is not State.PASSED for check in checks)
    observed = f"{unmet} of {len(checks)} expectations not met" if unmet else "all met"
    return Check(found.when, found.state, observed)


def moment_text(moment: dt.datetime) -> str:
    """Return a date if it says everything, else date and time, in UTC."""
    utc = moment.astimezone(dt.UTC) if moment.tzinfo else moment
    return f"{utc:%Y-%m-%d}" if utc.time() == dt.time() else f"{utc:%Y-%m-%d %H:%M}"


def _number(row: Row) -> float | None:
    """Return the observed number; of an expectation about rows, GX's share without nulls."""
    details = json.loads(row["result"]).get("result") or {}
    if row["unexpected_count"] is not None:
        return float(details.get("unexpected_percent") or 0)
    found = details.get("observed_value")
    return float(found) if isinstance(found, int | float) else None


def _suspects(kwargs: Row) -> frozenset[str]:
    single = [kwargs[key] for key in ("column", "column_A", "column_B") if key in kwargs]
    return frozenset([*single, *kwargs.get("column_list", ())])
