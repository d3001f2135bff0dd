"""Verdict of the gate on a batch: counts and outcomes, and their consequences."""

from collections.abc import Sequence
from dataclasses import dataclass

from sluice.errors import QualityStop
from sluice.gate.counting.batch_counts import BatchCounts
from sluice.gate.counting.conflicts import Conflicts
from sluice.gate.outcomes.results import ExpectationOutcome


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

    @property
    def rows_quarantined(self) -> int:
        return self.rows_read - self.rows_accepted

    def failed(self, on_failure: str) -> tuple[ExpectationOutcome, ...]:
        return tuple(
            o for o in self.outcomes if not o.success and o.expectation.on_failure == on_failure
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for a report: failures that don't stop the batch, and unusual counts."""
        failed = (*self.failed("quarantine"), *self.failed("warn"))
        unmet = (f"{self.table}: expected that {o.says}: {o.observed}" for o in failed)
        return (*unmet, *self._cut, *self.unusual)

    @property
    def _cut(self) -> tuple[str, ...]:
        what = "digits beyond a microsecond, which were cut"
        return (f"{self.table}: {self.cut:,} time(s) had {what}",) if self.cut else ()

    def enforce(self) -> None:
        """Raise QualityStop if an expectation marked `stop` failed."""
        if stopped := self.failed("stop"):
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
        lines.extend(f"    e.g. {_short(row)}" for row in outcome.unexpected_rows[:3])
    return "\n".join(lines)


def _short(row: object) -> str:
    written = str(row)
    return written if len(written) <= 300 else written[:300] + "…"
