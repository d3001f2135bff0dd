"""Slices of a window store: short where that leaves few."""

from datetime import UTC, datetime

import pytest

from sluice.kinds.window_store.grain import Grain
from sluice.language.duration import Duration

AT = datetime(2017, 5, 14, 16, 4, 58, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("window", "retention", "grain"),
    [
        (None, None, Grain.DAY),
        ("1 minute", None, Grain.DAY),
        ("1 hour", None, Grain.DAY),
        ("1 day", None, Grain.MONTH),
        ("1 week", None, Grain.YEAR),
        ("1 year", None, Grain.YEAR),
        (None, "30 minutes", Grain.HOUR),
        (None, "4 days", Grain.HOUR),
        (None, "7 days", Grain.DAY),
        ("1 day", "90 days", Grain.DAY),
        (None, "1 year", Grain.MONTH),
        (None, "10 years", Grain.YEAR),
    ],
)
def test_a_grain_follows_from_the_retention_else_from_the_window(window, retention, grain):
    assert Grain.of(window and Duration(window), retention and Duration(retention)) is grain


@pytest.mark.parametrize(
    ("grain", "number", "begin"),
    [
        (Grain.YEAR, 2017, datetime(2017, 1, 1, tzinfo=UTC)),
        (Grain.MONTH, 201705, datetime(2017, 5, 1, tzinfo=UTC)),
        (Grain.DAY, 20170514, datetime(2017, 5, 14, tzinfo=UTC)),
        (Grain.HOUR, 2017051416, datetime(2017, 5, 14, 16, tzinfo=UTC)),
    ],
)
def test_a_slice_has_a_number_and_a_begin(grain, number, begin):
    assert (grain.number(AT), grain.begin(AT)) == (number, begin)
    assert grain.begin(begin) == begin
