"""Upkeep of a table that batches commit to: its slices of files, and those to file again.

A table with a key is filed by it once it has many files. A kind whose rows are in its own slices
has its own class.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from sluice.changes import Direction
from sluice.declare.stores import takes_spark
from sluice.delta.log.position import head_as_found
from sluice.delta.upkeep.maintenance import Filing
from sluice.delta.upkeep.rewriting import may_merge, merge
from sluice.delta.writing.filing import Slice, is_in_order
from sluice.engine.batch_plan import Context
from sluice.engine.operator import Maintained
from sluice.language.names import ID, INTERVAL
from sluice.limits import Limits
from sluice.spark.session import Spark


@dataclass(frozen=True)
class Kept:
    """One table. `order`: that of its files; none without a key.

    `node`: the node whose batches maintain it, if any. `loose_files`: number of files, beyond those
    its rows fill, at which a table without slices is filed again. `tidied_rows`: slices of up to so
    many rows are merged after a batch that has filled them, not by the next upkeep.
    """

    loose_files: ClassVar[int] = 32
    tidied_rows: ClassVar[int] = 0

    table: str
    uri: str
    limits: Limits
    order: tuple[Direction, ...] = ()
    node: Maintained | None = None

    @classmethod
    def of(cls, context: Context, node: Maintained) -> Self:
        """Return the table of a node."""
        uri, order = context.lake.uri(node.id), _visible_order(node.operator.file_order)
        return cls(node.id, uri, context.limits, order, node)

    @property
    def partition(self) -> str | None:
        """The column of its slices."""
        return self.node.partition_by[0] if self.node and self.node.partition_by else None

    @property
    def filing(self) -> Filing | None:
        """The table at its head; None if it is missing or foreign commits changed its rows.

        None also for a table whose build was cut: an upkeep commit would make it count as filled.
        """
        before = head_as_found(self.uri)
        if before is None or before.position is None or not before.is_filled:
            return None
        return Filing(before, self.limits, self.order, self.partition)

    def find_crowded(self, filing: Filing) -> list[Slice]:
        """Return slices with too many files or marked rows, or that a batch left unordered."""
        return [s for s in filing.slices if self._is_crowded(s)]

    def find_unsealed(self, filing: Filing) -> list[Slice]:
        """Return slices that get no more rows and are not yet few, sorted files."""
        return []

    def _is_crowded(self, slice_: Slice) -> bool:
        most = slice_.usual_files(self.limits) + self.loose_files
        lumps = slice_.lumps(self.limits) if self.order else []
        is_unordered = bool(lumps) and not (
            slice_.may_be_in_order(self.limits)
            and is_in_order(self.uri, lumps, self.order[0].column)
        )
        is_worn = slice_.is_worn or slice_.has_worn_file(self.limits)
        return len(slice_.paths) >= most or is_worn or is_unordered


def kept_by_key(context: Context, table_id: str, key: Sequence[str] = ()) -> Kept:
    """Return a table that no batch maintains."""
    uri, order = context.lake.uri(table_id), _visible_order(tuple(map(Direction, key)))
    return Kept(table_id, uri, context.limits, order)


def tidy(spark: Spark, kept: Kept) -> None:
    """File crowded slices again after a batch, if they can't wait for upkeep."""
    if kept.tidied_rows and (filing := kept.filing):
        refile(filing, spark, kept.find_crowded(filing), "compact", unordered=kept.tidied_rows)


def refile(
    filing: Filing,
    spark: Spark,
    slices: Sequence[Slice],
    kind: str,
    *,
    unordered: int | None = None,
) -> int:
    """File slices again, and return the number of files.

    On a disk this process does it in pieces. Spark files other tables, and slices too large for
    pieces, if they have enough rows for their order to matter: more than `unordered`. If Spark may
    not commit, or is not installed, files are only merged.
    """
    done = 0
    if slices and may_merge(filing):
        done, slices = merge(filing, slices, kind)
    most = Slice.unordered_rows if unordered is None else unordered
    may_order = bool(filing.order) and takes_spark(filing.before.uri) and spark.is_there
    large = [s for s in slices if may_order and s.row_count > most]
    if small := [s for s in slices if s not in large]:
        done += _at_head(filing).compact(small, kind)
    for slice_ in large:
        done += _at_head(filing).refile(spark.tune(small=False), [slice_], kind)
    return done


def _at_head(filing: Filing) -> Filing:
    """Return the table after the commits that upkeep has just made."""
    now = head_as_found(filing.before.uri)
    return replace(filing, before=now) if now and now.position else filing


def _visible_order(order: tuple[Direction, ...]) -> tuple[Direction, ...]:
    """Return the order; none if only hidden columns identify a row."""
    return order if any(d.column not in (INTERVAL, ID) for d in order) else ()
