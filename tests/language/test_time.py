"""Clocks that are set, days that come twice or not at all, paths that tell intervals apart."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.declare.declared import fill_pattern, same_path
from sluice.language.interval import Schedule

BEGIN = datetime(2011, 12, 1, tzinfo=UTC)
ZONES = (
    *("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"),
    *("America/Santiago", "Pacific/Apia", "Africa/Casablanca", "America/St_Johns"),
)
GRIDS = (
    *("* * * * *", "*/5 * * * *", "*/30 * * * *", "@hourly", "0 */6 * * *", "@daily"),
    *("30 2 * * *", "@weekly", "@monthly", "0 0 29 2 *", "@yearly"),
)


@given(
    zone=st.sampled_from(ZONES),
    grid=st.sampled_from(GRIDS),
    at=st.integers(0, 9_000_000).map(lambda minutes: BEGIN + timedelta(minutes=minutes)),
)
def test_intervals_of_every_length_touch_wherever_clocks_are_set(
    zone: str, grid: str, at: datetime
) -> None:
    schedule = Schedule(expression=grid, timezone=zone)
    start = schedule.last_until(at)
    bounds = [start]
    for _ in range(4):
        bounds.append(schedule.next_after(bounds[-1]))
    assert start <= at < bounds[1]
    found = [(i.start, i.end) for i in schedule.intervals(start, bounds[-1])]
    assert found == list(pairwise(bounds))
    assert all(schedule.is_on_grid(bound) for bound in bounds)
    assert all(schedule.last_until(b - timedelta(microseconds=1)) == a for a, b in pairwise(bounds))


def test_a_leap_day_is_an_interval_of_its_own_and_belongs_to_its_month_and_year() -> None:
    def lengths(grid: str, start: datetime, end: datetime) -> list[int]:
        return [(i.end - i.start).days for i in Schedule(expression=grid).intervals(start, end)]

    leap = datetime(2024, 2, 28, tzinfo=UTC), datetime(2024, 3, 1, tzinfo=UTC)
    assert lengths("@daily", *leap) == [1, 1]
    year = datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)
    assert lengths("@monthly", *year)[1] == 29
    assert lengths("@yearly", *year) == [366]
    assert lengths("@yearly", *(t.replace(year=t.year + 76) for t in year)) == [365]


def test_the_day_that_samoa_skipped_has_no_interval() -> None:
    schedule = Schedule(expression="@daily", timezone="Pacific/Apia")
    start = schedule.last_until(datetime(2011, 12, 29, 20, tzinfo=UTC))
    following = schedule.next_after(schedule.next_after(start))
    days = schedule.intervals(start, following)
    names = [fill_pattern("{interval_start:%d}", day, "Pacific/Apia") for day in days]
    assert names == ["29", "31"]


@pytest.mark.parametrize(
    ("grid", "zone", "path", "ambiguous"),
    [
        ("@daily", "UTC", "{interval_start:%Y-%m-%d}", False),
        ("@daily", "Europe/Berlin", "{interval_end:%Y%j}", False),
        ("@daily", "Australia/Lord_Howe", "{interval_start:%Y/%m/%d}", False),
        ("@hourly", "UTC", "{interval_start:%Y-%m-%dT%H}", False),
        ("@hourly", "Europe/Berlin", "{interval_start:%Y-%m-%dT%H}", True),
        ("@hourly", "Europe/Berlin", "{interval_start:%Y-%m-%dT%H%z}", False),
        ("*/5 * * * *", "America/New_York", "{interval_start:%Y-%m-%dT%H%M}", True),
        ("*/5 * * * *", "America/New_York", "{interval_start:%Y-%m-%dT%H%M%z}", False),
        ("*/5 * * * *", "UTC", "{interval_start:%Y-%m-%dT%H%M}", False),
        ("@hourly", "UTC", "{interval_start:%Y-%m-%d}", True),
        ("@daily", "UTC", "{interval_start:%Y-%m}", True),
        ("@daily", "UTC", "{interval_start:%m-%d}", True),
        ("@daily", "UTC", "{interval_start:%d}", True),
        ("@daily", "UTC", "{interval_start:%H}", True),
        ("@weekly", "UTC", "{interval_start:%G-%V}", False),
        ("@weekly", "UTC", "{interval_start:%Y-%m}", True),
        ("@monthly", "UTC", "{interval_start:%Y-%m}", False),
        ("@monthly", "UTC", "{interval_start:%m}", True),
        ("@yearly", "UTC", "{interval_start:%Y}", False),
    ],
)
def test_two_intervals_with_one_path_are_found(
    grid: str, zone: str, path: str, ambiguous: bool
) -> None:
    found = same_path(path, Schedule(expression=grid, timezone=zone))
    assert bool(found) is ambiguous
    if found:
        assert found[0] != found[1]
        assert fill_pattern(path, found[0], zone) == fill_pattern(path, found[1], zone)


def test_a_source_that_would_count_files_twice_is_refused(wrong: Callable[..., list[str]]) -> None:
    declared = """pipeline: p
schedule: "@hourly"
timezone: Europe/Berlin
start_date: 2024-01-01
sources:
  clicks: {path: "c/{interval_start:%Y-%m-%dT%H}/", schema: "id INT"}
  keyed: {path: "k/{interval_start:%Y-%m-%d}/", schema: "id INT", key: [id]}
"""
    (said,) = wrong({"pipelines/p.yaml": declared})
    assert said == (
        "pipelines/p.yaml:6: sources.clicks.path: "
        "[2024-10-27T02:00:00+02:00, 2024-10-27T02:00:00+01:00) and "
        "[2024-10-27T02:00:00+01:00, 2024-10-27T03:00:00+01:00) have the same path, so their rows "
        "would count twice; distinguish them, by %H, or by %z where clocks are set back; or give "
        "the source a `key`"
    )
