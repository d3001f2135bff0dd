"""Which windows a time falls into: the calendar, time zones and what came before 1970."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from sluice.declare.table_spec import Window
from sluice.engine.windows import assign

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Bounds = list[tuple[datetime, datetime]]


def windows(spark: "SparkSession", time: datetime, **window: str) -> Bounds:
    rows = pa.table({"at": pa.array([time.astimezone(UTC)], pa.timestamp("us", "UTC"))})
    found = assign(spark.createDataFrame(rows), Window(time="at", **window), "at")
    bounds = found.select("window_start", "window_end").toArrow().to_pylist()
    return sorted((b["window_start"], b["window_end"]) for b in bounds)


def utc(*at: int) -> datetime:
    return datetime(*at, tzinfo=UTC)  # type: ignore[misc, arg-type]


def berlin(*at: int) -> datetime:
    return datetime(*at, tzinfo=ZoneInfo("Europe/Berlin"))  # type: ignore[misc, arg-type]


@pytest.mark.parametrize(
    ("time", "size", "start", "end"),
    [
        (utc(2024, 5, 1), "1 hour", utc(2024, 5, 1), utc(2024, 5, 1, 1)),
        (utc(1969, 12, 31, 23, 59), "1 hour", utc(1969, 12, 31, 23), utc(1970, 1, 1)),
        (utc(2024, 5, 1), "1 week", utc(2024, 4, 25), utc(2024, 5, 2)),
        (utc(2024, 2, 29), "1 month", utc(2024, 2, 1), utc(2024, 3, 1)),
        (utc(2024, 2, 29), "1 quarter", utc(2024, 1, 1), utc(2024, 4, 1)),
        (utc(1969, 2, 1), "1 year", utc(1969, 1, 1), utc(1970, 1, 1)),
    ],
)
def test_tumbling_windows_are_aligned_to_the_epoch(
    spark: "SparkSession", time: datetime, size: str, start: datetime, end: datetime
) -> None:
    assert windows(spark, time, type="tumbling", size=size) == [(start, end)]


def test_the_end_of_a_window_is_in_the_next(spark: "SparkSession") -> None:
    last = utc(2024, 5, 1) - timedelta(microseconds=1)
    day = {"type": "tumbling", "size": "1 day"}
    assert windows(spark, last, **day) == [(utc(2024, 4, 30), utc(2024, 5, 1))]
    assert windows(spark, utc(2024, 5, 1), **day) == [(utc(2024, 5, 1), utc(2024, 5, 2))]


@pytest.mark.parametrize(
    ("time", "start", "end", "hours"),
    [
        (berlin(2024, 3, 31, 12), berlin(2024, 3, 31), berlin(2024, 4, 1), 23),
        (berlin(2024, 10, 27, 12), berlin(2024, 10, 27), berlin(2024, 10, 28), 25),
        (berlin(2024, 7, 1, 0), berlin(2024, 7, 1), berlin(2024, 7, 2), 24),
    ],
)
def test_a_local_day_is_as_long_as_its_clock_says(
    spark: "SparkSession", time: datetime, start: datetime, end: datetime, hours: int
) -> None:
    ((found, until),) = windows(
        spark, time, type="tumbling", size="1 day", timezone="Europe/Berlin"
    )
    assert (found, until) == (start, end)
    assert until - found == timedelta(hours=hours)


def test_hopping_months_overlap(spark: "SparkSession") -> None:
    found = windows(spark, utc(2024, 3, 31), type="hopping", size="2 months", advance="1 month")
    assert found == [
        (utc(2024, 2, 1), utc(2024, 4, 1)),
        (utc(2024, 3, 1), utc(2024, 5, 1)),
    ]


def test_hops_that_start_where_the_clock_springs_forward_are_one(spark: "SparkSession") -> None:
    hops = {"type": "hopping", "size": "2 hours", "advance": "1 hour"}
    found = windows(spark, berlin(2024, 3, 31, 3, 30), **hops, timezone="Europe/Berlin")
    starts = [start for start, _ in found]
    assert len(set(starts)) == len(starts)
    assert (berlin(2024, 3, 31, 3), berlin(2024, 3, 31, 5)) in found


@pytest.mark.parametrize(
    "window",
    [
        {"type": "tumbling", "size": "30 minutes"},
        {"type": "tumbling", "size": "1 hour"},
        {"type": "tumbling", "size": "2 hours"},
        {"type": "hopping", "size": "50 minutes", "advance": "20 minutes"},
        {"type": "hopping", "size": "2 hours", "advance": "30 minutes"},
        {"type": "hopping", "size": "6 hours", "advance": "2 hours"},
        {"type": "hopping", "size": "1 day", "advance": "1 hour"},
    ],
    ids=lambda window: " ".join(window.values()),
)
def test_a_row_is_within_its_windows_while_clocks_change(
    spark: "SparkSession", window: dict[str, str]
) -> None:
    nights = (utc(2024, 3, 30, 22), utc(2024, 10, 26, 22))
    times = [night + i * timedelta(minutes=7) for night in nights for i in range(60)]
    rows = pa.table({"at": pa.array(times, pa.timestamp("us", "UTC"))})
    found = assign(
        spark.createDataFrame(rows), Window(time="at", **window, timezone="Europe/Berlin"), "at"
    )
    bounds = found.select("at", "window_start", "window_end").toArrow().to_pylist()
    assert {b["at"] for b in bounds} == {*times}
    outside = [b for b in bounds if not b["window_start"] <= b["at"] < b["window_end"]]
    assert outside == []
    ends = {(b["window_start"], b["window_end"]) for b in bounds}
    assert len(ends) == len({start for start, _ in ends}), "windows of one start are one"
    if "minutes" in f"{window}":
        lengths = {end - start for start, end in ends}
        assert lengths == {Window(time="at", **window).size.timedelta}


def test_a_row_without_a_time_is_in_no_window(spark: "SparkSession") -> None:
    rows = spark.createDataFrame([(None,)], "at TIMESTAMP")
    window = Window(type="tumbling", time="at", size="1 day")
    assert assign(rows, window, "at").collect() == []
