"""Replacement of a table's rows by recomputed ones, in one commit.

The change feed gets only the difference, even if columns are added. Delta can't read a feed across
a removed column, a changed type, or a key column that the table lacked. The table is then replaced
whole, and the readers of its feed must be rebuilt as well.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changes.diff import CHANGE, diff
from sluice.declare.stores import takes_spark
from sluice.delta.log.position import Head, Position
from sluice.delta.reading.local import column_types, to_arrow
from sluice.delta.reading.spark_reads import snapshot
from sluice.delta.upkeep.unmarking import unmarked
from sluice.delta.writing.by_spark import SparkCommit, changelog_counts
from sluice.delta.writing.commit import overwrite_arrow
from sluice.delta.writing.fence import Committed
from sluice.delta.writing.schema_evolution import add_columns
from sluice.engine.batch_report import Clock
from sluice.engine.committing.writing import Target, write
from sluice.engine.computing.batch_result import BatchResult, as_rows, settled
from sluice.engine.context import Context
from sluice.engine.query.operator import is_unique
from sluice.interpreter.presence import is_here
from sluice.limits import Limits


@dataclass(frozen=True)
class Swapped:
    """Result of the commit; `ends_feed`: consumers can't read the feed across it."""

    done: Committed
    ends_feed: bool = False


def swap(
    session: SparkSession,
    context: Context,
    target: Target,
    rows: DataFrame,
    position: Position,
    clock: Clock,
    *,
    ignore: Collection[str] = (),
) -> Swapped:
    """Make the table hold exactly `rows`. Raises LostRace."""
    before = target.before
    position = replace(
        position, cost=clock.spent(position.attempt, target.size.bytes, target.whole)
    )
    if before is None:
        changelog = _computed(session, rows.withColumn(CHANGE, F.lit("insert")), clock)
        return Swapped(write(session, context, target, changelog, position, clock))
    old = snapshot(session, target.uri, before.version, context.limits)
    had, has = column_types(old), column_types(rows)
    is_wider = all(has.get(name) == type_ for name, type_ in had.items())
    if not is_wider or not set(target.key) <= had.keys():
        with clock.phase("commit"):
            done = _overwritten(session, before, rows, position, context.limits)
            return Swapped(done, ends_feed=True)
    added = {name: type_ for name, type_ in has.items() if name not in had}
    wide = old.select("*", *[F.lit(None).cast(type_).alias(n) for n, type_ in added.items()])
    key = target.key if is_unique(wide, target.key) else tuple(had)
    if key != target.key and not is_unique(wide, key):
        with clock.phase("commit"):  # no MERGE could delete only one of two equal rows
            return Swapped(_overwritten(session, before, rows, position, context.limits))
    changelog = _computed(session, diff(wide, rows, key, ignore=ignore), clock)
    if added and (is_here(session) or not takes_spark(target.uri)):
        before, added = add_columns(before, rows.schema), {}
    if not added:
        fitting = replace(target, key=key, before=before)
        return Swapped(write(session, context, fitting, changelog, position, clock))
    with clock.phase("commit"):
        return Swapped(_widened(session, before, changelog, key, position, context.limits))


def _computed(session: SparkSession, changelog: DataFrame, clock: Clock) -> DataFrame:
    """Compute a changelog that this process computes: what it can't is left to Spark only here."""
    with clock.phase("compute"):
        return as_rows(session, settled(session, BatchResult(changelog)).changelog)


def _overwritten(
    session: SparkSession, before: Head, rows: DataFrame, position: Position, limits: Limits
) -> Committed:
    """Replace the table whole, by the permitted committer."""
    if is_here(session) or not takes_spark(before.uri):
        held = to_arrow(rows)  # may be left to Spark, so nothing is rewritten before
        return overwrite_arrow(unmarked(before, limits), held, position)
    return SparkCommit(session, unmarked(before, limits), position).overwrite(rows)


def _widened(
    session: SparkSession,
    before: Head,
    changelog: DataFrame,
    key: Sequence[str],
    position: Position,
    limits: Limits,
) -> Committed:
    """Commit a changelog with columns that the table lacks."""
    cached = changelog.persist()
    try:
        counts = changelog_counts(cached)
        by_spark = SparkCommit(session, before, position, key, limits)
        return by_spark.changelog(cached, counts, has_new_columns=True)
    finally:
        cached.unpersist()
