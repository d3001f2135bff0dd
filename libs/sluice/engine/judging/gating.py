"""Gate for delivered rows: it stores results, quarantines bad rows and passes good ones.

The quarantine is committed before the table that the rows were meant for. Every row that was read
is therefore in at least one of the two. Rows that come from the quarantine are committed first.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from sluice.declare.declared import Declared
from sluice.declare.table import Table
from sluice.delta.places.lake_layout import LakeLayout
from sluice.engine.context import Context
from sluice.engine.judging.checking import keep_results
from sluice.engine.judging.quarantining import JudgedBatch, put_in_quarantine
from sluice.gate.gate import Gate, accepted
from sluice.gate.outcomes import anomalies
from sluice.gate.outcomes.misfits import check_misfits
from sluice.gate.outcomes.verdict import Verdict
from sluice.language.interval import Interval


@dataclass(frozen=True)
class Passed:
    """Accepted rows, cached, and what the gate found."""

    rows: DataFrame
    verdict: Verdict


Refusal = Callable[[DataFrame, Verdict], None]


@contextmanager
def gated(
    context: Context,
    table: Table,
    parsed: DataFrame,
    batch: JudgedBatch,
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
        keep_results(context.lake, verdict, batch)
        verdict.enforce()
        check_misfits(split, verdict)
        refuse(split, verdict)
        name = _named(context, table, batch)
        conflicting = _conflicting(name, verdict, on_conflict)
        if not batch.is_replayed:
            put_in_quarantine(context, table, split, verdict, batch)
        unusual = [f"{name}: {what}" for what in _unusual(context.lake, verdict, batch)]
        yield Passed(accepted(split), replace(verdict, unusual=(*conflicting, *unusual)))
        if batch.is_replayed:
            put_in_quarantine(context, table, split, verdict, batch)
    finally:
        split.unpersist()


def _named(context: Context, table: Table, batch: JudgedBatch) -> str:
    """Return the table's name with the interval that is delivered."""
    if batch.start is None or batch.end is None:
        return table.id
    interval = Interval(start=batch.start, end=batch.end)
    return f"{table.id} {interval.shown(context.timezones[table.pipeline])}"


def _conflicting(name: str, verdict: Verdict, on_conflict: str) -> tuple[str, ...]:
    """Return a warning about differing rows of one key. Raises QualityStop if that is a failure."""
    if verdict.conflicts is None:
        return ()
    if on_conflict == "fail":
        raise verdict.conflicts.stop(name)
    return (verdict.conflicts.warning(name, on_conflict),)


def _unusual(lake: LakeLayout, verdict: Verdict, batch: JudgedBatch) -> tuple[str, ...]:
    return anomalies.warnings(
        lake,
        verdict,
        run=batch.run,
        batch=batch.number,
        checked_at=datetime.now(UTC),
        interval_start=batch.start,
        is_absent=batch.is_absent,
    )
