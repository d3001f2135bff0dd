"""A dimension of which much has changed is joined to all facts again."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from sluice.delta.log.files import FeedSize
from sluice.engine.batch_plan import BatchPlan, Context
from sluice.kinds.lookup import batch
from sluice.kinds.lookup.batch import has_mostly_changed
from sluice.limits import Limits


@pytest.mark.parametrize(
    ("feed", "whole", "is_most"),
    [
        (FeedSize(1, 1, 50), FeedSize(1, 1, 100), False),  # a quarter of the rows, each twice
        (FeedSize(1, 1, 51), FeedSize(1, 1, 100), True),
        (FeedSize(10**9, 1, 50), FeedSize(1, 1, 100), False),
        (FeedSize(100, 1, None), FeedSize(400, 1, 1), False),  # without a count, by bytes
        (FeedSize(101, 1, 0), FeedSize(400, 1, None), True),
        (FeedSize(101, 1, None), FeedSize(400, 1, None), True),
        (FeedSize(80, 1, None), FeedSize(1, 1, None), False),
        (FeedSize(81, 1, None), FeedSize(1, 1, None), True),
    ],
)
def test_much_is_more_than_a_quarter_of_its_rows_or_bytes(
    monkeypatch: pytest.MonkeyPatch, feed: FeedSize, whole: FeedSize, is_most: bool
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(batch, "feed_size", lambda *at: (asked.append(at), feed)[1])
    monkeypatch.setattr(batch, "table_size", lambda *at: (asked.append(at), whole)[1])
    context = SimpleNamespace(
        lake=SimpleNamespace(uri=lambda name: f"lake/{name}"), limits=Limits(few_tasks_bytes=80)
    )
    plan = SimpleNamespace(ranges={"items": (3, 5)}, pins={"items": SimpleNamespace(version=5)})
    of = cast(Context, context), cast(BatchPlan, plan)
    assert has_mostly_changed(*of, "items") is is_most
    assert asked == [("lake/items", 3, 5), ("lake/items", 5)]
    assert not has_mostly_changed(*of, "unchanged")
