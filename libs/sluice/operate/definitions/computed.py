"""Rows that an environment has computed already, for a promotion that would compute the same.

A table's rows follow from its definition and its inputs' rows. If both agree with those of the
lake, the environment's rows are the result, and a promotion compares them instead of computing
them. Whatever is uncertain is computed. Rows that expire depend on earlier batches, too, so tables
with retention are computed.
"""

from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from sluice.declare.project import Project
from sluice.delta.log.continuity import is_past
from sluice.delta.log.feed_size import FeedSize, table_size
from sluice.delta.log.position import Head, Pin, head_as_found
from sluice.delta.places.lake_layout import LakeLayout, layout
from sluice.delta.reading.spark_reads import snapshot
from sluice.engine.computing.batch_plan import BatchPlan
from sluice.limits import Limits


@dataclass(frozen=True)
class ComputedRows:
    """A table of an environment whose rows are those that the lake's table should have."""

    at: Head

    @property
    def size(self) -> FeedSize:
        """The size of the table."""
        return table_size(self.at.uri, self.at.version)

    def rows(self, session: SparkSession, limits: Limits) -> DataFrame:
        """Return the rows."""
        return snapshot(session, self.at.uri, self.at.version, limits)


@dataclass(frozen=True)
class Computed:
    """An environment's tables, and those that the lake has taken over from it in this promotion."""

    env: Project
    _taken: dict[str, tuple[Head, Pin]] = field(default_factory=dict)

    def find(self, plan: BatchPlan, lake: LakeLayout) -> ComputedRows | None:
        """Return the rows that a planned rebuild would compute; None if that is not certain."""
        there, node = head_as_found(layout(self.env).uri(plan.node.id)), plan.node
        position = there.position if there and there.is_filled else None
        if there is None or position is None or node.operator.retention or plan.waiting_for:
            return None
        if plan.before and plan.before.pin.attempt == position.attempt:
            return None  # the lake has that very commit
        read = {**position.inputs, **position.references}
        if position.definition != node.definition or read.keys() != plan.looked_up.keys():
            return None
        if all(self._is_same(lake, i, read[i], pin) for i, pin in plan.looked_up.items()):
            return ComputedRows(there)
        return None

    def note(self, table_id: str, found: ComputedRows, lake: LakeLayout) -> None:
        """Note that the lake has taken over a table."""
        if here := head_as_found(lake.uri(table_id)):
            self._taken[table_id] = found.at, here.pin

    def _is_same(self, lake: LakeLayout, input_id: str, there: Pin, here: Pin) -> bool:
        """True if an input has certainly the same rows at both pins, by the attempts in its log."""
        at = head_as_found(lake.uri(input_id))
        if at is None or here.version < at.data_version or not there.attempt:
            return False
        if at.data_version <= there.version and is_past(at, there):
            return True
        if input_id not in self._taken:
            return False
        taken, pin = self._taken[input_id]
        is_in_it = taken.data_version <= there.version <= taken.version
        return pin == at.pin and taken.table == there.table and is_in_it
