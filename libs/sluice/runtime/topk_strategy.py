"""Which way a batch of a top-k's state goes: by what the feed's log says, before a row is read.

Whether rows fall is known only once they are netted, so `retract` may turn out to be `update`; the
work is the same up to there.
"""

from sluice.limits import Limits
from sluice.operators.topk import TopKState
from sluice.storage.feed_size import FeedSize

Chosen = tuple[str, str]


def chosen(
    state: TopKState, feed: FeedSize, table: FeedSize, limits: Limits, *, only_inserts: bool
) -> Chosen:
    """The strategy and its reason. `feed` is what changed of the input, `table` all of it."""
    declared = state.ranking.spec.strategy
    if declared == "full":
        return "full", "declared"
    share = feed.bytes / max(table.bytes, 1)
    is_most = feed.bytes > limits.topk_full_bytes and share > limits.topk_full_share
    if not declared and is_most:
        return "full", f"the feed is {share:.0%} of the input: reading all of it is cheaper"
    if only_inserts and declared in (None, "append"):
        return "append", "rows were only added: the best of them meet the kept ones"
    why = "" if only_inserts else "rows were changed: kept ones make good what falls"
    because = f"declared {declared}" if declared else ""
    return "retract", "; ".join(filter(None, (because, why)))
