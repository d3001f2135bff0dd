"""Passing delivered rows through the gate: results kept, bad rows set aside, good ones handed on.

The quarantine is committed before the table that the rows were meant for, so a row that was read
is never in neither.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changelog.diff import CHANGE
from sluice.quality import anomalies, facts, history
from sluice.quality.gate import Gate, accepted
from sluice.quality.misfits import check_misfits
from sluice.quality.verdict import Verdict
from sluice.runtime.aside import Delivered, set_aside
from sluice.runtime.computed import Changelog
from sluice.runtime.nodes import Node
from sluice.specs.project import Project
from sluice.specs.source import Source
from sluice.specs.table import Table
from sluice.storage.arrow import append_rows
from sluice.storage.lake import layout


@dataclass(frozen=True)
class Passed:
    """The accepted rows, cached, and what the gate found."""

    rows: DataFrame
    verdict: Verdict


@dataclass(frozen=True)
class Checked:
    """A view's changelog, and what its expectations warn of."""

    changelog: Changelog
    warnings: tuple[str, ...]


Refusal = Callable[[DataFrame, Verdict], None]


@contextmanager
def gated(
    project: Project,
    table: Table,
    parsed: DataFrame,
    delivered: Delivered,
    refuse: Refusal = lambda _split, _verdict: None,
) -> Iterator[Passed]:
    """The rows that pass, for as long as the context is open.

    Raises QualityStop if an expectation marked `stop` fails, if rows are in conflict and the source
    takes none, or what `refuse` raises; nothing is set aside or committed then, only the results
    are kept.
    """
    gate = Gate(table.id, table.spec.expect, table.spec.key)  # type: ignore[union-attr]
    split = gate.split(parsed).persist()
    try:
        verdict = gate.check(split)
        _keep_results(project, verdict, delivered)
        verdict.enforce()
        check_misfits(split, verdict)
        refuse(split, verdict)
        conflicting = _conflicting(table, verdict)
        set_aside(project, table, split, verdict, delivered)
        unusual = _unusual(project, table, verdict, delivered)
        yield Passed(accepted(split), replace(verdict, unusual=(*conflicting, *unusual)))
    finally:
        split.unpersist()


@contextmanager
def checked(
    session: SparkSession,
    project: Project,
    node: Node,
    changelog: Changelog,
    delivered: Delivered,
) -> Iterator[Checked]:
    """A view's changelog whose new rows met the expectations, for as long as the context is open.

    Raises QualityStop if one marked `stop` fails; nothing is committed then.
    """
    if not node.expectations:
        yield Checked(changelog, ())
        return
    gate = Gate(node.id, node.expectations)
    rows = session.createDataFrame(changelog) if isinstance(changelog, pa.Table) else changelog
    cached = rows.persist()
    try:
        new = cached.where(F.col(CHANGE) != "delete").drop(CHANGE)
        verdict = gate.check(gate.split(new))
        _keep_results(project, verdict, delivered)
        verdict.enforce()
        yield Checked(changelog if rows is not changelog else cached, verdict.warnings)
    finally:
        cached.unpersist()


def _keep_results(project: Project, verdict: Verdict, delivered: Delivered) -> None:
    rows = history.rows(
        verdict,
        run=delivered.run,
        batch=delivered.batch,
        checked_at=datetime.now(UTC),
        interval_start=delivered.start,
    )
    append_rows(f"{layout(project).root}/{history.TABLE}", rows)


def _conflicting(table: Table, verdict: Verdict) -> tuple[str, ...]:
    """A warning of rows of one key that differ. Raises QualityStop where that is a failure."""
    if verdict.conflicts is None or not isinstance(table.spec, Source):
        return ()
    if table.spec.on_conflict == "fail":
        raise verdict.conflicts.stop(table.id)
    return (verdict.conflicts.warning(table.id, table.spec.on_conflict),)


def _unusual(
    project: Project, table: Table, verdict: Verdict, delivered: Delivered
) -> tuple[str, ...]:
    return anomalies.warnings(
        layout(project).uri(table.id, facts.SUFFIX),
        verdict,
        run=delivered.run,
        batch=delivered.batch,
        checked_at=datetime.now(UTC),
        interval_start=delivered.start,
    )
