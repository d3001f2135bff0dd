"""Outcome of a job, and its meaning to Airflow: go on, retry, or give up with the reason.

A job reports in a file: `{"reports": [...]}`, or `{"error", "hint", "exit_code"}` with the tables
that failed. A job that left no such file was killed, or its machine failed: a retry may help.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from sluice.errors import ExitCode, SluiceError

FINAL = (ExitCode.DIFFERENCES, ExitCode.CONFIGURATION, ExitCode.QUALITY, ExitCode.HISTORY)
ReportFields = dict[str, Any]


@dataclass(frozen=True)
class JobOutcome:
    """Batch reports of the tables that the job reached, and how the job ended."""

    reports: tuple[ReportFields, ...] = ()
    error: str = ""
    hint: str = ""
    exit_code: int = 0
    failed: tuple[str, ...] = ()

    @classmethod
    def read(cls, file: Path) -> "JobOutcome | None":
        """Return the outcome that a file holds; None if it is missing or unreadable."""
        try:
            content = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError):
            return None
        lists = {name: tuple(content.get(name, ())) for name in ("reports", "failed")}
        return cls(**{**content, **lists})

    def __str__(self) -> str:
        return f"{self.error}\nhint: {self.hint}" if self.hint else self.error


class JobFailed(AirflowException):  # type: ignore[misc]
    """A failure that may not occur in the next attempt."""

    def __init__(self, outcome: JobOutcome) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome


class JobRefused(AirflowFailException):  # type: ignore[misc]
    """A failure that no retry fixes: a person has to change something first."""

    def __init__(self, outcome: JobOutcome) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome


def check(outcome: JobOutcome | None, cause: BaseException | None) -> JobOutcome:
    """Return the outcome of a job that did its work; raise an Airflow exception for any other."""
    if outcome is None and isinstance(cause, AirflowFailException | JobFailed):
        raise cause  # it was never started, or was killed
    if outcome is None:
        raise AirflowException(f"the job ended without a message: {cause}") from cause
    if outcome.error:
        kind = JobRefused if outcome.exit_code in FINAL else JobFailed
        raise kind(outcome) from None
    return outcome


def sentence(report: Mapping[str, Any]) -> str:
    """Return a line for a task's log: what was read, what changed, how long each phase took."""
    if "outcome" not in report:
        return ", ".join(f"{name} {value}" for name, value in report.items())
    parts = [f"{report['table']}: {report['outcome']}"]
    if report["outcome"] == "failed":
        return f"{parts[0]} with exit code {report['exit_code']}: {report['error']}" + _left(report)
    if report["outcome"] == "skipped":
        return f"{parts[0]}, because {', '.join(report['because'])} failed"
    if report["outcome"] in ("committed", "position"):
        counts = " ".join(f"{sign}{report.get(name, 0)}" for sign, name in SIGNS)
        parts[0] += f" version {report['version']}"
        parts += [f"read {name} ({a}, {b}]" for name, (a, b) in report.get("inputs", {}).items()]
        rows = report.get("rows_in")
        parts += [f"{rows} rows in"] if rows is not None else []
        parts.append(counts)
    if report.get("quarantined"):
        parts.append(f"{report['quarantined']} quarantined")
    phases = ", ".join(f"{name} {spent:.1f}" for name, spent in report.get("seconds", {}).items())
    return ", ".join(parts) + (f"; seconds: {phases}" if phases else "")


def foreseen(record: Mapping[str, Any]) -> list[str]:
    """Return lines for a preview's log: what would happen to a table, and some changed rows."""
    counts = " ".join(f"{sign}{record[name]}" for sign, name in SIGNS)
    line = f"{record['table']}: {record['outcome']}, {counts}"
    line += f", {record['rows_in']} rows in" if record["rows_in"] is not None else ""
    more = (f", {record[name]} {name}" for name in ("quarantined", "expired") if record[name])
    line += "".join(more) + (f": {record['error']}" if record["error"] else "")
    sides = ((sign, s[side]) for s in record["samples"] for sign, side in SIDES)
    return [line, *(f"  {sign} {json.dumps(row)}" for sign, row in sides if row is not None)]


def _left(report: Mapping[str, Any]) -> str:
    """Return text on the intervals that were not delivered."""
    from sluice.language.interval import Interval  # DAG files do without it
    from sluice.language.spans import spans

    intervals = (Interval.parse(*bounds) for bounds in report["undelivered"])
    left = spans(intervals, report.get("timezone", "UTC"))
    return f"; not delivered: {', '.join(map(str, left))}" if left else ""


SIDES = (("-", "before"), ("+", "after"))
SIGNS = (("+", "inserted"), ("~", "updated"), ("-", "deleted"))


@contextmanager
def refusing() -> Iterator[None]:
    """Raise JobRefused instead of a named error."""
    try:
        yield
    except SluiceError as error:
        refused = JobOutcome(error=error.message, hint=error.hint, exit_code=int(error.exit_code))
        raise JobRefused(refused) from None
