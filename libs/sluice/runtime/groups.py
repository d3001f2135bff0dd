"""The touched groups of a cogroup's state, before and after: few as Arrow, many in Spark.

Either can say which groups are broken, take them mended, and be read as the state's changelog.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changelog.diff import CHANGE
from sluice.operators.cogroup_change import BROKEN
from sluice.runtime.computed import Changelog
from sluice.storage.local import plain, to_arrow


@dataclass(frozen=True)
class Broken:
    """Groups to recompute, and the streams of which they lack something.

    `table`: the same rows, where they are in this process.
    """

    count: int
    streams: frozenset[str]
    rows: DataFrame
    table: pa.Table | None = None


class Groups(Protocol):
    """What `operators.cogroup_change` has told."""

    @property
    def changed(self) -> DataFrame:
        """The groups that have changed."""

    def broken(self) -> Broken | None:
        """The broken ones, None if there are none."""

    def mended(self, others: DataFrame) -> "Groups":
        """With `others` in place of the broken ones."""

    def of_state(self, stored: Sequence[str]) -> Changelog:
        """The changelog of the state."""


@dataclass(frozen=True)
class LocalGroups:
    """Held in this process: a small batch. `frame`: the rows as Spark computes them, for types."""

    session: SparkSession
    table: pa.Table
    frame: DataFrame

    @classmethod
    def of(cls, session: SparkSession, frame: DataFrame) -> "LocalGroups":
        """The rows of `frame`, computed."""
        return cls(session, to_arrow(frame), frame)

    @property
    def changed(self) -> DataFrame:
        return self._given(self.table.filter(pc.is_valid(self.table[CHANGE])))

    def broken(self) -> Broken | None:
        rows = self.table.filter(self._is_broken())
        if not rows.num_rows:
            return None
        streams = frozenset(pc.list_flatten(rows[BROKEN]).to_pylist())
        return Broken(rows.num_rows, streams, self._given(rows), rows)

    def mended(self, others: DataFrame) -> "LocalGroups":
        rest = self.table.filter(pc.invert(self._is_broken()))
        return LocalGroups(
            self.session, pa.concat_tables([rest, to_arrow(others).cast(rest.schema)]), self.frame
        )

    def of_state(self, stored: Sequence[str]) -> Changelog:
        return self.table.filter(pc.is_valid(self.table[CHANGE])).select([*stored, CHANGE])

    def _is_broken(self) -> pa.ChunkedArray:
        return pc.greater(pc.list_value_length(self.table[BROKEN]), 0)

    def _given(self, rows: pa.Table) -> DataFrame:
        return self.session.createDataFrame(plain(rows), self.frame.schema).coalesce(1)


@dataclass(frozen=True)
class SparkGroups:
    """Held by Spark, cached: a large batch."""

    rows: DataFrame

    @property
    def changed(self) -> DataFrame:
        return self.rows.where(F.col(CHANGE).isNotNull())

    def broken(self) -> Broken | None:
        rows = self.rows.where(F.size(BROKEN) > 0)
        found = rows.agg(
            F.count(F.lit(1)), F.array_distinct(F.flatten(F.collect_set(BROKEN)))
        ).collect()[0]
        return Broken(found[0], frozenset(found[1]), rows) if found[0] else None

    def mended(self, others: DataFrame) -> "SparkGroups":
        return SparkGroups(self.rows.where(F.size(BROKEN) == 0).unionByName(others))

    def of_state(self, stored: Sequence[str]) -> Changelog:
        return self.changed.select(*[f"`{c}`" for c in stored], CHANGE)
