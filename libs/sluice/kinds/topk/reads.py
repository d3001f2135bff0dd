"""Reads of a small batch of a top-k's state, in this process; their rows are handed to Spark.

Only rows that can matter are handed on: the feed's shortlist, and the kept rows of its groups.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame

from sluice.delta.log.feed_size import table_size
from sluice.delta.reading.local import handed_over, has_local_feed, read_feed, read_rows
from sluice.engine.computing.batch import Batch
from sluice.kinds.topk.operator import TopKState
from sluice.kinds.topk.shortlist import Shortlist


@dataclass(frozen=True)
class LocalReads:
    """Rows of the input's feed, and the kept rows of at least their groups."""

    feed: DataFrame
    state: DataFrame

    @classmethod
    def of(cls, batch: Batch[TopKState]) -> "LocalReads | None":
        """Read the rows; return None if there is too much to read."""
        plan, session = batch.plan, batch.session
        assert plan.before is not None
        ((input_id, (after, upto)),) = plan.ranges.items()
        uri = batch.context.lake.uri(input_id)
        kept = table_size(plan.uri, plan.before.version).bytes
        limits, size = batch.context.limits, plan.size.bytes
        if size > limits.ranked_feed_bytes or kept > limits.ranked_state_bytes:
            return None
        if not has_local_feed(uri, upto):
            return None
        is_small = max(size, kept) <= limits.read_here_bytes
        feed = read_feed(uri, after, upto)
        short = Shortlist.of(batch.operator.ranking, feed.schema)
        where = None
        if short:
            touched = short.groups(feed)
            kept_rows = read_rows(plan.uri, plan.before.version, short.of_state, touched)
            feed = short.competing(feed, kept_rows)
            where = short.groups(feed)
        if not is_small and (short is None or feed.num_rows > limits.handed_rows):
            return None
        rows = read_rows(plan.uri, plan.before.version, where=where)
        return cls(
            handed_over(session, uri, upto, feed).coalesce(1),
            handed_over(session, plan.uri, plan.before.version, rows).coalesce(1),
        )
