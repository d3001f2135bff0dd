"""Gate for delivered rows: it keeps results, quarantines bad rows and hands on good ones.

The quarantine is committed before the table that the rows were meant for. Every row that was read
is therefore in at least one of the two.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from sluice.declare.declared import Declared
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.lake import layout
from sluice.engine.aside import Delivered, set_aside
from sluice.engine.checking import keep_results
from sluice.gate import anomalies
from sluice.gate.gate import Gate, accepted
from sluice.gate.misfits import check_misfits
from sluice.gate.verdict import Verdict
from sluice.language.internal import FACTS


@dataclass(frozen=True)
class Passed:
    """Accepted rows, cached, and what the gate found."""

    rows: DataFrame
    verdict: Verdict


Refusal = Callable[[DataFrame, Verdict], None]


@contextmanager
def gated(
    project: Project,
    table: Table,
    parsed: DataFrame,
    delivered: Delivered,
    refuse: Refusal = lambda _split, _verdict: None,
    on_conflict: str = "last",
) -> Iterator[Passed]:
    """Yield the rows that pass, for as long as the context is open.

    Raises QualityStop if an expectation marked `stop` fails, or if rows are in conflict and
    `on_conflict` is `fail`. It also raises what `refuse` raises. Nothing is quarantined or
    committed then; only the results are kept.
    """
    assert isinstance(table.spec, Declared)
    gate = Gate(table.id, table.expect, table.spec.key)
    split = gate.split(parsed).persist()
    try:
        verdict = gate.check(split)
        keep_results(layout(project), verdict, delivered)
        verdict.enforce()
        check_misfits(split, verdict)
        refuse(split, verdict)
        conflicting = _conflicting(table, verdict, on_conflict)
        set_aside(project, table, split, verdict, delivered)
        unusual = _unusual(project, table, verdict, delivered)
        yield Passed(accepted(split), replace(verdict, unusual=(*conflicting, *unusual)))
    finally:
        split.unpersist()


def _conflicting(table: Table, verdict: Verdict, on_conflict: str) -> tuple[str, ...]:
    """Return a warning of rows of one key that differ. Raises QualityStop if that is a failure."""
    if verdict.conflicts is None:
        return ()
    if on_conflict == "fail":
        raise verdict.conflicts.stop(table.id)
    return (verdict.conflicts.warning(table.id, on_conflict),)


def _unusual(
    project: Project, table: Table, verdict: Verdict, delivered: Delivered
) -> tuple[str, ...]:
    return anomalies.warnings(
        layout(project).uri(table.id, FACTS),
        verdict,
        run=delivered.run,
        batch=delivered.batch,
        checked_at=datetime.now(UTC),
        interval_start=delivered.start,
    )
