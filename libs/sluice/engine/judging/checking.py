"""Expectations of a view, checked against a batch's new rows before they are committed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changes.diff import CHANGE
from sluice.delta.notes.note_tables import append_rows
from sluice.delta.places.lake_layout import LakeLayout
from sluice.engine.computing.batch_result import ChangelogRows, as_rows
from sluice.engine.judging.quarantining import JudgedBatch
from sluice.engine.query.maintained import Maintained
from sluice.gate.gate import Gate
from sluice.gate.outcomes import history
from sluice.gate.outcomes.verdict import Verdict


@dataclass(frozen=True)
class Checked:
    """Changelog of a view, and the warnings of its expectations."""

    changelog: ChangelogRows
    warnings: tuple[str, ...]


@contextmanager
def checked(
    session: SparkSession,
    lake: LakeLayout,
    node: Maintained,
    changelog: ChangelogRows,
    batch: JudgedBatch,
) -> Iterator[Checked]:
    """Yield a view's changelog whose new rows met the expectations, while the context is open.

    Raises QualityStop if an expectation marked `stop` fails; nothing is committed then.
    """
    if not node.expectations:
        yield Checked(changelog, ())
        return
    rows = as_rows(session, changelog)
    cached = rows.persist()
    try:
        verdict = judged(node, cached)
        keep_results(lake, verdict, batch)
        verdict.enforce()
        yield Checked(changelog if rows is not changelog else cached, verdict.warnings)
    finally:
        cached.unpersist()


def judged(node: Maintained, changelog: DataFrame) -> Verdict:
    """Return the verdict of the expectations on a changelog's new rows."""
    gate = Gate(node.id, node.expectations)
    return gate.check(gate.split(changelog.where(F.col(CHANGE) != "delete").drop(CHANGE)))


def keep_results(lake: LakeLayout, verdict: Verdict, batch: JudgedBatch) -> None:
    """Add the outcomes of one check to the history of the lake."""
    rows = history.rows(
        verdict,
        run=batch.run,
        batch=batch.number,
        checked_at=datetime.now(UTC),
        interval_start=batch.start,
    )
    append_rows(f"{lake.root}/{history.TABLE}", rows)
