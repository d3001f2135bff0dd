"""Instants, intervals and the grid of a schedule, over clock changes too."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.language.interval import Interval, IntervalError, Schedule, parse_time


def at(text: str) -> datetime:
    return parse_time(text)


def hours(schedule: Schedule, start: str, end: str) -> list[float]:
    """The lengths of the intervals between two times."""
    found = schedule.intervals(at(start), at(end))
    return [(interval.end - interval.start) / timedelta(hours=1) for interval in found]


def test_a_time_without_a_zone_is_utc() -> None:
    assert at("2017-01-31") == datetime(2017, 1, 31, tzinfo=UTC)
    assert at("2017-01-31T08:30") == datetime(2017, 1, 31, 8, 30, tzinfo=UTC)
    assert at("2017-01-31T08:30+01:00") == datetime(2017, 1, 31, 7, 30, tzinfo=UTC)
    assert at("2017-01-31T08:30Z").tzinfo is UTC


def test_a_time_without_a_zone_is_of_the_zone_that_is_given() -> None:
    assert parse_time("2024-01-01", "Europe/Berlin") == at("2023-12-31T23:00")
    assert parse_time("2024-01-01T00:00Z", "Europe/Berlin") == at("2024-01-01")
    assert parse_time("2024-10-27T02:30", "Europe/Berlin") == at("2024-10-27T02:30+01:00")
    assert parse_time("2024-03-31T02:30", "Europe/Berlin") == at("2024-03-31T03:30+02:00")


def test_what_is_no_time_is_refused_with_an_example() -> None:
    with pytest.raises(IntervalError, match="'yesterday' is not a time\nhint: write 2017-01-31"):
        at("yesterday")


def test_an_interval_is_half_open() -> None:
    day = Interval.parse("2017-01-01", "2017-01-02")
    assert at("2017-01-01") in day
    assert at("2017-01-02") not in day
    assert str(day) == "[2017-01-01, 2017-01-02)"


@pytest.mark.parametrize(
    ("zone", "start", "end", "options"),
    [
        (
            "UTC",
            "2024-01-01",
            "2024-01-02T06:00",
            "--start 2024-01-01 --end 2024-01-02T06:00:00+00:00",
        ),
        ("Asia/Kolkata", "2024-01-01", "2024-01-02", "--start 2024-01-01 --end 2024-01-02"),
        # Midnight occurs twice in Havana on the third.
        (
            "America/Havana",
            "2024-11-03T00:00-04:00",
            "2024-11-04",
            "--start 2024-11-03T00:00:00-04:00 --end 2024-11-04",
        ),
    ],
)
def test_bounds_as_options_of_a_command_are_local_and_mean_the_same(
    zone: str, start: str, end: str, options: str
) -> None:
    interval = Interval.parse(start, end, zone)
    assert interval.options(zone) == options
    _, again, _, until = options.split()
    assert Interval.parse(again, until, zone) == interval


def test_an_interval_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(IntervalError, match="2017-01-02 is not before its end 2017-01-02"):
        Interval.parse("2017-01-02", "2017-01-02")


def test_touching_intervals_do_not_overlap() -> None:
    day, next_day = (
        Interval.parse("2017-01-01", "2017-01-02"),
        Interval.parse("2017-01-02", "2017-01-03"),
    )
    assert not day.overlaps(next_day)
    assert Interval(day.start, next_day.end).covers(day)


def test_a_request_is_cut_along_the_grid() -> None:
    daily = Schedule(expression="@daily")
    found = daily.intervals(at("2017-01-01"), at("2017-01-03"))
    assert [str(interval) for interval in found] == [
        "[2017-01-01, 2017-01-02)",
        "[2017-01-02, 2017-01-03)",
    ]


def test_a_bound_off_the_grid_is_refused_with_the_nearest_two() -> None:
    with pytest.raises(IntervalError) as refusal:
        Schedule(expression="@daily").intervals(at("2017-01-01"), at("2017-01-02T12:00"))
    assert str(refusal.value) == (
        "2017-01-02T12:00:00+00:00 is not a bound of the schedule '@daily' (UTC)\n"
        "hint: the nearest are 2017-01-02 and 2017-01-03"
    )


def test_a_day_on_which_clocks_change_has_23_or_25_hours() -> None:
    daily = Schedule(expression="@daily", timezone="Europe/Berlin")
    assert hours(daily, "2017-03-24T23:00", "2017-03-27T22:00") == [24, 23, 24]
    assert hours(daily, "2017-10-27T22:00", "2017-10-30T23:00") == [24, 25, 24]


def test_hours_stay_hours_when_clocks_change() -> None:
    hourly = Schedule(expression="@hourly", timezone="Europe/Berlin")
    assert hours(hourly, "2017-03-25T23:00", "2017-03-26T04:00") == [1] * 5
    assert hours(hourly, "2017-10-28T22:00", "2017-10-29T04:00") == [1] * 6


def test_an_instant_lies_in_the_interval_that_starts_at_or_before_it() -> None:
    daily = Schedule(expression="@daily")
    assert daily.containing(at("2017-01-01")).start == at("2017-01-01")
    assert daily.containing(at("2016-12-31T23:59:59.999999")).end == at("2017-01-01")
    assert daily.is_on_grid(at("2017-01-01"))
    assert not daily.is_on_grid(at("2017-01-01T00:00:00.000001"))


def test_months_and_leap_days_have_their_lengths() -> None:
    assert hours(Schedule(expression="@monthly"), "2017-01-01", "2017-03-01") == [31 * 24, 28 * 24]
    leap = Schedule(expression="0 0 29 2 *")
    assert leap.nearest(at("2017-01-01")) == (at("2016-02-29"), at("2020-02-29"))


@given(
    moment=st.datetimes(datetime(1990, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    expression=st.sampled_from(["@hourly", "@daily", "@weekly", "30 2 * * *", "*/15 * * * *"]),
    timezone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]),
)
def test_the_grids_intervals_touch_and_hold_every_instant(
    moment: datetime, expression: str, timezone: str
) -> None:
    schedule = Schedule(expression=expression, timezone=timezone)
    interval = schedule.containing(moment)
    assert interval.start <= moment < interval.end
    assert schedule.is_on_grid(interval.start)
    assert schedule.is_on_grid(interval.end)
    assert schedule.containing(interval.end).start == interval.end


@pytest.mark.parametrize(
    "expression", ["sometimes", "* * * *", "61 * * * *", "0 0 31 2 *", "@never", "", "0 0 0 * * *"]
)
def test_what_gives_no_grid_is_refused_with_what_does(expression: str) -> None:
    with pytest.raises(ValueError, match=r"write a cron expression, @hourly, @daily, .* or assets"):
        Schedule(expression=expression)


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown timezone 'Mars'; write a name such as"):
        Schedule(expression="@daily", timezone="Mars")


def test_a_pipeline_driven_by_assets_has_no_intervals() -> None:
    assets = Schedule(expression="assets")
    assert not assets.has_intervals
    with pytest.raises(IntervalError, match="has no data intervals"):
        assets.containing(at("2017-01-01"))
