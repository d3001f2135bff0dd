"""Outcomes in Great Expectations' own result format, however they were computed.

The dictionaries have the fields of GX's `ExpectationValidationResult` at result format SUMMARY with
unexpected rows. So any reader of GX's JSON can read these.
"""

import datetime as dt
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sluice.declare.table_spec import Expectation
from sluice.errors import QualityStop
from sluice.gate.counts import BatchCounts, Conflicts, RowCounts
from sluice.gate.row_rules import RowRule
from sluice.gate.suite import (
    DISTINCT_COUNT,
    SAMPLES,
    SUM,
    Measure,
    Repeats,
    UniquenessRule,
    other_column,
    within,
)

ROWS_SHOWN = 5
WHOLE = ", over the whole table"  # suffix of such an expectation's text
Json = dict[str, Any]


@dataclass(frozen=True)
class ExpectationOutcome:
    """One expectation and its result; `says` is the expectation in words."""

    expectation: Expectation
    says: str
    success: bool
    result: Json

    @property
    def details(self) -> Json:
        return self.result.get("result") or {}

    @property
    def element_count(self) -> int | None:
        return self.details.get("element_count")

    @property
    def unexpected_count(self) -> int | None:
        return self.details.get("unexpected_count")

    @property
    def unexpected_rows(self) -> list[Any]:
        return list(self.details.get("unexpected_rows") or ())

    @property
    def observed(self) -> str:
        """Observation in a few words; where nulls are ignored, values are counted, as in GX."""
        if error := self.result.get("exception_info", {}).get("exception_message"):
            return f"could not be evaluated: {error}"
        if self.unexpected_count is None:
            return _show(self.details.get("observed_value"))
        missing = self.details.get("missing_count") or 0
        considered = (self.element_count or 0) - missing
        counts = f"{self.unexpected_count:,} of {considered:,} {'values' if missing else 'rows'}"
        percent = self.details.get("unexpected_percent") or 0.0
        return f"{counts} unexpected ({percent:.3g} %)"


def _show(observed: Any) -> str:
    match observed:
        case {"self": mine, "other": others}:
            return f"{_show(mine)}, the other has {_show(others)}"
        case bool():
            return str(observed)
        case int():
            return f"{observed:,}"
        case float():
            return f"{observed:,.10g}"
    return str(observed)


def row_outcome(rule: RowRule, counts: RowCounts) -> ExpectationOutcome:
    """Return the outcome of a row rule."""
    samples = [json.loads(row) for row in counts.samples]
    values = [_value(row, rule.test.columns) for row in samples]
    considered = None if rule.test.ignored is None else counts.considered
    details = _map_details(counts.elements, considered, counts.unexpected, values)
    details["unexpected_rows"] = samples[:ROWS_SHOWN]
    success = _meets_mostly(rule.expectation, counts.considered, counts.unexpected)
    return outcome(rule.expectation, rule.test.says, success, details)


def measure_outcome(measure: Measure, observed: Any) -> ExpectationOutcome:
    """Return the outcome of a measure."""
    success = measure.accepts(observed)
    return outcome(
        measure.expectation, measure.says, success, {"observed_value": to_json_value(observed)}
    )


def uniqueness_outcome(rule: UniquenessRule, found: Repeats) -> ExpectationOutcome:
    """Return the outcome of a rule about repeated values."""
    if not rule.is_about_rows:
        is_count = rule.expectation.type == DISTINCT_COUNT
        observed = found.distinct if is_count else found.share
        success = within(observed, rule.expectation.kwargs)
        return outcome(rule.expectation, rule.says, success, {"observed_value": observed})
    values = [_value(json.loads(key), rule.columns) for key in found.samples]
    details = _map_details(found.elements, found.considered, found.repeated, values)
    success = _meets_mostly(rule.expectation, found.considered, found.repeated)
    return outcome(rule.expectation, rule.says, success, details)


def to_json_value(value: Any) -> Any:
    """Return a value in a form that JSON can hold."""
    match value:
        case Decimal():
            return float(value)
        case dt.date():  # datetimes too
            return value.isoformat()
        case float() if not math.isfinite(value):
            return str(value)
    return value


def _meets_mostly(expectation: Expectation, considered: int, unexpected: int) -> bool:
    mostly = float(expectation.kwargs.get("mostly", 1))
    return considered == 0 or (considered - unexpected) / considered >= mostly


def _value(row: Json, columns: Sequence[str]) -> Any:
    """Return GX's sample of an unexpected row: the value, or the values of several columns."""
    values: list[Any] = []
    for column in columns:
        found: Any = row
        for part in column.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        values.append(found)
    return values[0] if len(values) == 1 else values


