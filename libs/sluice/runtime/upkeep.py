"""A Delta table that is looked after: its slices, and those that are to be filed again.

A table with a key is filed by it when many files have come. A kind whose rows lie in slices of
their own, or expire, says so by a class of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from sluice.limits import Limits
from sluice.operators.order import Direction
from sluice.runtime.context import Context
from sluice.runtime.node import Node
from sluice.runtime.session import Spark
from sluice.storage.filing import Slice, files_for
from sluice.storage.maintenance import Filing
from sluice.storage.position import head_as_found


@dataclass(frozen=True)
class Kept:
    """One table. `order` is that of its files, none without a key.

    `node`: what batches maintain it by, if they do. `is_tidied`: slices that have gathered many
    files are filed again after a batch, not by the next upkeep.
    """

    is_tidied: ClassVar[bool] = False

    table: str
    uri: str
    limits: Limits
    order: tuple[Direction, ...] = ()
    node: Node | None = None

    @classmethod
    def of(cls, context: Context, node: Node) -> Self:
        """The table of a node."""
        uri, order = context.lake.uri(node.id), _shown(node.operator.file_order)
        return cls(node.id, uri, context.limits, order, node)

    @property
    def partition(self) -> str | None:
        """The column of its slices."""
        return self.node.partition_by[0] if self.node and self.node.partition_by else None

    @property
    def filing(self) -> Filing | None:
        """The table at its head; None where there is none, or foreign commits changed its rows."""
        before = head_as_found(self.uri)
        if before is None or before.position is None:
            return None
        return Filing(before, self.limits, self.order, self.partition)

    def crowded(self, filing: Filing) -> list[Slice]:
        """The slices that have too many files, or whose rows a batch has put together unordered."""
        return [s for s in filing.slices if self._is_crowded(s)]

    def unsealed(self, filing: Filing) -> list[Slice]:
        """The slices that get no more rows and are not sorted files, or few."""
        return []

    def expire(self, filing: Filing) -> int:
        """Drop what a retention hides; how many files that were."""
        return 0

    def _is_crowded(self, slice_: Slice) -> bool:
        most = files_for(slice_.row_count, self.limits) + self.limits.loose_files
        return len(slice_.paths) >= most or (bool(self.order) and slice_.is_lumped(self.limits))


def keyed(context: Context, table_id: str, key: Sequence[str] = ()) -> Kept:
    """A table that no batch maintains."""
    uri, order = context.lake.uri(table_id), _shown(tuple(map(Direction, key)))
    return Kept(table_id, uri, context.limits, order)


def tidy(spark: Spark, context: Context, node: Node) -> None:
    """File crowded slices again after a batch, where that can't wait for upkeep."""
    if node.kept.is_tidied:
        kept = node.kept.of(context, node)
        if filing := kept.filing:
            refile(filing, spark, kept.crowded(filing), "compact")


def refile(filing: Filing, spark: Spark, slices: Sequence[Slice], kind: str) -> int:
    """By Spark where there are enough rows for their order to matter; how many files."""
    large = [s for s in slices if filing.order and not s.is_small(filing.limits)]
    small = [s for s in slices if s not in large]
    done = filing.compact(small, kind) if small else 0
    if large and done and (after := head_as_found(filing.before.uri)):
        filing = replace(filing, before=after)
    return done + (filing.refile(spark.tune(small=False), large, kind) if large else 0)


def _shown(order: tuple[Direction, ...]) -> tuple[Direction, ...]:
    """No order where only hidden identities name a row."""
    return order if any(not d.column.startswith("_sluice_i") for d in order) else ()
