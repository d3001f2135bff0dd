"""Interval delivery: in whatever order things come, the table is what was delivered last."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.support.lake import Row, counted, folded, frozen
from tests.support.landed import RUN, Landed, NewLanded, day, folder_of

from sluice.delta.intervals import NO_INTERVAL
from sluice.errors import ConfigError, UsageError
from sluice.language.interval import Interval
from sluice.operate.delivering import replay, to_replay
from sluice.read.status import status

SCHEMA = "id INT, v INT, s INT"
CHANGE = "{column: op, insert: [c], update: [u], delete: [d], update_before: [b], ignore: [x]}"
OPS = ("c", "c", "u", "d", "b", "x")
Delivered = dict[Interval, list[Row]]
Oracle = Callable[[Delivered], Counter[Any]]


def declared(extra: str = "", schema: str = SCHEMA, format_: str = "json", path: str = "") -> str:
    path = path or "landing/{interval_start:%Y-%m-%d}/"
    more = f", {extra}" if extra else ""
    return f"sources:\n  events: {{path: '{path}', format: {format_}, schema: '{schema}'{more}}}\n"


def latest_of_key(delivered: Delivered) -> Counter[Any]:
    """The last row of each key by s, interval and place; none where that is a delete."""
    last: dict[int, tuple[Any, Row]] = {}
    for interval in sorted(delivered):
        for place, row in enumerate(delivered[interval]):
            if row.get("op") == "x":
                continue
            rank = (row["s"] is not None, row["s"] or 0, interval.start, place)
            if row["id"] not in last or rank >= last[row["id"]][0]:
                last[row["id"]] = rank, row
    return shown(row for _, row in last.values() if row.get("op") not in ("d", "b"))


def every_row(delivered: Delivered) -> Counter[Any]:
    return shown(row for rows in delivered.values() for row in rows)


def multiset(delivered: Delivered) -> Counter[Any]:
    """Inserts less deletes of each row, whichever came first."""
    total: Counter[Any] = Counter()
    for row in (row for rows in delivered.values() for row in rows if row["op"] != "x"):
        total[frozen(visible(row))] += -1 if row["op"] in ("d", "b") else 1
    return +total


def visible(row: Row) -> Row:
    return {c: row.get(c) for c in ("id", "v", "s")}


def shown(rows: Any) -> Counter[Any]:
    return counted(visible(row) for row in rows)


@dataclass(frozen=True)
class Kind:
    extra: str
    oracle: Oracle
    has_change: bool = False

    @property
    def schema(self) -> str:
        return f"{SCHEMA}, op STRING" if self.has_change else SCHEMA


KINDS = {
    "keyed": Kind("key: [id], sequence: [s]", latest_of_key),
    "keyless": Kind("", every_row),
    "keyed changes": Kind(f"key: [id], sequence: [s], change: {CHANGE}", latest_of_key, True),
    "keyless changes": Kind(f"change: {CHANGE}", multiset, True),
}

small = st.integers(0, 2)
rows = st.lists(
    st.fixed_dictionaries(
        {"id": small, "v": small, "s": st.sampled_from([None, 1, 2]), "op": st.sampled_from(OPS)}
    ),
    max_size=6,
)
intervals = st.sampled_from([day(0), day(1), day(0, 2), day(2), day(1, 2)])
histories = st.lists(st.tuples(intervals, rows, st.integers(0, 6)), min_size=3, max_size=5)


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],  # each step is a Spark job: nothing is shrunk
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(history=histories)
def test_any_history_of_deliveries_ends_in_what_stands(
    kind: str,
    history: list[tuple[Interval, list[Row], int]],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    that = KINDS[kind]
    lake = Landed(tmp_path_factory.mktemp("lake"), declared(that.extra, that.schema), spark)
    delivered: Delivered = {}
    for interval, rows_, cut in history:
        found = rows_ if that.has_change else [visible(row) for row in rows_]
        land(lake, interval, found, cut)
        if any(d.overlaps(interval) and not interval.covers(d) for d in delivered):
            with pytest.raises(UsageError, match="overlaps only a part"):
                lake.ingest(interval)
            continue
        lake.ingest(interval)
        delivered = {i: r for i, r in delivered.items() if not interval.covers(i)}
        delivered[interval] = found
        assert counted(lake.rows("events")) == that.oracle(delivered)
        assert lake.noted() == {i: (len(r), len(r), 0) for i, r in delivered.items()}
    if delivered:
        assert folded(lake.feed("events")) == counted(lake.stored("events"))
        assert_repeats_commit_nothing(lake, delivered)


def land(lake: Landed, interval: Interval, found: list[Row], cut: int) -> None:
    """The rows in two files."""
    folder = f"{interval.start:%Y-%m-%d}"
    lake.land(folder, a_json=found[:cut], b_json=found[cut:])


def assert_repeats_commit_nothing(lake: Landed, delivered: Delivered) -> None:
    tables = lake.stored_names("events") or ["events"]
    before = lake.versions(*tables)
    for interval, found in delivered.items():
        land(lake, interval, found, 0)  # the same rows, cut into files otherwise
        lake.ingest(interval)
    after = {t: lake.head(t).data_version for t in tables}
    assert all(after[t] <= before[t] for t in tables)
    assert {r.outcome for r in lake.ingest(interval)} == {"unchanged"}


def test_maps_and_nested_values_have_an_identity_too(spark: SparkSession, tmp_path: Path) -> None:
    schema = "id INT, m MAP<STRING, INT>, n ARRAY<STRUCT<a: INT>>"
    keyless, keyed = (
        Landed(tmp_path / n, declared(e, schema), spark) for n, e in (("a", ""), ("b", "key: [id]"))
    )
    for lake in (keyless, keyed):
        lake.land(folder_of(0), a_json=[{"id": 1, "m": {"x": 1, "y": 2}, "n": [{"a": 1}]}])
        lake.deliver()
        lake.land(folder_of(0), b_json=[{"id": 1, "m": {"x": 1, "y": 2}, "n": [{"a": 1}]}])
        assert lake.deliver()[0].inserted == 0
        assert [r["id"] for r in lake.rows("events")] == [1]


def test_words_that_are_not_declared_are_quarantined(new_landed: NewLanded) -> None:
    lake = new_landed(declared(f"key: [id], change: {CHANGE}", f"{SCHEMA}, op STRING"))
    lake.land(folder_of(0), a_json=[{"id": 1, "op": "c"}, {"id": 2, "op": "q"}, {"id": 3}])
    lake.deliver()
    assert [r["id"] for r in lake.rows("events")] == [1]
    assert [q["reason"] for q in lake.quarantine()] == [
        "column op: null is none of c, u, d, b, x",
        "column op: q is none of c, u, d, b, x",
    ]
    assert lake.noted() == {day(0): (3, 1, 2)}


def test_a_schedule_made_coarser_replaces_what_lies_inside(new_landed: NewLanded) -> None:
    lake = new_landed(declared())
    for nth in range(3):
        lake.land(folder_of(nth), a_json=[{"id": nth}])
        lake.deliver(nth)
    lake.land(folder_of(0), a_json=[{"id": 10}])
    lake.ingest(day(0, 2))
    assert sorted(r["id"] for r in lake.rows("events")) == [2, 10]
    assert list(lake.noted()) == [day(0, 2), day(2)]
    with pytest.raises(UsageError) as refused:
        lake.deliver(1)
    assert "[2024-01-02, 2024-01-03) overlaps only a part of [2024-01-01, 2024-01-03)" in str(
        refused.value
    )


def test_rows_of_files_that_hold_many_intervals_are_selected_by_time(new_landed: NewLanded) -> None:
    lake = new_landed(declared("time: at", "id INT, at TIMESTAMP", "csv", "landing/all/"))
    lake.land("all", a_csv="id,at\n1,2024-01-01\n2,2024-01-01T23:59:59.999999\n3,2024-01-02\n")
    lake.deliver(0)
    assert sorted(r["id"] for r in lake.rows("events")) == [1, 2]
    lake.deliver(1)
    assert sorted(r["id"] for r in lake.rows("events")) == [1, 2, 3]
    assert lake.noted() == {day(0): (2, 2, 0), day(1): (1, 1, 0)}


def test_rows_without_a_time_are_quarantined_once(new_landed: NewLanded) -> None:
    lake = new_landed(declared("time: at", "id INT, at TIMESTAMP", "csv", "landing/all/"))
    bad = "4,\n5,nonsense\n5,nonsense\n"
    lake.land("all", a_csv=f"id,at\n1,2024-01-01\n3,2024-01-02\nx,2024-01-02\n{bad}")
    for nth in (1, 0, 1, 2):
        (report,) = lake.deliver(nth)
        assert report.outcome == "unchanged" or report.warnings == (
            "shop.events: 3 row(s) without an event time are in quarantine, in no interval",
        )
    assert [(q["raw"], q["_sluice_interval"]) for q in lake.quarantine()] == [
        ('{"id":4,"at":null}', NO_INTERVAL),
        ('{"id":"5","at":"nonsense"}', NO_INTERVAL),
        ('{"id":"5","at":"nonsense"}', NO_INTERVAL),
        ('{"id":"x","at":"2024-01-02"}', day(1).start),
    ]
    assert lake.quarantine()[0]["reason"] == "column at is null, so it is in no interval"
    assert lake.noted() == {day(0): (1, 1, 0), day(1): (2, 1, 1), day(2): (0, 0, 0)}
    (known,) = status(lake.project, [lake.table("events")])
    assert known.quarantined == 4
    lake.rebuild()
    assert len(lake.quarantine()) == 4


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("few", [1, 10_000])
def test_spark_quarantines_a_row_without_a_time_once_too(new_landed: NewLanded, few: int) -> None:
    lake = new_landed(declared("time: at", "id INT, at TIMESTAMP", "csv", "landing/all/"))
    lake.limit(computed_here_bytes=-1, collected_bytes=few)
    lake.land("all", a_csv="id,at\n1,2024-01-01\n3,2024-01-02\nx,2024-01-02\n4,\n5,nonsense\n")
    for nth in (1, 0):
        assert lake.deliver(nth)[0].engine == "spark: 0.0 MB are read at once"
    assert [q["_sluice_interval"] for q in lake.quarantine()] == [NO_INTERVAL] * 2 + [day(1).start]
    assert lake.noted() == {day(0): (1, 1, 0), day(1): (2, 1, 1)}


def test_rows_without_a_time_are_replaced_by_any_delivery(new_landed: NewLanded) -> None:
    lake = new_landed(declared("time: at", "id INT, at TIMESTAMP", "csv", "landing/all/"))
    lake.land("all", a_csv="id,at\n1,2024-01-01\n3,2024-01-02\n4,\n5,nonsense\n")
    for nth in range(2):
        lake.deliver(nth)
    table = lake.table("events")
    assert to_replay(lake.project, table) == [day(1)]
    lake.land("all", a_csv="id,at\n1,2024-01-01\n3,2024-01-02\n4,\n5,2024-01-01\n")
    lake.deliver(1)
    assert [q["raw"] for q in lake.quarantine()] == ['{"id":4,"at":null}']
    lake.deliver(0)
    assert sorted(r["id"] for r in lake.rows("events")) == [1, 3, 5]
    assert [q["raw"] for q in lake.quarantine()] == ['{"id":4,"at":null}']
    lake.land("all", a_csv="id,at\n1,2024-01-01\n3,2024-01-02\n")
    tuple(replay(lake.spark, lake.project, table, to_replay(lake.project, table), RUN))
    assert lake.quarantine() == []


def test_a_time_far_ahead_of_its_interval_is_quarantined(new_landed: NewLanded) -> None:
    schema = "id INT, at TIMESTAMP"
    lake = new_landed(declared("time: at, max_ahead: 2 hours", schema))
    lake.land(
        folder_of(0),
        a_json=[
            {"id": 1, "at": "2024-01-02T02:00:00"},
            {"id": 2, "at": "2024-01-02T02:00:00.000001"},
            {"id": 3, "at": "1999-01-01"},
            {"id": 4},
        ],
    )
    lake.deliver()
    assert sorted(r["id"] for r in lake.rows("events")) == [1, 3, 4]
    assert [q["reason"] for q in lake.quarantine()] == [
        "column at is more than 2 hours ahead of the interval"
    ]


def test_placeholders_are_filled_in_the_zone_of_the_schedule(new_landed: NewLanded) -> None:
    lake = new_landed(declared())
    head = 'pipeline: shop\nschedule: "@daily"\ntimezone: Asia/Tokyo\nstart_date: 2024-01-01\n'
    lake.declare(head + declared())
    lake.land("2024-01-02", a_json=[{"id": 1}])
    start = datetime(2024, 1, 1, 15, tzinfo=UTC)
    lake.ingest(Interval(start, datetime(2024, 1, 2, 15, tzinfo=UTC)))
    assert [r["id"] for r in lake.rows("events")] == [1]


@pytest.mark.usefixtures("real_spark")
def test_delta_tables_are_delivered_by_time_or_path(spark: SparkSession, tmp_path: Path) -> None:
    schema = "id INT, at TIMESTAMP"
    by_time = Landed(
        tmp_path / "a", declared("time: at, key: [id]", schema, "delta", "landing/t"), spark
    )
    frame = "SELECT id, TIMESTAMP'2024-01-01' + make_interval(0, 0, 0, id) AS at FROM range(0, 3)"
    spark.sql(frame).write.format("delta").save(str(by_time.landing / "t"))
    by_time.deliver(1)
    assert [r["id"] for r in by_time.rows("events")] == [1]
    by_path = Landed(tmp_path / "b", declared("", "id BIGINT", "delta"), spark)
    spark.sql(frame).write.format("delta").save(str(by_path.landing / folder_of(0)))
    by_path.deliver(0)
    (report,) = by_path.deliver(1)
    assert len(by_path.rows("events")) == 3
    assert report.warnings == (
        "shop.events: nothing was delivered for 2024-01-02; the interval has no rows",
    )


def test_a_changed_definition_is_refused(new_landed: NewLanded) -> None:
    lake = new_landed(declared("key: [id]"))
    lake.land(folder_of(0), a_json=[{"id": 1}])
    lake.deliver()
    head = 'pipeline: shop\nschedule: "@daily"\nstart_date: 2024-01-01\n'
    lake.declare(head + declared("key: [id, v]"))
    with pytest.raises(ConfigError, match=r"definition .*: key \[id\] -> \[id, v\]") as refused:
        lake.deliver(1)
    assert refused.value.hint == (
        "run `sluice rebuild shop.events`, or `sluice rebuild --changed` for every such table; "
        "or revert the change"
    )


def test_types_of_every_kind_come_through(new_landed: NewLanded) -> None:
    table = pa.table({"b": [True], "x": [b"\x00\xff"], "f": [1.5], "l": [[1, None]]})
    schema = "b BOOLEAN, x BINARY, f DOUBLE, l ARRAY<BIGINT>"
    lake = new_landed(declared("", schema, "parquet"))
    lake.land(folder_of(0), a_parquet=table)
    lake.deliver()
    (row,) = lake.rows("events")
    assert row == {"b": True, "x": b"\x00\xff", "f": 1.5, "l": [1, None]}
