"""The moves of a top-k's rows, as `operators.topk_change` tells them: few as Arrow, many in Spark.

Either can say which groups are short, take the moves of the filled groups in their place, and be
read as the changelog of the state and as that of the view.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changelog.diff import CHANGE
from sluice.operators.operator import names
from sluice.operators.topk import TopKView
from sluice.operators.topk_change import FELL, SHORT, SHOWN_CHANGE
from sluice.runtime.computed import Changelog


@dataclass(frozen=True)
class Short:
    """The groups that have to be filled from the input."""

    count: int
    groups: DataFrame


class Moves(Protocol):
    """What happens to the rows of touched groups."""

    @property
    def has_fallen(self) -> bool:
        """Whether a kept row went, or moved away from the top."""

    def short(self, group: Sequence[str]) -> Short | None:
        """The short groups, None if there are none."""

    def filled(self, others: DataFrame) -> "Moves":
        """With `others` in place of the moves of short groups."""

    def of_state(self, stored: Sequence[str]) -> Changelog:
        """The changelog of the state."""

    def of_view(self, view: TopKView) -> Changelog:
        """The changelog of the view."""


@dataclass(frozen=True)
class LocalMoves:
    """Held in this process: a batch of which little remains."""

    session: SparkSession
    rows: pa.Table

    @property
    def has_fallen(self) -> bool:
        return bool(pc.any(self.rows[FELL]).as_py())

    def short(self, group: Sequence[str]) -> Short | None:
        rows = self.rows.filter(self.rows[SHORT]).select(list(group) or [SHORT])
        found = rows.group_by(rows.column_names).aggregate([])
        if not found.num_rows:
            return None
        return Short(found.num_rows, self.session.createDataFrame(found))

    def filled(self, others: DataFrame) -> "LocalMoves":
        rest = self.rows.filter(pc.invert(self.rows[SHORT]))
        both = [_nullable(rows) for rows in (rest, others.toArrow())]
        return LocalMoves(self.session, pa.concat_tables(both))

    def of_state(self, stored: Sequence[str]) -> Changelog:
        changed = self.rows.filter(pc.is_valid(self.rows[CHANGE]))
        return changed.select([*stored, CHANGE])

    def of_view(self, view: TopKView) -> Changelog:
        seen = self.rows.filter(pc.is_valid(self.rows[SHOWN_CHANGE]))
        columns = {name: seen[place] for name, place in view.places.items()}
        return pa.table({**columns, CHANGE: seen[SHOWN_CHANGE]})


def _nullable(rows: pa.Table) -> pa.Table:
    return rows.cast(pa.schema([field.with_nullable(True) for field in rows.schema]))


@dataclass(frozen=True)
class SparkMoves:
    """Held by Spark, cached: a batch of which much remains."""

    rows: DataFrame

    @property
    def has_fallen(self) -> bool:
        return not self.rows.where(FELL).isEmpty()

    def short(self, group: Sequence[str]) -> Short | None:
        found = self.rows.where(SHORT).select(*names(tuple(group) or (SHORT,))).distinct()
        count = found.count()
        return Short(count, found) if count else None

    def filled(self, others: DataFrame) -> "SparkMoves":
        return SparkMoves(self.rows.where(~F.col(SHORT)).unionByName(others))

    def of_state(self, stored: Sequence[str]) -> Changelog:
        changed = self.rows.where(F.col(CHANGE).isNotNull())
        return changed.select(*names((*stored, CHANGE)))

    def of_view(self, view: TopKView) -> Changelog:
        seen = self.rows.where(F.col(SHOWN_CHANGE).isNotNull())
        columns = [F.col(place).alias(name) for name, place in view.places.items()]
        return seen.select(*columns, F.col(SHOWN_CHANGE).alias(CHANGE))
