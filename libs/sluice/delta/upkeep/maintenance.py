"""Upkeep of a table's files: merge many small ones, and put rows in the order of the reads.

No row changes. Upkeep commits carry the table's position on, so the next batch begins where it
would have begun. They mark their files as no change of data, so the feed does not show them. If a
batch commits in between, either the upkeep waits for the next time, or both land and the batch's
position holds.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties
from deltalake.exceptions import DeltaError
from pyspark.sql import DataFrame, SparkSession

from sluice.changes.order import Direction
from sluice.delta.log.conflicts import lost_race_of
from sluice.delta.log.opened import opened
from sluice.delta.log.position import Head, Position, head_of
from sluice.delta.places.failpoint import passing
from sluice.delta.places.stores import open_table
from sluice.delta.writing.by_spark import SparkCommit
from sluice.delta.writing.commit import drop_arrow
from sluice.delta.writing.filing import Slice, filed, files_for, slices_of
from sluice.delta.writing.statistics import writer_properties
from sluice.errors import LostRace
from sluice.limits import Limits

UPKEEP_RUN = ""  # upkeep belongs to no run


@dataclass(frozen=True)
class Filing:
    """A table at its head, the order in which its rows should lie, and the column of its slices."""

    before: Head
    limits: Limits
    order: Sequence[Direction] = ()
    partition: str | None = None

    @property
    def slices(self) -> list[Slice]:
        """Slices of the table, the oldest first."""
        return slices_of(opened(self.before.uri, self.before.version))

    def refile(self, session: SparkSession, slices: Sequence[Slice], kind: str) -> int:
        """Rewrite these slices in order, by Spark; return how many files they had."""
        numbers = ", ".join(str(s.number) for s in slices)
        where = f"`{self.partition}` IN ({numbers})" if self.partition else None
        files = files_for(sum(s.row_count for s in slices), self.limits)
        partitions = [self.partition] if self.partition else []

        def in_order(rows: DataFrame) -> DataFrame:
            return filed(rows, self.order, partitions, files)

        try:
            position = upkeep(self.before, kind)
            by_spark = SparkCommit(session, self.before, position, limits=self.limits)
            by_spark.rewrite(in_order, where)
        except LostRace:
            return 0
        return sum(len(s.paths) for s in slices)

    def compact(self, slices: Sequence[Slice], kind: str) -> int:
        """Merge the files of these slices as they are, without Spark; return how many."""
        table = open_table(self.before.uri, version=self.before.version)
        chosen = [(self.partition, "in", [str(s.number) for s in slices])] if self.partition else []
        position = upkeep(self.before, kind)
        passing("committing", self.before.uri)
        try:
            done = table.optimize.compact(
                partition_filters=chosen or None,
                writer_properties=writer_properties(pa.schema(table.schema().to_arrow())),
                commit_properties=unfenced(position),
            )
        except DeltaError:
            return 0
        passing("committed", self.before.uri)
        return int(done["numFilesRemoved"])

    def unmark(self, slices: Sequence[Slice]) -> Head:
        """Write the files of slices again if rows are only marked in some of them; return the head.

        Starts no Spark. Raises LostRace if another writer was first.
        """
        marked = [s for s in slices if s.gone]
        if not marked:
            return self.before
        table = open_table(self.before.uri, version=self.before.version)
        schema, parts = pa.schema(table.schema().to_arrow()), table.metadata().partition_columns
        numbers = [str(s.number) for s in marked if s.number is not None]
        here = [(name, "in", numbers) for name in parts if len(numbers) == len(marked)]
        shown = [*(d.column for d in self.order), *schema.names]
        with lost_race_of(self.before.uri, self.before.version):
            table.optimize.z_order(
                [next(name for name in shown if name not in parts)],
                partition_filters=here or None,
                writer_properties=writer_properties(schema),
                commit_properties=unfenced(upkeep(self.before, "compact")),
            )
        return head_of(open_table(self.before.uri, self.before.version + 1), self.before.uri)

    def drop(self, number: int, stored_from: datetime) -> int:
        """Delete the slices before a number, whose rows have all expired; return how many files.

        Of a file with marked rows that a commit removes, delta-rs' feed shows these rows and not
        the others. So such a file is first written again.
        """
        gone = [s for s in self.slices if s.number is not None and s.number < number]
        if not gone or self.partition is None:
            return 0
        try:
            before = self.unmark(gone)
            numbered = replace(upkeep(before, "expiry"), batch=before.next_batch)
            position = replace(numbered, unchanged_since=None, stored_from=stored_from)
            drop_arrow(before, f"{self.partition} < {number}", position)
        except LostRace:
            return 0
        return sum(len(s.paths) for s in gone)


def unmarked(before: Head, limits: Limits) -> Head:
    """Return the table's head once none of its rows are only marked, before it is overwritten.

    Of a marked file that a commit removes, delta-rs' feed shows the marked rows, not the others.
    Raises LostRace.
    """
    filing = Filing(before, limits)
    return before if before.position is None else filing.unmark(filing.slices)


def unfenced(position: Position) -> CommitProperties:
    """Return properties of a commit that changes no row: it takes no batch's number."""
    metadata: dict[str, Any] = {"userMetadata": position.to_json()}
    return CommitProperties(custom_metadata=metadata, max_commit_retries=0)


def upkeep(before: Head, kind: str) -> Position:
    """Return the table's position as carried on by an upkeep commit, which changes no row."""
    assert before.position is not None, "only tables with a position are looked after"
    mine = replace(before.position, kind=kind, attempt=uuid.uuid4().hex, run=UPKEEP_RUN)
    return replace(mine, after=before.version).without_change(before.data_version)
