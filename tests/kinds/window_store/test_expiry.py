"""Expired rows leave a store in the batch that moves its horizon, for every reader of the table."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from deltalake import DeltaTable
from tests.support.in_duckdb import wrong
from tests.support.lake import Lake, Row, counted, folded, repeated

from sluice.read.lake import Lake as Reads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2024, 1, 10, 12, tzinfo=UTC)
DECLARED = """
sources:
  traces:
    path: "traces/{interval_start:%Y-%m-%d}/"
    key: [id]
    time: at
    schema: "id INT, service STRING, at TIMESTAMP, duration INT"
views:
  recent: {kind: window_store, from: traces, key: [service], time: at, duplicates: true,
    retention: 7 days}
  lengths: {kind: cogroup, key: [service],
    streams: {traces: {from: recent, aggregates: {traces: count(*)}}}}
"""


@pytest.fixture
def lake(tmp_path: Path, spark: "SparkSession") -> Lake:
    return Lake(tmp_path, DECLARED, spark)


def trace(number: int, days: float = 0) -> Row:
    at = NOON + timedelta(days=days)
    return {"id": number, "service": "web", "at": at, "duration": number * 10}


def ids(lake: Lake) -> list[int]:
    """What every reader sees, and the view over it counts."""
    assert wrong(lake) == {}
    assert folded(lake.feed("recent")) == counted(lake.stored("recent"))
    assert not repeated(lake.feed("recent"))
    found = sorted(row["id"] for row in lake.rows("recent"))
    reads = Reads(lake.project)
    assert sorted(row["id"] for row in reads.window("recent").all()) == found
    assert sorted(pl.read_delta(lake.uri("recent"))["id"]) == found
    assert reads.table("recent").count == len(found) == lake.rows("lengths")[0]["traces"]
    return found


def test_rows_leave_with_the_batch_that_moves_the_horizon(lake: Lake) -> None:
    lake.put("traces", *(trace(n, n) for n in range(5)), trace(9, 9))
    (report, *_) = lake.advance()
    assert (ids(lake), report.inserted, report.expired) == ([3, 4, 9], 3, 3)
    lake.put("traces", trace(10, 10.5))
    (report, *_) = lake.advance()
    assert (ids(lake), report.inserted, report.deleted) == ([4, 9, 10], 1, 1)
    lake.put("traces", trace(20, 0.1), trace(21, 9), gone=[trace(0, 0), trace(4, 4)])
    (report, *_) = lake.advance()
    assert (ids(lake), report.expired) == ([9, 10, 21], 1), "a late row is counted, not applied"
    lake.put("traces", trace(4, 10), {**trace(9, 9), "duration": 1})
    lake.advance()
    assert ids(lake) == [4, 9, 10, 21]


def test_what_had_expired_comes_back_if_the_horizon_falls(lake: Lake) -> None:
    lake.put("traces", *(trace(n, n) for n in range(5)), trace(30, 30))
    lake.advance()
    assert ids(lake) == [30]
    lake.put("traces", trace(6, 6), gone=[trace(30, 30)])
    lake.advance()
    assert ids(lake) == [0, 1, 2, 3, 4, 6]
    lake.put("traces", trace(10, 10))
    lake.advance()
    assert ids(lake) == [4, 6, 10]


def test_a_correction_moves_a_row_across_the_horizon(lake: Lake) -> None:
    lake.put("traces", *(trace(n, n) for n in range(5)))
    lake.advance()
    lake.put("traces", trace(0, 9), trace(1, 1.5))
    lake.advance()
    assert ids(lake) == [0, 3, 4]
    lake.put("traces", trace(0, 0), trace(3, 20), gone=[trace(4)])
    lake.advance()
    assert ids(lake) == [3]


def test_a_batch_that_nothing_expires_in_opens_no_file_of_the_store(lake: Lake) -> None:
    """Nor is a closed slice written again."""
    lake.put("traces", *(trace(n, n) for n in range(5)))
    lake.advance()
    before = files(lake)
    lake.put("traces", trace(9, 5))
    lake.advance()
    assert before < files(lake)


def test_a_slice_leaves_whole_and_no_other_is_written_again(lake: Lake) -> None:
    lake.put("traces", *(trace(n, n) for n in range(5)))
    lake.advance()
    before = files(lake)
    lake.put("traces", trace(9, 8.9))
    lake.advance()
    assert ids(lake) == [2, 3, 4, 9]
    assert len(before - files(lake)) == 2
    assert len(files(lake) - before) == 1


def files(lake: Lake) -> set[str]:
    return {*DeltaTable(lake.uri("recent")).file_uris()}
