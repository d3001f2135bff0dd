"""Results of one expectation, prepared for people: its checks through time, its last sample."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sluice.gate.outcomes.standing import begin
from sluice.language.row import Row
from sluice.pages.elements import Text
from sluice.pages.wording import moment

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
    return ExpectationSummary(
        newest["expectation"],
        newest["says"],
        newest["on_failure"],
        tuple(check(row) for row in rows[-SHOWN:]),
        tuple(r for r in (result.get("result") or {}).get("unexpected_rows") or () if r),
        moment(begin(failed)),
        _suspects(result["expectation_config"]["kwargs"]),
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


def _suspects(kwargs: Row) -> frozenset[str]:
    single = [kwargs[key] for key in ("column", "column_A", "column_B") if key in kwargs]
    return frozenset([*single, *kwargs.get("column_list", ())])
