"""A top-k's changelog as whole rankings, for readers that keep them elsewhere."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sluice.changes.feed_columns import COMMIT_VERSION
from sluice.kinds.topk.ranking import Ranking, Ranks
from sluice.language.row import Row
from sluice.read.changelog import Changelog


@dataclass(frozen=True)
class Full:
    """One partition of a top-k, as it was after a version that touched it."""

    version: int
    partition: dict[str, Any]
    ranks: Ranks
    ranking: Ranking

    def as_json(self, columns: Sequence[str] | None = None) -> dict[str, Any]:
        of_rows = None if columns is None else [c for c in columns if c != COMMIT_VERSION]
        top = self.ranking.only(self.ranks, of_rows)
        return {COMMIT_VERSION: self.version, "partition": self.partition, "top": top}

    def rows(self) -> Iterator[Row]:
        for row in (*self.ranking.flat(self.ranks),) or ({},):
            yield {COMMIT_VERSION: self.version, **self.partition, **row}


@dataclass(frozen=True)
class Maps:
    """Whole rankings of the partitions that each version touched, even emptied ones."""

    changelog: Changelog
    newest: Ranking
    from_version: int | None
    run: str | None

    @property
    def columns(self) -> list[str]:
        """Columns of the rows."""
        return [COMMIT_VERSION, *self.newest.columns]

    @property
    def leading(self) -> tuple[str, ...]:
        """Columns that people see first."""
        return (COMMIT_VERSION, *self.newest.leading)

    def __iter__(self) -> Iterator[Full]:
        lake, name = self.changelog.lake, self.changelog.name
        for commit in self.changelog.commits(from_version=self.from_version, run=self.run):
            then = Ranking.open(lake, name, commit.version)
            feed = self.changelog.feed(commit.version)
            for partition in _distinct(feed.select(self.newest.partition_columns)):
                ranks = next((r for _, r in then.partitions(partition)), {})
                yield Full(commit.version, partition, ranks, then)


def maps(changelog: Changelog, *, from_version: int | None, run: str | None) -> Maps:
    """Return the whole rankings that a top-k's changelog touched."""
    newest = Ranking.open(changelog.lake, changelog.name)
    return Maps(changelog, newest, from_version, run)


def _distinct(table: pa.Table) -> list[dict[str, Any]]:
    """Return the table's distinct rows; one empty row if it has no columns."""
    if not table.column_names:
        return [{}]
    unique = table.group_by(table.column_names, use_threads=False).aggregate([])
    return list(unique.to_pylist())
