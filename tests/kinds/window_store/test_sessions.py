"""Stores whose windows have ends: sessions are found by the times that they overlap."""

import pyarrow as pa
import pytest
from tests.read.tables import day, keyed, write

from sluice.errors import UsageError
from sluice.kinds.window_store.reader import ReadOnlyWindowStore

SESSIONS = ((1, 8, 10), (1, 12, 15), (2, 9, 13), (1, 20, 21))  # user, from hour, to hour


def sessions(folder):
    table = pa.table(
        {
            "user": pa.array([user for user, _, _ in SESSIONS], pa.int32()),
            "window_start": pa.array(
                [day(1, h) for _, h, _ in SESSIONS], pa.timestamp("us", "UTC")
            ),
            "window_end": pa.array([day(1, h) for _, _, h in SESSIONS], pa.timestamp("us", "UTC")),
        }
    )
    write(folder / "t", table, group_rows=2)
    return ReadOnlyWindowStore(keyed(folder / "t", "user", "window_start"), ("user",))


@pytest.mark.parametrize(
    ("low", "high", "hours"),
    [
        (9, 12, [8, 9, 12]),
        (10, 11, [9]),  # the end is not part of a window
        (15, 19, []),
        (20, 20, [20]),
        (None, 9, [8, 9]),
        (13, None, [12, 20]),
        (None, None, [8, 9, 12, 20]),
    ],
)
def test_a_window_overlaps_from_its_start_to_just_before_its_end(tmp_path, low, high, hours):
    store = sessions(tmp_path)
    asked = {
        "time_from": None if low is None else day(1, low),
        "time_to": None if high is None else day(1, high),
        "overlapping": True,
    }
    assert [row["window_start"].hour for row in store.fetch_all(**asked)] == hours
    backward = store.fetch_all(**asked, reverse=True, limit=2)
    assert [row["window_start"].hour for row in backward] == hours[::-1][:2]


def test_of_one_key_the_last_sessions_come_first(tmp_path):
    found = sessions(tmp_path).fetch(key=1, time_from=day(1, 9), overlapping=True, reverse=True)
    assert [row["window_start"].hour for row in found] == [20, 12, 8]


def test_without_overlapping_windows_that_begin_between_the_times_are_read(tmp_path):
    found = sessions(tmp_path).fetch_all(time_from=day(1, 9), time_to=day(1, 12))
    assert [row["window_start"].hour for row in found] == [9, 12]


def test_windows_without_an_end_overlap_nothing(tmp_path):
    table = pa.table({"user": [1], "window_start": pa.array([day(1)], pa.timestamp("us", "UTC"))})
    write(tmp_path / "t", table)
    store = ReadOnlyWindowStore(keyed(tmp_path / "t", "user", "window_start"), ("user",))
    with pytest.raises(UsageError, match="windows of 'test' have no end"):
        store.fetch_all(time_from=day(1), overlapping=True)
