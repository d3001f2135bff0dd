"""Numbers, times and values as pages write them."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from sluice.pages import Text, ago, cell, data, moment, pluralize

NOW = dt.datetime(2017, 3, 9, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(5, "just now"), (60, "1 minute ago"), (7_300, "2 hours ago"), (90_000, "1 day ago")],
)
def test_freshness_is_written_in_the_largest_unit(seconds: int, told: str) -> None:
    assert ago(NOW - dt.timedelta(seconds=seconds), NOW) == told


def test_a_time_of_another_zone_is_written_in_utc() -> None:
    east = dt.timezone(dt.timedelta(hours=2))
    assert moment(dt.datetime(2017, 3, 9, 2, tzinfo=east)) == "2017-03-09"
    assert cell(dt.datetime(2017, 3, 9, 2, 0, 0, 5, east)) == "2017-03-09 00:00:00.000005"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("null", "null"),
        (Decimal("1.50"), "1.50"),
        (1_000_000, "1000000"),
        (True, "true"),
        ({"a": [Decimal(1), None]}, '{"a": ["1", null]}'),
        (b"\0\xff", "AP8="),
        ({"b": b"abc"}, '{"b": "YWJj"}'),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        ([float("inf"), 1.5], '["Infinity", 1.5]'),
        ({dt.date(2024, 1, 2): float("nan")}, '{"2024-01-02": "NaN"}'),
    ],
)
def test_a_value_is_shown_as_it_is(value: Any, shown: str) -> None:
    assert cell(value) == shown


def test_a_null_differs_from_its_word_and_a_missing_value_is_empty() -> None:
    shown = data([{"a": None}, {"b": 1}], ["a", "b"], ["b"])
    assert shown.rows == [[Text("null", "missing"), ""], ["", "1"]]
    assert shown.columns == [("a", "mono"), ("b", "mono suspect")]


def test_counts_agree_with_their_nouns() -> None:
    assert (pluralize(1, "row"), pluralize(2_000, "row")) == ("1 row", "2,000 rows")
