"""Batch of a join: touched values of both sides, without the rows that have expired."""

from collections.abc import Sequence

from pyspark.sql import Row
from pyspark.sql import functions as F

from sluice.delta.log.feed_size import FeedSize, table_size
from sluice.delta.reading import table as delta
from sluice.delta.writing.commit import Committed
from sluice.engine.computing.batch import Batch
from sluice.engine.context import Context
from sluice.engine.planning.plan import BatchPlan, Strategy
from sluice.engine.query.operator import Rows, names
from sluice.kinds.join.operator import JoinedRows

COUNT = "_count"
NAMED = 3  # values that a report names


class JoinBatch(Batch):
    """One batch of a join."""

    @classmethod
    def remarks(cls, context: Context, plan: BatchPlan) -> tuple[str, ...]:
        """Say which files of both inputs the next batch opens."""
        if not plan.is_pending or plan.strategy == Strategy.BUILD:
            return ()
        join = plan.node.operator
        assert isinstance(join, JoinedRows)
        sizes = {i: table_size(context.lake.uri(i), pin.version) for i, pin in plan.pins.items()}
        is_large = max(size.bytes for size in sizes.values()) > context.limits.read_here_bytes
        return tuple(
            _read(i, size, join.searched(i), is_large=is_large) for i, size in sizes.items()
        )

    @property
    def rows(self) -> JoinedRows:
        """The operator."""
        operator = self.operator
        assert isinstance(operator, JoinedRows)
        return operator

    def warnings_of(self, done: Committed) -> tuple[str, ...]:
        """Name values of `on` that multiplied rows. Reads the commit's feed only if it is large."""
        most = self.context.limits.multiplied_rows
        if done.changed <= most or not self.rows.spec.shows_right:
            return ()
        span, limits = (done.version - 1, done.version), self.context.limits
        feed = delta.feed(self.session, self.plan.uri, *span, limits)
        written = feed.where("_change_type != 'update_preimage'").dropna(subset=[*self.rows.group])
        counts = written.groupBy(*names(self.rows.group)).agg(F.count(F.lit(1)).alias(COUNT))
        largest = counts.where(F.col(COUNT) > most).orderBy(F.desc(COUNT)).limit(NAMED)
        return tuple(map(self._warning, largest.collect()))

    def _warning(self, found: Row) -> str:
        pairs = zip(self.rows.shape.on_as_written, found[:-1], strict=True)
        value = " and ".join(f"{text} = {value}" for text, value in pairs)
        return (
            f"{self.plan.node.id}: {found[COUNT]:,} of the rows that this batch wrote are of one "
            f"value, {value}; each change to it joins all of its rows again"
        )

    def needed(self, snapshots: Rows) -> Rows:
        return self.rows.living(snapshots, self.horizon.now if self.horizon else None)


def _read(name: str, size: FeedSize, searched: Sequence[str], *, is_large: bool) -> str:
    """Return what is read of an input, in words."""
    whole = f"{size.bytes / 1e6:,.1f} MB in {size.files:,} file(s)"
    if not is_large:
        return f"{name} is read whole ({whole})"
    if not searched:
        return f"{name} is read whole ({whole}): its files have no statistics of what `on` compares"
    columns = " and ".join(searched)
    return f"of {name} ({whole}) the files are read whose statistics admit touched {columns}"
