"""Durations, fixed and by the calendar."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.support.wording import Wording, each

from sluice.language.interval import Duration, parse_time

Refusal = Callable[..., str]


@pytest.mark.parametrize(
    ("text", "length", "sql"),
    [
        ("250 milliseconds", timedelta(milliseconds=250), "INTERVAL 250 MILLISECOND"),
        ("30 minutes", timedelta(minutes=30), "INTERVAL 30 MINUTE"),
        ("1 hour", timedelta(hours=1), "INTERVAL 1 HOUR"),
        ("90 days", timedelta(days=90), "INTERVAL 90 DAY"),
        ("1 Week", timedelta(weeks=1), "INTERVAL 1 WEEK"),
    ],
)
def test_a_fixed_duration_has_a_length(text: str, length: timedelta, sql: str) -> None:
    assert Duration(text).timedelta == length
    assert Duration(text).sql == sql
    assert Duration(text).months == 0


def test_months_follow_the_calendar() -> None:
    assert Duration("1 month").after(parse_time("2017-01-31")) == parse_time("2017-02-28")
    assert Duration("1 year").before(parse_time("2020-02-29")) == parse_time("2019-02-28")
    assert Duration("2 quarters").months == 6
    assert Duration("1 month").after(parse_time("2017-12-15")) == parse_time("2018-01-15")
    with pytest.raises(ValueError, match="'1 month' has no fixed length"):
        _ = Duration("1 month").timedelta


@each(
    "text, told",
    ("1 dya", "'1 dya' … '1 days' … '30 minutes' … '1 month'"),
    ("soon", "'soon' … '30 minutes' … '1 month'"),
    ("-1 day", "'-1 day' … '30 minutes' … '1 month'"),
    ("0 days", "'0 days'"),
)
def test_what_is_no_duration_is_refused(
    refusal: Refusal, wording: Wording, text: str, told: str
) -> None:
    wording(refusal(Duration, text), told)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("1 month", "1 month", False),
        ("30 days", "1 month", True),
        ("4 weeks", "1 month", False),
        ("50 weeks", "1 year", False),
        ("1 month", "30 days", True),
        ("2 hours", "1 hour", True),
    ],
)
def test_one_duration_may_exceed_another(one: str, other: str, expected: bool) -> None:
    assert Duration(one).may_exceed(Duration(other)) == expected
