"""The size of a feed, and the times in a table's files, from the log alone."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import StructType
from tests.delta.tables import Commit, Small, by_delta_rs, by_marking
from tests.read.tables import day, write

from sluice.delta.log import files
from sluice.delta.log.files import (
    feed_size,
    has_vectors,
    may_hold,
    not_before,
    only_inserts,
    table_size,
)

HOUR = timedelta(hours=1)


def at(*days: int) -> pa.Table:
    times = pa.array([day(n) for n in days], pa.timestamp("us", "UTC"))
    return pa.table({"id": list(days), "at": times})


def test_files_put_together_take_nothing_away(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    for number in range(1, 4):
        write(uri, at(number))
    DeltaTable(uri).optimize.compact()
    assert only_inserts(uri, 0, 3)
    DeltaTable(uri).delete("id = 2")
    assert only_inserts(uri, 0, 3)
    assert not only_inserts(uri, 0, 4)


@pytest.mark.parametrize("writer", [by_delta_rs, by_marking])
def test_the_rows_of_changes_are_counted(
    writer: Callable[[Any], Commit], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = StructType().add("id", "integer").add("v", "integer")
    table = Small.create(tmp_path, columns, ["id"], writer(None))
    table.commit(*(("insert", {"id": n, "v": n}) for n in range(1, 9)))
    table.commit(("delete", {"id": 1, "v": 1}), ("update", {"id": 2, "v": 7}))
    last = table.commit(("update", {"id": 3, "v": 7}), ("insert", {"id": 9, "v": 9})).version
    assert last == table.head.version
    counts = [len(table.feed(version)) for version in range(1, last + 1)]
    assert counts == [8, 3, 3]
    sizes = [feed_size(table.uri, version - 1, version).rows for version in range(1, last + 1)]
    assert sizes == counts
    monkeypatch.setattr(files, "MANY_COMMITS", 2)
    assert feed_size(table.uri, 1, 3).rows == 6
    assert feed_size(table.uri, 0, 3) == table_size(table.uri, 3), "for many commits"
    DeltaTable(table.uri).delete("id = 9")
    assert feed_size(table.uri, last, last + 1).rows is None, "other writers count otherwise"


def test_a_time_that_no_file_can_hold_is_known_by_statistics(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write(uri, at(3, 4))
    write(uri, at(8))
    held = [n for n in range(1, 12) if may_hold(uri, 1, "at", day(n), day(n) + HOUR)]
    assert held == [3, 4, 8]
    assert may_hold(uri, 1, "at", day(3, 12), day(3, 13)), "between two times of one file"
    assert not may_hold(uri, 0, "at", day(8), day(9)), "as of a version"
    assert may_hold(uri, 1, "other", day(1), day(2)), "no statistics, no promise"


@pytest.mark.parametrize("year", [1950, 2020])
def test_a_time_between_milliseconds_is_held_by_the_times_around_it_only(
    tmp_path: Path, year: int
) -> None:
    uri, bound, tick = str(tmp_path / "t"), datetime(year, 3, 1, tzinfo=UTC), timedelta.resolution
    write(uri, pa.table({"at": pa.array([bound - tick, bound], pa.timestamp("us", "UTC"))}))
    write(uri, pa.table({"at": pa.array([bound], pa.timestamp("us", "UTC"))}))
    assert may_hold(uri, 0, "at", bound - tick, bound)
    assert may_hold(uri, 0, "at", bound, bound + tick)
    DeltaTable(uri).delete(f"at < '{bound.isoformat()}'")
    assert not may_hold(uri, 2, "at", bound - HOUR, bound), "the day before a file is not in it"
    assert may_hold(uri, 2, "at", bound, bound + HOUR)


def test_an_empty_table_holds_nothing(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write(uri, at())
    assert not may_hold(uri, 0, "at", day(1), day(2))
    assert not_before(uri, 0, "at") is None


def test_the_latest_time_is_bounded_from_below(tmp_path: Path) -> None:
    uri, latest = str(tmp_path / "t"), day(9) + timedelta(microseconds=1_999)
    write(uri, at(3, 4))
    write(uri, at(8).set_column(1, "at", pa.array([latest], pa.timestamp("us", "UTC"))))
    found = not_before(uri, 1, "at")
    assert found is not None
    assert latest - timedelta(milliseconds=1) <= found <= latest
    assert not_before(uri, 1, "other") is None


def test_a_latest_time_that_is_marked_bounds_nothing(tmp_path: Path) -> None:
    columns = StructType().add("id", "integer").add("at", "timestamp")
    table = Small.create(tmp_path, columns, ["id"], by_marking(None))  # type: ignore[arg-type]
    rows = [{"id": n, "at": day(n)} for n in (3, 5, 9)]
    table.commit(*(("insert", row) for row in rows))
    table.commit(("delete", rows[2]))
    assert has_vectors(DeltaTable(table.uri))
    assert not_before(table.uri, table.head.version, "at") == day(3)
    table.commit(("insert", {"id": 7, "at": None}))
    table.commit(("delete", rows[0]), ("delete", rows[1]), ("insert", {"id": 8, "at": day(4)}))
    assert not_before(table.uri, table.head.version, "at") == day(4)
