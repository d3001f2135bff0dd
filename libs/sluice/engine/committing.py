"""Commit of a batch: a changelog is applied to the table, or all of its rows are replaced.

A changelog creates the table at its first batch. A small one is collected once and committed by
delta-rs; a large one stays in Spark. The choice is made beforehand by the size of the data to read,
or by counting.

Recomputed rows replace a table's rows in one commit. The change feed gets only the difference, even
if columns are added. Delta can't read a feed across a removed column, a changed type, or a key
column that the table lacked. The table is then replaced whole, and the readers of its feed must be
rebuilt as well.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changes import CHANGE, diff
from sluice.declare.stores import takes_spark
from sluice.delta.log.files import FeedSize, table_size
from sluice.delta.log.position import Head, Position
from sluice.delta.reading.local import column_types, to_arrow
from sluice.delta.reading.spark_reads import snapshot
from sluice.delta.upkeep.rewriting import rewrite_marked
from sluice.delta.writing.commit import (
    add_columns,
    commit_arrow,
    commit_position,
    create,
    overwrite_arrow,
    should_mark,
)
from sluice.delta.writing.merge import SparkCommit, changelog_counts
from sluice.delta.writing.own_commits import Committed, count_changes
from sluice.engine.batch_plan import BatchResult, ChangelogRows, Context, as_rows, settle
from sluice.engine.operator import is_unique
from sluice.interpreter import UnsupportedLocally, drop_rows, is_here
from sluice.limits import Limits
from sluice.meter import Clock

SAMPLED_ROWS = 10_000  # small at any width; as many show the width of more


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
            is_narrow = self.size.bytes <= context.limits.collected_bytes
            return is_narrow and self.size.rows <= context.settings.small_changelog
        return self.size.bytes <= context.limits.few_tasks_bytes


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
    if is_here(session) or target.is_small(context):
        with clock.phase("compute"):
            rows = to_arrow(changelog)  # may be left to Spark, so no table is created before
            drop_rows(session)
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
            return _commit_counted(session, context, target, changelog, position, inserts)
    cached = changelog.persist()
    try:
        with clock.phase("commit"):
            return _commit_counted(session, context, target, cached, position)
    finally:
        cached.unpersist()


def _replace(
    session: SparkSession,
    target: Target,
    replaced: Head,
    changelog: ChangelogRows,
    position: Position,
) -> Committed:
    if is_here(session) or not takes_spark(target.uri):
        held = changelog if isinstance(changelog, pa.Table) else to_arrow(changelog)
        first = held.drop_columns([CHANGE])
        return overwrite_arrow(replaced, first, position, target.partition_by)
    rows = as_rows(session, changelog)
    by_spark = SparkCommit(session, replaced, position)
    return by_spark.overwrite(rows.drop(CHANGE), target.partition_by)


def _local(
    session: SparkSession, context: Context, target: Target, rows: pa.Table, position: Position
) -> Committed:
    """Commit rows held in this process, to an existing table."""
    assert target.before is not None
    if rows.num_rows == 0:
        return _keep_version(target, target.before, position)
    altered = rows.num_rows - count_changes(rows[CHANGE])["insert"]
    may_leave = is_here(session) and takes_spark(target.uri)
    is_large = altered > context.settings.small_changelog
    if may_leave and is_large and not should_mark(target.before, rows, target.key, context.limits):
        raise UnsupportedLocally(f"{altered:,} changed rows, which are merged")
    if context.settings.commit != "spark":
        return commit_arrow(target.before, rows, target.key, position, context.limits)
    return SparkCommit(session, target.before, position, target.key, context.limits).arrow(rows)


def _commit_counted(
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
        return _keep_version(target, before, position)
    if context.settings.commit != "spark" and _is_small(context, rows, total):
        return commit_arrow(before, to_arrow(rows), target.key, position, context.limits)
    by_spark = SparkCommit(session, before, position, target.key, context.limits)
    altered = counts.get("update", 0) + counts.get("delete", 0)
    is_large = altered > context.settings.small_changelog
    if is_large and altered == table_size(before.uri, before.version).rows:  # no row stays
        return by_spark.replace(rows, counts)
    return by_spark.changelog(rows, counts)


def _is_small(context: Context, rows: DataFrame, total: int) -> bool:
    """True if that many rows fit this process, by the width of the first ones."""
    limits, most = context.limits, context.settings.small_changelog
    if not SAMPLED_ROWS < total <= most:
        return total <= most
    some = to_arrow(rows.limit(SAMPLED_ROWS))
    return bool(total * some.nbytes <= limits.held_bytes * some.num_rows)


def _keep_version(target: Target, before: Head, position: Position) -> Committed:
    if target.keeps_position or not before.is_filled:
        return commit_position(before, position)
    return Committed(before.version)


def _create(target: Target, changelog: DataFrame, position: Position) -> Head:
    empty = replace(
        position, batch=0, kind="create", inputs={}, references={}, frontier={}, topic={}, cost={}
    )
    schema = changelog.drop(CHANGE).schema
    return create(target.uri, schema, empty, partition_by=target.partition_by)


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
        changelog = _compute(session, rows.withColumn(CHANGE, F.lit("insert")), clock)
        return Swapped(write(session, context, target, changelog, position, clock))
    old = snapshot(session, target.uri, before.version, context.limits)
    had, has = column_types(old), column_types(rows)
    is_wider = all(has.get(name) == type_ for name, type_ in had.items())
    if not is_wider or not set(target.key) <= had.keys():
        with clock.phase("commit"):
            done = _overwrite(session, before, rows, position, context.limits)
            return Swapped(done, ends_feed=True)
    added = {name: type_ for name, type_ in has.items() if name not in had}
    wide = old.select("*", *[F.lit(None).cast(type_).alias(n) for n, type_ in added.items()])
    key = target.key if is_unique(wide, target.key) else tuple(had)
    if key != target.key and not is_unique(wide, key):
        with clock.phase("commit"):  # no MERGE could delete only one of two equal rows
            return Swapped(_overwrite(session, before, rows, position, context.limits))
    changelog = _compute(session, diff(wide, rows, key, ignore=ignore), clock)
    if added and (is_here(session) or not takes_spark(target.uri)):
        before, added = add_columns(before, rows.schema), {}
    if not added:
        fitting = replace(target, key=key, before=before)
        return Swapped(write(session, context, fitting, changelog, position, clock))
    with clock.phase("commit"):
        return Swapped(_widen(session, before, changelog, key, position, context.limits))


def _compute(session: SparkSession, changelog: DataFrame, clock: Clock) -> DataFrame:
    """Compute a changelog that this process computes: what it can't is left to Spark only here."""
    with clock.phase("compute"):
        return as_rows(session, settle(session, BatchResult(changelog)).changelog)


def _overwrite(
    session: SparkSession, before: Head, rows: DataFrame, position: Position, limits: Limits
) -> Committed:
    """Replace the table whole, by the permitted committer."""
    if is_here(session) or not takes_spark(before.uri):
        held = to_arrow(rows)  # may be left to Spark, so nothing is rewritten before
        return overwrite_arrow(rewrite_marked(before, limits), held, position)
    return SparkCommit(session, rewrite_marked(before, limits), position).overwrite(rows)


def _widen(
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
