"""A window store without retention: its slices follow its rows as well as time."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable
from tests.support.lake import Lake, Row, away, counted, folded

from sluice.limits import Limits
from sluice.runtime.maintain import Upkeep, maintain
from sluice.serving.lake import Lake as Reads
from sluice.storage.filing import slices_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

YEAR = datetime(2023, 1, 1, 12, tzinfo=UTC)
DECLARED = """
sources:
  traces:
    path: "traces/{interval_start:%Y-%m-%d}/"
    key: [id]
    time: at
    schema: "id INT, service STRING, at TIMESTAMP"
views:
  every: {kind: window_store, from: traces, key: [service], time: at, duplicates: true}
  last: {kind: window_store, from: traces, key: [service], time: at}
"""
VIEWS = ("every", "last")


@pytest.fixture
def lake(tmp_path: Path, spark: "SparkSession") -> Lake:
    return Lake(tmp_path, DECLARED, spark).limit(gathered_slice_rows=40)


def trace(day: int, number: int | None = None) -> Row:
    """Of the day with that number, counted from 2023-01-01."""
    number = day if number is None else number
    return {"id": number, "service": "abc"[number % 3], "at": YEAR + timedelta(days=day)}


def slices(lake: Lake, name: str) -> dict[int | None, int]:
    """The rows of each slice, by its number."""
    return {s.number: s.row_count for s in slices_of(DeltaTable(lake.uri(name)))}


def check(lake: Lake) -> None:
    """Every table is what its query gives, and what its feed amounts to."""
    assert [v for v in lake.verdicts() if not v.is_sound] == []
    for name in VIEWS:
        rows = lake.rows(name)
        assert folded(_shown(lake.feed(name))) == counted(_shown(lake.stored(name)))
        found = Reads(lake.project).window(name).all(reverse=True)
        assert [r["window_start"] for r in found] == sorted(
            (r["window_start"] for r in rows), reverse=True
        )


def _shown(rows: list[Row]) -> list[Row]:
    """Without the slice: where a row lies is not what it says."""
    return [{c: v for c, v in row.items() if c != "_sluice_part"} for row in rows]


def test_a_past_with_few_rows_lies_in_few_files_at_once(lake: Lake) -> None:
    lake.put("traces", *(trace(day) for day in range(400)))
    lake.advance()
    lengths = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    days = dict(zip(range(202301, 202313), lengths, strict=True))
    open_ = dict.fromkeys(range(20240201, 20240205), 1)
    for name in VIEWS:
        assert slices(lake, name) == {**days, 202401: 31, **open_}
    check(lake)
    assert maintain(lake.spark, lake.project, [lake.table("every")]) == []


def test_a_past_year_with_few_rows_is_one_slice(lake: Lake) -> None:
    lake.limit(gathered_slice_rows=Limits().gathered_slice_rows)
    lake.put("traces", *(trace(day) for day in range(400)))
    lake.advance()
    open_ = dict.fromkeys(range(20240201, 20240205), 1)
    assert slices(lake, "every") == {2023: 365, 202401: 31, **open_}
    assert len(DeltaTable(lake.uri("every")).file_uris()) == 6
    check(lake)


def test_late_rows_and_corrections_go_to_the_longer_slice(lake: Lake) -> None:
    lake.put("traces", *(trace(day) for day in range(35)))
    lake.advance()
    assert slices(lake, "every")[202301] == 31
    lake.put("traces", trace(3, 500), {**trace(4), "service": "z"}, gone=[trace(5)])
    reports = lake.advance()
    assert [(r.inserted, r.updated, r.deleted) for r in reports if r.table == "shop.every"] == [
        (2, 0, 2)
    ]
    for name in VIEWS:
        assert slices(lake, name)[202301] == 31
        assert 20230104 not in slices(lake, name)
    check(lake)


def test_a_slice_that_grows_too_large_is_taken_apart_again(lake: Lake) -> None:
    lake.put("traces", trace(0), trace(40), trace(400))
    lake.advance()
    assert slices(lake, "every") == {2023: 2, 20240205: 1}
    lake.put("traces", *(trace(day) for day in range(1, 90)))
    lake.advance()
    assert slices(lake, "every") == {202301: 31, 202302: 28, 202303: 31, 20240205: 1}
    lake.put("traces", *(trace(2, 1000 + n) for n in range(60)))
    lake.advance()
    found = slices(lake, "every")
    assert (found[20230103], found[20230101], 202301 in found) == (61, 1, False)
    check(lake)


def test_a_table_of_days_is_gathered_by_upkeep(lake: Lake) -> None:
    lake.limit(gathered_slice_rows=0)
    lake.put("traces", *(trace(day) for day in range(35)))
    lake.advance()
    assert len(slices(lake, "every")) == 35
    lake.limit(gathered_slice_rows=40)
    before = lake.rows("every")
    assert maintain(lake.spark, lake.project, [lake.table("every")]) == [
        Upkeep("shop.every", "gather", 31)
    ]
    assert counted(lake.rows("every")) == counted(before)
    newest = DeltaTable(lake.uri("every")).history()[0]
    assert json.loads(newest["userMetadata"])["sluice"]["kind"] == "gather"
    assert [r.outcome for r in lake.advance()] == ["unchanged", "unchanged"]
    check(lake)


def test_the_newest_rows_are_read_without_the_past(lake: Lake) -> None:
    lake.put("traces", *(trace(day) for day in range(35)))
    lake.advance()
    (past,) = (s for s in slices_of(DeltaTable(lake.uri("every"))) if s.number == 202301)
    with away(Path(lake.uri("every")) / path for path in past.paths):
        found = Reads(lake.project).window("every").all(reverse=True, limit=3)
        assert [row["id"] for row in found] == [34, 33, 32]
