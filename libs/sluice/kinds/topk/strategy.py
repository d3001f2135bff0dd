"""Strategy of a batch of a top-k's state, chosen by the feed's log before a row is read.

Only netting shows whether rows fall, so `retract` may turn out to be `update`. The work is the same
up to there.
"""

from enum import StrEnum

from sluice.delta.log.feed_size import FeedSize
from sluice.engine.computing.batch_plan import Way
from sluice.kinds.topk.operator import TopKState
from sluice.limits import Limits


class TopKStrategy(StrEnum):
    """Strategies by which a batch computes the rows of the state."""

    APPEND = "append"  # kept rows and rows that are only added
    UPDATE = "update"  # the same, with rows that change and don't fall
    RETRACT = "retract"  # the same, with any change: groups that run short are refilled
    FULL = "full"  # the whole query, compared with all rows


def chosen(
    state: TopKState, feed: FeedSize, table: FeedSize, limits: Limits, *, only_inserts: bool
) -> Way:
    """Return the strategy and its reason. `feed`: size of the change; `table`: of the input."""
    declared: str | None = state.ranking.spec.strategy
    if declared == TopKStrategy.FULL:
        return TopKStrategy.FULL, "declared"
    share = feed.bytes / max(table.bytes, 1)
    is_most = feed.bytes > limits.ranked_full_bytes and share > limits.ranked_full_share
    if not declared and is_most:
        because = f"the feed is {share:.0%} of the input: reading all of it is cheaper"
        return TopKStrategy.FULL, because
    if only_inserts and declared in (None, TopKStrategy.APPEND):
        return TopKStrategy.APPEND, "rows were only added: the best are ranked with the kept rows"
    why = "" if only_inserts else "rows were changed: kept rows replace those that leave"
    because = f"declared {declared}" if declared else ""
    return TopKStrategy.RETRACT, "; ".join(filter(None, (because, why)))
