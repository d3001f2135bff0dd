"""A clock that was set back between two runs: nothing goes by it that must not."""

import os
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.sources.streamed import Streamed, declared
from tests.support.ageing import age
from tests.support.in_duckdb import wrong
from tests.support.lake import counted
from tests.support.landed import Landed, NewLanded, folder_of

from sluice.operate.maintain import maintain
from sluice.operate.verify import faults
from sluice.sources.files import FileStream

DECLARED = """
sources:
  events:
    path: "landing/{interval_start:%Y-%m-%d}/"
    format: json
    schema: id INT, v INT, at TIMESTAMP
    key: [id]
views:
  totals: {kind: cogroup, key: [v], streams: {e: {from: events, aggregates: {n: count(*)}}}}
  days:
    kind: cogroup
    key: [v]
    window: {type: tumbling, time: at, size: 1 day}
    retention: 1 day
    streams: {e: {from: events, aggregates: {n: count(*)}}}
"""
AHEAD = 400  # days


def event(id_: int, v: int, day: int) -> dict[str, object]:
    return {"id": id_, "v": v, "at": f"2024-01-{day:02}T12:00:00"}


@pytest.fixture
def lake(new_landed: NewLanded) -> Landed:
    """Two days that were delivered and followed by a clock that was more than a year ahead."""
    lake = new_landed(DECLARED)
    lake.land(folder_of(0), a_json=[event(1, 1, 1), event(2, 1, 1)])
    lake.land(folder_of(1), a_json=[event(1, 2, 2)])
    for file in lake.landing.rglob("*.json"):
        later = file.stat().st_mtime + AHEAD * 86_400
        os.utime(file, (later, later))
    for nth in (0, 1):
        lake.deliver(nth)
    lake.advance()
    for table in (Path(lake.uri("events")).parent).iterdir():
        for version in range(DeltaTable(table).version() + 1):
            age(str(table), version, days=-AHEAD)
    return lake


def test_a_run_by_a_clock_that_was_set_back_does_what_is_new_and_nothing_else(lake: Landed) -> None:
    assert {lake.deliver(nth)[0].outcome for nth in (0, 1)} == {"unchanged"}
    assert {report.outcome for report in lake.advance()} == {"unchanged"}
    lake.land(folder_of(0), a_json=[event(1, 7, 1), event(2, 3, 1)])
    lake.land(folder_of(2), a_json=[event(3, 1, 4)])
    for nth in (0, 2):
        assert lake.deliver(nth)[0].outcome == "committed"
    lake.advance()
    assert {row["id"]: row["v"] for row in lake.rows("events")} == {1: 2, 2: 3, 3: 1}
    assert counted(lake.rows("totals")) == counted({"v": v, "n": 1} for v in (1, 2, 3))
    assert [row["v"] for row in lake.rows("days")] == [1], "the others have expired"
    is_sound(lake)


def test_upkeep_by_a_clock_that_was_set_back_takes_nothing_that_is_read(lake: Landed) -> None:
    lake.land(folder_of(0), a_json=[event(1, 7, 1)])
    lake.deliver(0)
    maintain(lake.spark, lake.project, lake.project.graph.tables.values())
    lake.advance()
    is_sound(lake)


def test_what_arrives_by_a_clock_that_was_set_back_is_later_than_what_was_there(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a key without a `sequence`, what came last stands."""
    lake = Streamed(tmp_path, declared(extra="key: [id]"), spark)
    ahead = timedelta(days=AHEAD) // timedelta(microseconds=1)
    with monkeypatch.context() as clock:
        clock.setattr(FileStream, "_behind", lambda *_: ahead)
        lake.arrive(a_json=[{"id": 1, "v": 1}, {"id": 2, "v": 1}])
        lake.take()
    for nth in (2, 3):
        lake.arrive(**{f"{nth}_json": [{"id": 1, "v": nth}]})
        lake.take()
    assert lake.values() == [{"id": 1, "v": 3}, {"id": 2, "v": 1}]


def is_sound(lake: Landed) -> None:
    assert {report.outcome for report in lake.advance()} == {"unchanged"}
    assert wrong(lake, "totals") == {}
    for table in lake.project.graph.tables.values():
        assert not any(faults(lake.project, table).values())