def _map_details(
    elements: int, considered: int | None, unexpected: int, values: Sequence[Any]
) -> Json:
    total = _percent(unexpected, elements)
    nonmissing = total if considered is None else _percent(unexpected, considered)
    details: Json = {
        "element_count": elements,
        "unexpected_count": unexpected,
        "unexpected_percent": nonmissing,
        "partial_unexpected_list": list(values[:SAMPLES]),
    }
    if considered is not None:
        details["missing_count"] = elements - considered
        details["missing_percent"] = _percent(elements - considered, elements)
        details["unexpected_percent_total"] = total
        details["unexpected_percent_nonmissing"] = nonmissing
    counts = Counter(json.dumps(v, sort_keys=True) for v in values)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    details["partial_unexpected_counts"] = [
        {"value": json.loads(value), "count": count} for value, count in ordered
    ]
    return details


def _percent(part: int, whole: int) -> float | None:
    return part / whole * 100 if whole else None


def outcome(
    expectation: Expectation, says: str, success: bool, details: Json
) -> ExpectationOutcome:
    """Return an outcome with these details, in GX's format."""
    result = {
        "success": success,
        "expectation_config": config(expectation),
        "result": details,
        "meta": {},
        "exception_info": {
            "raised_exception": False,
            "exception_traceback": None,
            "exception_message": None,
        },
    }
    return ExpectationOutcome(expectation, says, success, result)


def config(expectation: Expectation) -> Json:
    """Return GX's `expectation_config`, with the effect of a failure in its `meta`."""
    kwargs = json.loads(json.dumps(expectation.kwargs, default=_as_json))
    severity = kwargs.pop("severity", "critical")
    meta = {**kwargs.pop("meta", {}), "on_failure": expectation.on_failure}
    return {"type": expectation.type, "kwargs": kwargs, "meta": meta, "severity": severity}


def _as_json(value: Any) -> Any:
    """Return `plain` for json.dumps, which must not get an unsupported type back."""
    simple = to_json_value(value)
    return str(value) if simple is value else simple


@dataclass(frozen=True)
class Verdict:
    """Result of the gate: one outcome per expectation, in the order of the configuration."""

    table: str
    rows_read: int
    rows_accepted: int
    outcomes: tuple[ExpectationOutcome, ...]
    counts: BatchCounts | None = None
    unusual: tuple[str, ...] = ()
    bytes_quarantined: int = 0  # of text, if it is quarantined
    conflicts: Conflicts | None = None
    cut: int = 0  # values of accepted rows that lost digits beyond a microsecond
    undated: int = 0  # rows in no interval, all of them in quarantine
    delivery: str = ""  # the table with its interval, which warnings name instead of the table

    @property
    def rows_quarantined(self) -> int:
        return self.rows_read - self.rows_accepted

    def failures(self, on_failure: str) -> tuple[ExpectationOutcome, ...]:
        return tuple(
            o for o in self.outcomes if not o.success and o.expectation.on_failure == on_failure
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for a report: failures that don't stop the batch, and unusual counts."""
        failed = (*self.failures("quarantine"), *self.failures("warn"))
        name = self.delivery or self.table
        unmet = (f"{name}: expected that {o.says}: {o.observed}" for o in failed)
        return (*unmet, *self._cut, *self._undated, *self.unusual)

    @property
    def _cut(self) -> tuple[str, ...]:
        what = "digits beyond a microsecond, which were cut"
        return (f"{self.table}: {self.cut:,} time(s) had {what}",) if self.cut else ()

    @property
    def _undated(self) -> tuple[str, ...]:
        what = "without an event time are in quarantine, in no interval"
        return (f"{self.table}: {self.undated:,} row(s) {what}",) if self.undated else ()

    def enforce(self) -> None:
        """Raise QualityStop if an expectation marked `stop` failed."""
        if stopped := self.failures("stop"):
            raise QualityStop(_stop_message(self.table, stopped), hint=STOP_HINT)


STOP_HINT = (
    "nothing of this batch was committed. Fix the input and run the interval again,"
    " or change the expectation's on_failure"
)


def _stop_message(table: str, stopped: Sequence[ExpectationOutcome]) -> str:
    """Return each failed expectation with what was found and a few of the rows."""
    lines = [f"{table}: {len(stopped)} expectation(s) marked stop failed"]
    for outcome in stopped:
        lines.append(f"  {outcome.expectation.label}: expected that {outcome.says}")
        lines.append(f"    found {outcome.observed}")
        rows = map(str, outcome.unexpected_rows[:3])
        lines += (f"    e.g. {row if len(row) <= 300 else row[:300] + '…'}" for row in rows)
    return "\n".join(lines)


def compare_numbers(expectation: Expectation, mine: Any, others: Any) -> ExpectationOutcome:
    """Return the outcome: both numbers, and whether they are equal (a sum of no rows is 0)."""
    other = expectation.kwargs["other_table_name"]
    if expectation.type == SUM:
        mine, others = (number or 0 for number in (mine, others))
        column = expectation.kwargs["column"]
        says = f"sum of {column} equals that of {other}.{other_column(expectation)}"
    else:
        says = f"row count equals that of {other}"
    tolerance = Decimal(str(expectation.kwargs.get("tolerance", 0)))
    equal = abs(Decimal(str(mine)) - Decimal(str(others))) <= tolerance
    details = {"observed_value": {"self": to_json_value(mine), "other": to_json_value(others)}}
    return outcome(expectation, says, equal, details)
