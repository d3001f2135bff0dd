"""Guard against a delivery that would empty its interval: missing files, or no usable row.

A landing folder that is not mounted looks like one without files; a truncated file looks like one
without rows. So an interval with rows is emptied only on request. `--allow-empty` requests it for
one run, `missing: empty` of a source for intervals that have no files. A file without rows in the
interval's own folder is itself such a request.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluice.declare.delivered_row import FILE, REASON
from sluice.errors import QualityStop
from sluice.gate.outcomes.verdict import Verdict
from sluice.sources.delivery import Delivery

MENDING = "fix the delivery"
MOUNTING = "check the landing folder, and deliver the files again"
ALLOWED = "if it should be empty, run it with --allow-empty (in Airflow: `Allow empty` in the form)"
DECLARED = f"{ALLOWED}, or declare `missing: empty`"


@dataclass(frozen=True)
class Emptied:
    """Guard of an interval's rows; `had` counts those that it has, which costs a Spark job."""

    delivery: Delivery
    had: Callable[[], int]
    allowed: bool = False

    def refuse(self, split: DataFrame, verdict: Verdict) -> None:
        """Raise QualityStop if no row replaces those that the interval has."""
        if self.allowed or verdict.rows_accepted or self._is_declared(verdict):
            return
        if not (had := self.had()):
            return
        name = self.delivery.table.id
        interval = self.delivery.interval.shown(self.delivery.timezone)
        before = f"{name}: the interval {interval} has {had:,} {_rows(had)}"
        if verdict.rows_read:
            first = _first_reason(split)
            what = f"none of {verdict.rows_read:,} now delivered can be used{first}"
            hint = f"nothing was committed; {MENDING}; {ALLOWED}"
        else:
            what = f"{self._nothing()} was delivered now"
            hint = f"nothing was committed; {MOUNTING}; {DECLARED}"
        raise QualityStop(f"{before}, and {what}", hint=hint)

    def _is_declared(self, verdict: Verdict) -> bool:
        """True if the source, or a file without rows, declares that there are none."""
        has_own_files = self.delivery.spec.has_pattern and bool(self.delivery.files)
        is_said = has_own_files or self.delivery.spec.missing == "empty"
        return not verdict.rows_read and is_said

    def _nothing(self) -> str:
        files = "no row" if self.delivery.files else "no file"
        return f"{files} at {self.delivery.path}" if self.delivery.path else "no row"


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"


def _first_reason(split: DataFrame) -> str:
    found = split.where(F.col(REASON).isNotNull()).select(FILE, REASON).limit(1).toArrow()
    return "".join(f"; e.g. in {row[FILE]}: {row[REASON]}" for row in found.to_pylist())
