"""Upkeep of a table's files: merge many small ones, and sort rows for reads.

No row changes. Upkeep commits repeat the table's position, so the next batch begins where it would
have begun. Their files are marked as unchanged data, so the feed does not show them. If a batch
commits in between, either the upkeep waits for the next time, or both are committed and the batch's
position is valid.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from deltalake.exceptions import DeltaError
from pyspark.sql import DataFrame, SparkSession

from sluice.changes import Direction
from sluice.delta.log.opened import open_version
from sluice.delta.log.position import Head, Position
from sluice.delta.places.delta_rs import open_table
from sluice.delta.places.failpoint import passing
from sluice.delta.writing.filing import Slice, arrange_in_files, files_for, slices_of
from sluice.delta.writing.merge import SparkCommit
from sluice.delta.writing.own_commits import unfenced_properties
from sluice.delta.writing.statistics import writer_properties
from sluice.errors import LostRace
from sluice.limits import Limits

UPKEEP_RUN = ""  # upkeep belongs to no run


@dataclass(frozen=True)
class Filing:
    """A table at its head, the order of its rows, and the column of its slices."""

    before: Head
    limits: Limits
    order: Sequence[Direction] = ()
    partition: str | None = None

    @property
    def slices(self) -> list[Slice]:
        """Slices of the table, the oldest first."""
        return slices_of(open_version(self.before.uri, self.before.version))

    def refile(self, session: SparkSession, slices: Sequence[Slice], kind: str) -> int:
        """Rewrite these slices in order, with Spark; return their number of files."""
        numbers = ", ".join(str(s.number) for s in slices)
        where = f"`{self.partition}` IN ({numbers})" if self.partition else None
        files = files_for(sum(s.row_count for s in slices), self.limits)
        partitions = [self.partition] if self.partition else []

        def in_order(rows: DataFrame) -> DataFrame:
            return arrange_in_files(rows, self.order, partitions, files)

        try:
            position = upkeep(self.before, kind)
            by_spark = SparkCommit(session, self.before, position, limits=self.limits)
            by_spark.rewrite(in_order, where)
        except LostRace:
            return 0
        return sum(len(s.paths) for s in slices)

    def compact(self, slices: Sequence[Slice], kind: str) -> int:
        """Merge the files of these slices unsorted, without Spark; return their number."""
        table = open_table(self.before.uri, version=self.before.version)
        chosen = [(self.partition, "in", [str(s.number) for s in slices])] if self.partition else []
        position = upkeep(self.before, kind)
        passing("committing", self.before.uri)
        try:
            done = table.optimize.compact(
                partition_filters=chosen or None,
                writer_properties=writer_properties(pa.schema(table.schema().to_arrow())),
                commit_properties=unfenced_properties(position),
            )
        except DeltaError:
            return 0
        passing("committed", self.before.uri)
        return int(done["numFilesRemoved"])


def upkeep(before: Head, kind: str) -> Position:
    """Return the table's position for an upkeep commit, which changes no row."""
    assert before.position is not None, "only tables with a position are maintained"
    mine = replace(before.position, kind=kind, attempt=uuid.uuid4().hex, run=UPKEEP_RUN)
    return replace(mine, after=before.version).without_change(before.data_version)
