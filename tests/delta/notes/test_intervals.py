"""What is noted of a delivery never outlives the rows that it speaks of."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.delta.tables import ID_AND_V, Small

from sluice.delta import intervals
from sluice.delta.intervals import (
    MANY_FILES,
    Note,
    check_kept,
    deliveries,
    record,
    recount,
    replaced_by,
    withdraw,
)
from sluice.delta.note_tables import append_rows, read_rows, replace_rows
from sluice.delta.writing.commit import commit_arrow
from sluice.errors import DeliveriesLost, UsageError
from sluice.language.interval import Interval

HOUR = timedelta(hours=1)


def days(first: int, last: int) -> Interval:
    return Interval(datetime(2024, 1, first, tzinfo=UTC), datetime(2024, 1, last, tzinfo=UTC))


def delivery(interval: Interval, files: str, batch: int) -> Note:
    return Note(interval, files, 3, 2, 1, batch)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "sales__intervals")


def test_a_delivery_is_noted_in_place_of_those_inside_it(uri: str) -> None:
    assert deliveries(uri) == []
    for number in (1, 2, 4):
        record(uri, delivery(days(number, number + 1), f"files {number}", number))
    record(uri, delivery(days(1, 3), "both", 5))
    assert deliveries(uri) == [delivery(days(1, 3), "both", 5), delivery(days(4, 5), "files 4", 4)]


def test_a_withdrawn_delivery_counts_as_never_made(uri: str) -> None:
    withdraw(uri, days(1, 2))
    record(uri, delivery(days(1, 2), "one", 1))
    record(uri, delivery(days(2, 3), "two", 2))
    withdraw(uri, days(1, 2))
    withdraw(uri, days(5, 6))
    assert [d.files for d in deliveries(uri)] == ["two"]
    assert DeltaTable(uri).version() == 2
    withdraw(uri, days(2, 3))
    assert deliveries(uri) == []


def test_a_withdrawal_reads_the_notes_of_its_time_alone(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2, 3):
        record(uri, delivery(days(number, number + 1), f"files {number}", number))
    read: list[int] = []

    def counted(*which: Any) -> list[dict[str, Any]]:
        rows = read_rows(*which)
        read.append(len(rows))
        return rows

    monkeypatch.setattr(intervals, "read_rows", counted)
    monkeypatch.setattr(intervals, "notes", None)
    withdraw(uri, days(2, 3))
    monkeypatch.undo()
    assert read == [1]
    assert [d.files for d in deliveries(uri)] == ["files 1", "files 3"]


def test_a_late_note_does_not_replace_that_of_a_later_batch(uri: str) -> None:
    record(uri, delivery(days(1, 2), "newer", 6))
    record(uri, delivery(days(1, 2), "older", 5))
    assert [d.files for d in deliveries(uri)] == ["newer"]
    record(uri, delivery(days(2, 3), "another day", 4))
    assert [d.files for d in deliveries(uri)] == ["newer", "another day"]


def test_an_interval_that_cuts_through_a_delivery_is_refused(uri: str) -> None:
    record(uri, delivery(days(1, 3), "both", 1))
    with pytest.raises(UsageError, match="overlaps only a part"):
        replaced_by(deliveries(uri), days(1, 2), "sales")


def test_a_note_of_a_batch_that_the_table_never_had_is_reported(uri: str, tmp_path: Path) -> None:
    table = Small.create(tmp_path, ID_AND_V, ["id"], commit_arrow)
    record(uri, delivery(days(1, 2), "one", table.head.next_batch))
    with pytest.raises(DeliveriesLost, match=r"batch 1 was .* is only at batch 0"):
        check_kept("sales", deliveries(uri), table.head)
    table.commit(("insert", {"id": 1, "v": "a"}))
    check_kept("sales", deliveries(uri), table.head)
    with pytest.raises(DeliveriesLost, match="sales"):
        check_kept("sales", deliveries(uri), None)
    check_kept("sales", [], None)
    record(uri, delivery(days(3, 4), "three", 2))
    record(uri, delivery(days(4, 5), "before it", 0))
    with pytest.raises(DeliveriesLost, match="batch 2 was"):
        check_kept("sales", deliveries(uri), table.head)


def test_notes_of_many_writers_at_once_are_all_kept(tmp_path: Path) -> None:
    replaced, appended = str(tmp_path / "replaced"), str(tmp_path / "appended")
    barrier = threading.Barrier(4)

    def write(number: int) -> None:
        rows = pa.table({"writer": [number] * 2, "n": [1, 2]})
        barrier.wait()
        for _ in range(3):
            replace_rows(replaced, rows, f"writer = {number}")
            append_rows(appended, rows)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(r["writer"] for r in read_rows(replaced)) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert len(read_rows(appended)) == 24


def test_reading_what_was_delivered_costs_the_same_after_years(uri: str) -> None:
    start = datetime(2020, 1, 1, tzinfo=UTC)
    spans = [Interval(start + n * HOUR, start + (n + 1) * HOUR) for n in range(MANY_FILES + 3)]
    for number, span in enumerate(spans):
        record(uri, delivery(span, f"files {number}", number))
    assert [d.interval for d in deliveries(uri)] == spans
    assert len(DeltaTable(uri).file_uris()) == 4


def test_a_correction_of_counts_keeps_a_note_that_comes_meanwhile(uri: str) -> None:
    record(uri, delivery(days(1, 2), "one", 1))
    stored = {days(1, 2).start: 1}

    def counted() -> intervals.Counts:
        found = dict(stored)
        if len(stored) == 1:  # the first time: a run delivers another day after the count
            stored[days(2, 3).start] = 2
            record(uri, delivery(days(2, 3), "two", 2))
        return {}, found

    recount(uri, counted)
    assert [(d.files, d.rows_accepted) for d in deliveries(uri)] == [("one", 1), ("two", 2)]
    version = DeltaTable(uri).version()
    recount(uri, counted)
    assert DeltaTable(uri).version() == version
