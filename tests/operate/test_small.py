"""Small deliveries and batches are computed without Spark; what is unknown there is left to it."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.support.lake import Row
from tests.support.landed import Landed, NewLanded, folder_of

from sluice.declare.settings import SparkSettings

DECLARED = """
sources:
  events:
    path: landing/events/{interval_start:%Y-%m-%d}/
    format: json
    schema: "id INT, who STRING, price DECIMAL(10, 2), at TIMESTAMP"
    key: [id]
    time: at
    expect: [{type: expect_column_values_to_be_between, column: price, min_value: 0,
      on_failure: quarantine}]
dimensions:
  things:
    path: landing/things/
    format: csv
    schema: "who STRING, town STRING"
    key: [who]
  moves:
    path: landing/things/
    format: csv
    schema: "who STRING, town STRING"
    key: [who]
    history: true
views:
  placed:
    kind: lookup
    from: events
    join: [{dimension: things, on: who = things.who, type: left}]
    select: {id: id, town: things.town, price: price, at: at}
  towns:
    kind: cogroup
    key: [town]
    streams: {sales: {from: placed, aggregates: {lines: count(*), spent: "$spent"}}}
  best: {kind: topk, from: placed, partition_by: [town], order_by: [price desc], limit: 2}
  latest: {kind: window_store, from: events, key: [who], time: at}
  steps:
    kind: over
    from: placed
    partition_by: [town]
    order_by: [at]
    select: {id: id, was: lag(price) OVER w}
