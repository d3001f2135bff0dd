"""Slices of a window store: short where that leaves few."""

import pytest

from sluice.kinds.window_store.operator import Grain
from sluice.language.interval import Duration


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
