"""Commit of a changelog: creates the table at its first batch, and chooses the committer.

A small changelog is collected once and committed by delta-rs; a large one stays in Spark. The
choice is made beforehand by the size of the data to read, or by counting.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluice.changes.diff import CHANGE
from sluice.declare.stores import takes_spark
from sluice.delta.log.feed_size import FeedSize, table_size
from sluice.delta.log.position import Head, Position
from sluice.delta.reading.local import to_arrow
from sluice.delta.reading.spark_reads import create
from sluice.delta.writing import commit
from sluice.delta.writing.by_spark import SparkCommit, changelog_counts
from sluice.delta.writing.fence import Committed
from sluice.engine.batch_report import Clock
from sluice.engine.computing.batch_result import ChangelogRows, as_rows
from sluice.engine.context import Context
from sluice.interpreter.presence import is_here


@dataclass(frozen=True)
class Target:
    """Table to commit to: its head when planned, and the size of the data read.

    `keeps_position`: what was read is recorded even if it alters no row. `is_filed`: the changelog
    is all rows of a new, large table, in the order of its files. `replaces`: the head of a table
    that nobody has read, whose columns may differ; `before` is None then. `whole`: bytes of all
    inputs.
    """

    uri: str
    key: tuple[str, ...]
    before: Head | None
    size: FeedSize
    partition_by: tuple[str, ...] = ()
    keeps_position: bool = True
    is_filed: bool = False
    replaces: Head | None = None
    whole: int | None = None

    def is_small(self, context: Context) -> bool:
        """True if the changelog surely fits this process: about as many rows as were read.

        If Spark may not commit, it is always collected.
        """
        if not takes_spark(self.uri):
            return True
        if self.size.rows is not None:
            is_narrow = self.size.bytes <= context.limits.counted_changelog_bytes
            return is_narrow and self.size.rows <= context.settings.small_changelog
        return self.size.bytes <= context.limits.uncounted_changelog_bytes


def write(
    session: SparkSession,
    context: Context,
    target: Target,
    changelog: ChangelogRows,
    position: Position,
    clock: Clock,
    *,
    inserts: int | None = None,
    is_projection: bool = False,
) -> Committed:
    """Commit the changelog; if it is empty, only the position or nothing. Raises LostRace.

    `inserts`: its number of rows, if known and all are new. `is_projection`: each of its rows comes
    from one row, so computing it twice costs less than caching it.
    """
    position = replace(
        position, cost=clock.spent(position.attempt, target.size.bytes, target.whole)
    )
    if target.replaces:
        with clock.phase("commit"):
            return _replace(session, target, target.replaces, changelog, position)
    if isinstance(changelog, pa.Table):
        with clock.phase("commit"):
            return _local(session, context, target, changelog, position)
    if target.is_small(context):
        with clock.phase("compute"):
            rows = to_arrow(changelog)  # may be left to Spark, so no table is created before
        before = target.before or _create(target, changelog, position)
        with clock.phase("commit"):
            return _local(session, context, replace(target, before=before), rows, position)
    before = target.before or _create(target, changelog, position)
    target = replace(target, before=before)
    if target.is_filed:
        with clock.phase("commit"):
            return SparkCommit(session, before, position).first(changelog)
    if is_projection or inserts is not None:
        with clock.phase("commit"):
            return _counted(session, context, target, changelog, position, inserts)
    cached = changelog.persist()
    try:
        with clock.phase("commit"):
            return _counted(session, context, target, cached, position)
    finally:
        cached.unpersist()


def _replace(
    session: SparkSession,
    target: Target,
    replaced: Head,
    changelog: ChangelogRows,
    position: Position,
) -> Committed:
    """Commit the first rows of a table together with its new columns."""
    if is_here(session) or not takes_spark(target.uri):
        held = changelog if isinstance(changelog, pa.Table) else to_arrow(changelog)
        first = held.drop_columns([CHANGE])
        return commit.overwrite_arrow(replaced, first, position, target.partition_by)
    rows = as_rows(session, changelog)
    by_spark = SparkCommit(session, replaced, position)
    return by_spark.overwrite(rows.drop(CHANGE), target.partition_by)


def _local(
    session: SparkSession,
    context: Context,
    target: Target,
    rows: pa.Table,
    position: Position,
) -> Committed:
    """Commit rows held in this process, to an existing table."""
    assert target.before is not None
    if rows.num_rows == 0:
        return _unchanged(target, target.before, position)
    if context.settings.commit != "spark":
        return commit.commit_arrow(target.before, rows, target.key, position, context.limits)
    return SparkCommit(session, target.before, position, target.key, context.limits).arrow(rows)


def _counted(
    session: SparkSession,
    context: Context,
    target: Target,
    rows: DataFrame,
    position: Position,
    inserts: int | None = None,
) -> Committed:
    before = target.before
    assert before is not None
    counts = changelog_counts(rows) if inserts is None else {"insert": inserts}
    total = sum(counts.values())
    if total == 0:
        return _unchanged(target, before, position)
    if context.settings.commit != "spark" and _is_small(context, rows, total):
        return commit.commit_arrow(before, to_arrow(rows), target.key, position, context.limits)
    by_spark = SparkCommit(session, before, position, target.key, context.limits)
    if _leaves_nothing(context, before, counts):
        return by_spark.replace(rows, counts)
    return by_spark.changelog(rows, counts)


def _is_small(context: Context, rows: DataFrame, total: int) -> bool:
    """True if that many rows fit this process, by the width of the first ones."""
    limits, most = context.limits, context.settings.small_changelog
    if not limits.sampled_changelog_rows < total <= most:
        return total <= most
    some = to_arrow(rows.limit(limits.sampled_changelog_rows))
    return bool(total * some.nbytes <= limits.held_changelog_bytes * some.num_rows)


def _leaves_nothing(context: Context, before: Head, counts: Mapping[str, int]) -> bool:
    """True if every row of a large table is replaced."""
    altered = counts.get("update", 0) + counts.get("delete", 0)
    is_large = altered > context.settings.small_changelog
    return is_large and altered == table_size(before.uri, before.version).rows


def _unchanged(target: Target, before: Head, position: Position) -> Committed:
    if target.keeps_position or not before.is_filled:
        return commit.commit_position(before, position)
    return Committed(before.version)


def _create(target: Target, changelog: DataFrame, position: Position) -> Head:
    empty = replace(
        position, batch=0, kind="create", inputs={}, references={}, frontier={}, topic={}, cost={}
    )
    schema = changelog.drop(CHANGE).schema
    return create(target.uri, schema, empty, partition_by=target.partition_by)
