"""How the page tells people what it shows."""

import datetime as dt

import pytest

from sluice.orchestration.page.rendering import ago

NOW = dt.datetime(2017, 3, 9, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(5, "just now"), (60, "1 minute ago"), (7_300, "2 hours ago"), (90_000, "1 day ago")],
)
def test_freshness_is_told_in_the_largest_unit(seconds: int, told: str) -> None:
    assert ago(NOW - dt.timedelta(seconds=seconds), NOW) == told
