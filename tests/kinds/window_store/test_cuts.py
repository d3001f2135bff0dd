"""Slices by size: few rows lie in few slices, and no slice grows without end."""

from datetime import UTC, datetime, timedelta

import pytest
from deltalake import DeltaTable
from tests.support.in_duckdb import wrong
from tests.support.lake import Lake, NewLake, Row, counted, folded

from sluice.delta.writing.filing import Slice, slices_of
from sluice.kinds.window_store.operator import Cuts, StoreKept, in_time
from sluice.operate.maintain import maintain
from sluice.read.lake import Lake as Reads

NEW_YEAR = datetime(2013, 1, 1, 12, tzinfo=UTC)
DECLARED = """
sources:
  flights:
    path: "flights/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, tail STRING, at TIMESTAMP"
views:
  history: {kind: window_store, from: flights, key: [tail], time: at}
"""
DAYS = 195


@pytest.fixture
def lake(new_lake: NewLake) -> Lake:
    return new_lake(DECLARED)


def flights(day: int, count: int) -> list[Row]:
    at = NEW_YEAR + timedelta(days=day)
    each = [at + timedelta(seconds=n) for n in range(count)]
    return [{"id": day * 1_000 + n, "tail": f"N{n % 7}", "at": t} for n, t in enumerate(each)]


def sizes(lake: Lake) -> dict[int | None, int]:
    """Rows by slice."""
    return {s.number: s.row_count for s in slices_of(DeltaTable(lake.uri("history")))}


def files(lake: Lake) -> int:
    return len(DeltaTable(lake.uri("history")).file_uris())


def check(lake: Lake, rows: int) -> None:
    """The store is its query, the feed amounts to it, and a reader finds every row in order."""
    assert wrong(lake) == {}
    assert folded(lake.feed("history")) == counted(lake.stored("history"))
    times = [row["window_start"] for row in Reads(lake.project).window("history").all()]
    assert (len(times), times) == (rows, sorted(times))


def test_a_year_is_cut_where_it_is_full_and_stays_so() -> None:
    whole = Cuts.of({2013: 100}, {}, 100)
    assert (whole.years, whole.months) == (frozenset(), frozenset())
    assert Cuts.of({2013: 101, 2014: 5}, {}, 100).years == {2013}
    assert Cuts.of({2013: 60}, {201301: 41, 201401: 5}, 100).years == {2013}
    later = Cuts.of({201305: 1, 20140207: 1}, {}, 100)
    assert (later.years, later.months) == ({2013, 2014}, {201402})
    assert Cuts.of({2013: 101, 201305: 60}, {201305: 41}, 100).months == {201305}


def test_slices_of_any_length_are_in_the_order_of_their_begin() -> None:
    numbers = [201302, 2014, 20130105, 2013, 201301, 20130214]
    assert sorted(numbers, key=in_time) == [2013, 201301, 20130105, 201302, 20130214, 2014]


def test_a_sparse_history_of_many_days_is_one_slice(lake: Lake) -> None:
    for day in range(0, DAYS, 13):
        lake.put("flights", *(row for d in range(day, day + 13) for row in flights(d, 5)))
        lake.advance()
    assert sizes(lake) == {2013: DAYS * 5}
    assert files(lake) < StoreKept.slice_files
    check(lake, DAYS * 5)


def cut_at(monkeypatch: pytest.MonkeyPatch, rows: int, unordered: int) -> None:
    """Have slices of more rows cut, and of more than `unordered` be ordered."""
    monkeypatch.setattr(StoreKept, "tidied_rows", rows)
    monkeypatch.setattr(Slice, "unordered_rows", unordered)


def test_a_first_batch_of_many_rows_is_cut_at_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_at(monkeypatch, rows=100, unordered=10)
    lake.put("flights", *(row for day in range(60) for row in flights(day, 2 if day < 31 else 5)))
    lake.advance()
    found = sizes(lake)
    assert found.pop(201301) == 31 * 2
    assert found == {20130200 + day: 5 for day in range(1, 29)} | {201303: 5}
    check(lake, 31 * 2 + 29 * 5)


def test_files_are_bounded_by_the_rows_while_a_store_grows_day_by_day(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """180,000 rows of 195 days at a hundredth of the size, with the limits as much smaller."""
    cut_at(monkeypatch, rows=1_000, unordered=50)
    monkeypatch.setattr(StoreKept, "slice_files", 4)
    for day in range(0, DAYS, 8):
        lake.put("flights", *(row for d in range(day, min(day + 8, DAYS)) for row in flights(d, 9)))
        lake.advance()
    found = sizes(lake)
    assert found[2013] <= 1_000 + 8 * 9
    assert max(found.values()) == found[2013]
    assert len(found) <= 1 + 12
    assert files(lake) <= len(found) * 4
    maintain(lake.spark, lake.project, [lake.table("history")])
    assert files(lake) <= len(found) + 4
    check(lake, DAYS * 9)


def test_a_row_is_corrected_and_deleted_in_the_slice_that_it_lies_in(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_at(monkeypatch, rows=20, unordered=0)
    lake.put("flights", *flights(0, 15))
    lake.advance()
    lake.put("flights", *flights(1, 15))
    lake.advance()
    assert sizes(lake) == {2013: 15, 201301: 15}
    lake.put("flights", *flights(40, 8), {**flights(0, 1)[0], "id": 900})
    lake.advance()
    assert sizes(lake)[2013] in (14, 15)
    _, moved, gone, *_ = flights(0, 15)
    lake.put("flights", {**moved, "tail": "moved"}, gone=[gone, flights(1, 1)[0]])
    lake.advance()
    check(lake, 15 + 15 + 8 - 2)
    assert sum(sizes(lake).values()) == 36