"""
GOOD = [
    {"id": n, "who": who, "price": f"{n}.50", "at": f"2024-01-01T0{n}:00:00+02:00"}
    for n, who in enumerate(["ann", "bob", "cid", "ann"], 3)
]
BAD = {"id": 9, "who": "ann", "price": "-1", "at": "2024-01-01T12:00:00Z"}
MORE = "at TIMESTAMP, more MAP<INT, INT>"
ANSI = {"spark.sql.ansi.enabled": "false"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
VIEWS = ("placed", "towns", "best", "latest", "steps")


def declared(spent: str) -> str:
    return DECLARED.replace("$spent", spent)


@pytest.fixture
def lake(new_landed: NewLanded) -> Landed:
    return new_landed(declared("sum(price)"))


def deliver(lake: Landed, *rows: Row) -> None:
    lake.land("events/2024-01-01", a_json=[*rows])
    lake.land("things", a_csv="who,town\nann,Bern\nbob,Graz\n")
    lake.load()
    lake.deliver()
    lake.advance()


def test_a_small_project_needs_no_spark(lake: Landed) -> None:
    deliver(lake, *GOOD)
    deliver(lake, *GOOD[1:], {**GOOD[0], "price": "8.25"})
    assert [r["reason"] for r in lake.quarantine()] == []
    assert {r["town"]: str(r["spent"]) for r in lake.rows("towns")} == {
        "Bern": "14.75",
        "Graz": "4.50",
        None: "5.50",
    }
    assert not lake.spark.is_started


def test_a_large_source_is_read_only_where_a_day_or_its_windows_lie(new_landed: NewLanded) -> None:
    """Days out of order, then a correction: the source has more rows than are computed here."""
    path = "path: 'landing/events/{interval_start:%Y-%m-%d}/', format: json, time: at"
    source = f"{{{path}, schema: 'who STRING, at TIMESTAMP, n INT'}}"
    view = "{kind: window_store, from: events, key: [who], time: at}"
    lake = new_landed(f"sources:\n  events: {source}\nviews:\n  latest: {view}\n")
    lake.limit(read_here_bytes=0, reread_rows=50)

    def bring(nth: int, n: int) -> None:
        at = f"2024-01-0{nth + 1}T{{:02}}:00:00Z"
        rows = [{"who": who, "at": at.format(h), "n": n} for h in range(10) for who in "ab"]
        lake.land(f"events/{folder_of(nth)}", a_json=rows)
        lake.deliver(nth)
        lake.advance()

    for nth, n in ((2, 1), (1, 1), (0, 1), (1, 2)):
        bring(nth, n)
    assert not lake.spark.is_started
    assert sorted(r["n"] for r in lake.rows("latest")) == [1] * 40 + [2] * 20


def test_the_history_of_a_small_dimension_needs_no_spark(lake: Landed) -> None:
    for town in ("Bern", "Rome"):
        lake.land("things", a_csv=f"who,town\nann,{town}\nbob,Graz\n")
        lake.load("moves")
    assert not lake.spark.is_started
    ends = sorted((r["who"], r["town"], r["is_current"]) for r in lake.rows("moves"))
    assert ends == [("ann", "Bern", False), ("ann", "Rome", True), ("bob", "Graz", True)]


def test_times_of_parquet_in_nanoseconds_need_no_spark(new_landed: NewLanded) -> None:
    path = "path: 'landing/events/{interval_start:%Y-%m-%d}/', format: parquet"
    schema = "schema: 'id INT, at TIMESTAMP, price DECIMAL(10, 2)'"
    lake = new_landed(f"sources:\n  events: {{{path}, {schema}}}\n")
    nanos = pa.array([1_709_614_800_000_000_123, -1, None], pa.timestamp("ns"))
    prices = pa.array([Decimal("1.500"), Decimal("2.000"), Decimal("1.005")])
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "at": nanos, "price": prices})
    lake.land("events/2024-01-01", a_parquet=rows)
    (report,) = lake.deliver()
    assert not lake.spark.is_started
    times = {r["id"]: r["at"] for r in lake.rows("events")}
    assert times == {1: datetime(2024, 3, 5, 5, tzinfo=UTC), 2: EPOCH - timedelta(microseconds=1)}
    assert report.warnings[0].startswith("shop.events: 2 time(s) had digits beyond a microsecond")
    assert [r["reason"] for r in lake.quarantine()] == [
        "column price: 1.005 is not a valid DECIMAL(10, 2)"
    ]


def test_what_it_keeps_is_what_spark_would_keep(lake: Landed, tmp_path: Path) -> None:
    other = Landed(tmp_path / "other", declared("sum(price)"), lake.session, small_batches="spark")
    for each in (lake, other):
        deliver(each, *GOOD, BAD)
    assert other.spark.is_started
    for name in VIEWS:
        assert lake.rows(name) == other.rows(name)
    ours, theirs = (
        [{**r, "quarantined_at": 0, "file": 0} for r in of.quarantine()] for of in (lake, other)
    )
    assert ours == theirs
    assert len(ours) == 1


@pytest.mark.usefixtures("real_spark")
def test_what_is_unknown_here_is_left_to_spark(new_landed: NewLanded) -> None:
    lake = new_landed(declared("approx_count_distinct(price)"))
    deliver(lake, *GOOD)
    assert lake.spark.is_started
    assert {r["town"]: r["spent"] for r in lake.rows("towns")} == {"Bern": 2, "Graz": 1, None: 1}


@pytest.mark.usefixtures("real_spark")
def test_a_delivery_that_is_left_to_spark_is_judged_once(new_landed: NewLanded) -> None:
    """What the interpreter can't do is found before the gate keeps its results."""
    text = declared("sum(price)").replace(
        "price DECIMAL(10, 2)", "price DECIMAL(10, 2), more MAP<INT, INT>"
    )
    lake = new_landed(text)
    deliver(lake, *({**row, "more": {"7": 1}} for row in GOOD))
    assert lake.spark.is_started
    results = DeltaTable(str(lake.folder / "lake" / "__quality" / "results")).to_pyarrow_table()
    kept = [r for r in results.to_pylist() if r["table"] == "events"]
    assert len(kept) == 1


def test_settings_that_concern_answers_leave_all_to_spark() -> None:
    assert not SparkSettings(commit="spark").computes_here
    assert not SparkSettings(conf=ANSI).computes_here
    assert SparkSettings(conf={"spark.sql.shuffle.partitions": 8}).computes_here
