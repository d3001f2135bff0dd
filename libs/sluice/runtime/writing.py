"""From a changelog to a commit: creating the table at its first batch, choosing the committer.

A small changelog is brought to this process once and committed by delta-rs; a large one stays in
Spark. Which it will be is known beforehand from the size of what there is to read, or by counting.
"""

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from sluice.changelog.diff import CHANGE
from sluice.runtime.report import Clock
from sluice.specs.settings import SparkSettings
from sluice.storage import commit
from sluice.storage.commit import Committed
from sluice.storage.feed_size import FeedSize
from sluice.storage.position import Head, Position
from sluice.storage.table import create

SMALL_BYTES = 8_000_000


@dataclass(frozen=True)
class Target:
    """The table to commit to: its head as it was planned from, and the size of what was read."""

    uri: str
    key: tuple[str, ...]
    before: Head | None
    size: FeedSize
    partition_by: tuple[str, ...] = ()

    def is_small(self, settings: SparkSettings) -> bool:
        """Whether the changelog surely fits this process: as many rows as were read, or so."""
        if self.size.rows is not None:
            return self.size.rows <= settings.small_changelog
        return self.size.bytes <= SMALL_BYTES


def write(
    session: SparkSession,
    settings: SparkSettings,
    target: Target,
    changelog: DataFrame,
    position: Position,
    clock: Clock,
) -> Committed:
    """Commit the changelog, or only the position if it is empty. Raises LostRace."""
    before = target.before or _create(target, changelog, position)
    if target.is_small(settings):
        with clock.phase("compute"):
            rows = changelog.toArrow()
        with clock.phase("commit"):
            if rows.num_rows == 0:
                return commit.commit_position(before, position)
            if settings.commit != "spark":
                return commit.commit_arrow(before, rows, target.key, position)
            frame = session.createDataFrame(rows, changelog.schema)
            return _counted(session, settings, before, frame, target.key, position)
    cached = changelog.persist()
    try:
        with clock.phase("commit"):
            return _counted(session, settings, before, cached, target.key, position)
    finally:
        cached.unpersist()


def _counted(
    session: SparkSession,
    settings: SparkSettings,
    before: Head,
    rows: DataFrame,
    key: tuple[str, ...],
    position: Position,
) -> Committed:
    counts = commit.changelog_counts(rows)
    total = sum(counts.values())
    if total == 0:
        return commit.commit_position(before, position)
    if settings.commit != "spark" and total <= settings.small_changelog:
        return commit.commit_arrow(before, rows.toArrow(), key, position)
    return commit.commit_spark(session, before, rows, counts, key, position)


def _create(target: Target, changelog: DataFrame, position: Position) -> Head:
    empty = replace(position, batch=0, kind="create", inputs={}, references={}, frontier={})
    schema = changelog.drop(CHANGE).schema
    return create(target.uri, schema, empty, partition_by=target.partition_by)
