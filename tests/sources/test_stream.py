"""Stream delivery: whatever has arrived since the last run, each of it exactly once."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.sources.streamed import Streamed, declared
from tests.support.lake import counted, folded
from tests.support.landed import RUN, Landed, day, folder_of

from sluice.delta.log.position import Position
from sluice.delta.writing.commit import create
from sluice.engine import BatchReport
from sluice.errors import QualityStop, Retryable, UsageError
from sluice.operate.delivering import replay, to_replay
from sluice.operate.run import intervals_to_run, run
from sluice.sources import replacement

NOT_NULL = "expect: [{type: expect_column_values_to_not_be_null, column: v, on_failure: %s}]"


def test_streams_take_what_is_new_once(spark: SparkSession, tmp_path: Path) -> None:
    lake = Streamed(tmp_path, declared(), spark)
    lake.arrive(a_json=[{"id": 1}, {"id": 1}, {"id": 2}])
    (report,) = lake.take()
    assert (report.inserted, report.rows_in) == (3, 3)
    before = lake.versions("events", "events__arrivals", "events__intervals")
    (report,) = lake.take()
    assert report.outcome == "unchanged"
    assert lake.versions("events", "events__arrivals", "events__intervals") == before
    lake.arrive(b_json=[{"id": 1}])
    (report,) = lake.take()
    assert (report.inserted, report.rows_in) == (1, 1)
    assert counted(r["id"] for r in lake.values()) == counted([1, 1, 1, 2])
    assert folded(lake.feed("events")) == counted(lake.stored("events"))
    arrivals = DeltaTable(lake.uri("events__arrivals"))
    assert lake.head("events").position.inputs["shop.events__arrivals"].version == (  # type: ignore[union-attr]
        arrivals.version()
    )


def test_bad_rows_are_quarantined_by_arrival(spark: SparkSession, tmp_path: Path) -> None:
    lake = Streamed(tmp_path, declared("key: [id], " + NOT_NULL % "quarantine"), spark)
    lake.arrive(a_json='{"id":1,"v":1}\nnonsense\n')
    lake.take()
    lake.arrive(b_json='{"id":2}\n{"v":3}\n')
    lake.take()
    assert [q["reason"] for q in lake.quarantine()] == [
        "does not parse as the declared schema",
        "expected that v is not null",
        "key column id is null",
    ]
    assert list(lake.noted().values()) == [(2, 1, 1), (2, 0, 2)]
    assert lake.values() == [{"id": 1, "v": 1}]


def test_files_of_differing_columns_stream_too(spark: SparkSession, tmp_path: Path) -> None:
    lake = Streamed(tmp_path, declared(format_="csv"), spark)
    lake.arrive(a_csv="id,v\n1,1\n", b_csv="v,id,w\n2,2,x\n", c_csv_gz="id,v\n3,x\n")
    lake.take()
    assert lake.values() == [{"id": 1, "v": 1}, {"id": 2, "v": 2}]
    assert [q["reason"] for q in lake.quarantine()] == ["column v: x is not a valid INT"]
    parquet = Streamed(tmp_path / "p", declared(format_="parquet"), spark)
    parquet.arrive(a_parquet=pa.table({"v": [1.0], "id": [1]}), b_parquet=b"junk")
    parquet.take()
    assert parquet.values() == [{"id": 1, "v": 1}]
    assert parquet.quarantine()[0]["reason"].startswith("the file can't be read")


def test_stopped_rows_come_through_once_mended(spark: SparkSession, tmp_path: Path) -> None:
    lake = Streamed(tmp_path, declared(NOT_NULL % "stop"), spark)
    lake.arrive(a_json=[{"id": 1}])
    for _ in range(2):
        with pytest.raises(QualityStop):
            lake.take()
    lake.arrive(b_json=[{"id": 2, "v": 2}], a_json=[{"id": 1, "v": 1}])
    assert [r.inserted for r in lake.take()] == [1, 1]
    assert lake.values() == [{"id": 1, "v": 1}, {"id": 2, "v": 2}]


def test_files_that_went_away_leave_a_trace(spark: SparkSession, tmp_path: Path) -> None:
    lake = Streamed(tmp_path, declared(NOT_NULL % "stop"), spark)
    lake.arrive(a_json=[{"id": 1}])
    with pytest.raises(QualityStop):
        lake.take()
    (lake.landing / "in" / "a.json").unlink()
    lake.arrive(b_json=[{"id": 2, "v": 2}])
    lake.take()
    assert lake.values() == [{"id": 2, "v": 2}]
    (aside,) = lake.quarantine()
    assert aside["reason"] == "the file can't be read: it disappeared before it was read"
    assert aside["file"].endswith("a.json")


@pytest.mark.parametrize("extra", ["", "key: [id]"])
def test_a_crash_between_arrival_and_source_loses_and_doubles_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: str
) -> None:
    lake = Streamed(tmp_path, declared(extra), spark)
    original = replacement.write

    def crash_before(*_: object, **__: object) -> None:
        raise RuntimeError("power cut")

    def crash_after(*given: object, **named: object) -> None:
        original(*given, **named)  # type: ignore[arg-type]
        raise RuntimeError("power cut")

    for nth, crash in enumerate((crash_before, crash_after)):
        lake.arrive(**{f"f{nth}_json": [{"id": nth}, {"id": nth}]})
        with monkeypatch.context() as patched:
            patched.setattr(replacement, "write", crash)
            with pytest.raises(RuntimeError, match="power cut"):
                lake.take()
    lake.arrive(z_json=[{"id": 7}])
    lake.take()
    copies = 1 if extra else 2
    assert counted(r["id"] for r in lake.values()) == counted([0] * copies + [1] * copies + [7])


@pytest.mark.usefixtures("real_spark")
def test_a_delta_table_gives_columns_other_names(spark: SparkSession, tmp_path: Path) -> None:
    names = "names: {id: Id, at: OrderedAt}, key: [id], time: at"
    text = declared(names, "delta", "id INT, at TIMESTAMP, v INT", "t")
    lake = Landed(tmp_path, text.replace("delivery: stream, ", ""), spark)
    at = day(0).start
    rows = spark.createDataFrame([(1, at, 2)], "`Id` INT, `OrderedAt` TIMESTAMP, v INT")
    rows.write.format("delta").save(str(lake.landing / "t"))
    lake.deliver()
    assert lake.rows("events") == [{"id": 1, "at": at, "v": 2}]


@pytest.mark.usefixtures("real_spark")
def test_files_noted_by_an_earlier_version_are_known(spark: SparkSession, tmp_path: Path) -> None:
    """Structured Streaming wrote their paths as `file:/x`, and had a checkpoint."""
    lake = Streamed(tmp_path, declared(), spark)
    lake.arrive(**{"a b_json": [{"id": 1}]})
    found = spark.readStream.format("binaryFile").schema(
        "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
    )
    listed = found.load(str(lake.landing / "in")).selectExpr(
        *("path", "length", "modificationTime AS modified"),
        "timestamp_micros(1704067200000000) AS _sluice_arrived",
    )
    uri = lake.uri("events__arrivals")
    position = Position(0, "a", "create")
    create(uri, listed.schema, position)
    writer = listed.writeStream.format("delta").option(
        "checkpointLocation", lake.uri("events__checkpoint")
    )
    said = writer.option("userMetadata", Position(1, "b", "arrival").to_json())
    said.trigger(availableNow=True).start(uri).awaitTermination()
    assert DeltaTable(uri).to_pyarrow_table()["path"].to_pylist() == [
        f"file:{lake.landing}/in/a b.json"
    ]
    lake.take()
    lake.arrive(c_json=[{"id": 2}])
    lake.take()
    assert lake.take()[0].outcome == "unchanged"
    assert [r["id"] for r in lake.values()] == [1, 2]


def test_files_of_an_older_date_are_new_all_the_same(spark: SparkSession, tmp_path: Path) -> None:
    lake = Streamed(tmp_path, declared(), spark)
    lake.arrive(a_json=[{"id": 1}])
    lake.take()
    lake.arrive(b_json=[{"id": 2}])
    os.utime(lake.landing / "in" / "b.json", (0, 0))
    lake.take()
    assert [r["id"] for r in lake.values()] == [1, 2]


def test_nothing_has_arrived_yet(spark: SparkSession, tmp_path: Path) -> None:
    lake = Streamed(tmp_path, declared(), spark)
    assert lake.take() == []
    lake = Streamed(tmp_path / "b", declared("missing: fail"), spark)
    with pytest.raises(Retryable, match="nothing was delivered at"):
        lake.take()


def test_event_times_far_ahead_are_quarantined(spark: SparkSession, tmp_path: Path) -> None:
    lake = Streamed(tmp_path, declared("time: at", schema="id INT, at TIMESTAMP"), spark)
    now = datetime.now(UTC)
    times = [now + timedelta(hours=h) for h in (-90_000, 0, 23, 25)]
    lake.arrive(a_json=[{"id": i, "at": t.isoformat()} for i, t in enumerate(times)])
    lake.take()
    assert [r["id"] for r in lake.values()] == [0, 1, 2]


def test_streams_are_read_once_beside_intervals(spark: SparkSession, tmp_path: Path) -> None:
    daily = "  daily: {path: 'landing/{interval_start:%Y-%m-%d}/', format: json, schema: id INT}\n"
    lake = Streamed(tmp_path, declared() + daily, spark)
    lake.arrive(a_json=[{"id": 1}])
    for nth in range(2):
        lake.land(folder_of(nth), a_json=[{"id": nth}])
    pipeline = lake.project.pipelines["shop"]
    reports: list[BatchReport] = []
    run(lake.spark, lake.project, pipeline, [day(0), day(1)], reports.append)
    assert sorted(r.table for r in reports) == ["shop.daily", "shop.daily", "shop.events"]
    due = intervals_to_run(lake.project, pipeline, None, None, day(2).start)
    assert not {day(0), day(1)} & set(due)


def replayed(lake: Streamed) -> list[BatchReport]:
    table = lake.table("events")
    return list(replay(lake.spark, lake.project, table, to_replay(lake.project, table), RUN))


def test_streams_are_judged_again_after_a_fix(spark: SparkSession, tmp_path: Path) -> None:
    lake = Streamed(tmp_path, declared(NOT_NULL % "quarantine"), spark)
    lake.arrive(a_json=[{"id": 1, "v": 1}, {"id": 2}], b_json=[{"id": 3, "v": 3}])
    lake.take()
    lake.arrive(c_json=[{"id": 4, "v": 4}])
    lake.take()
    assert (len(lake.values()), len(lake.quarantine())) == (3, 1)
    at = lake.head("events").position.inputs  # type: ignore[union-attr]
    lake.arrive(a_json=[{"id": 1, "v": 1}, {"id": 2, "v": 2}])
    (report,) = replayed(lake)
    assert (report.inserted, report.deleted, lake.quarantine()) == (1, 0, [])
    assert lake.head("events").position.inputs == at  # type: ignore[union-attr]
    assert [report.outcome for report in lake.take()] == ["unchanged"]
    assert replayed(lake) == []


def test_streams_are_not_judged_without_all_files(spark: SparkSession, tmp_path: Path) -> None:
    lake = Streamed(tmp_path, declared(NOT_NULL % "quarantine"), spark)
    lake.arrive(a_json=[{"id": 2}], b_json=[{"id": 3, "v": 3}])
    lake.take()
    (lake.landing / "in" / "b.json").unlink()
    with pytest.raises(UsageError, match=r"in/b\.json arrived together with quarantined rows"):
        replayed(lake)
    assert len(lake.values()) == 1


def test_empty_files_are_read_once_they_have_rows(spark: SparkSession, tmp_path: Path) -> None:
    lake = Streamed(tmp_path, declared(format_="csv"), spark)
    lake.arrive(a_csv="", b_csv="id,v\n1,2\n")
    (report,) = lake.take()
    assert [w.partition("/in/")[2] for w in report.warnings] == [
        "a.csv is empty and is skipped until it has rows"
    ]
    assert lake.values() == [{"id": 1, "v": 2}]
    lake.arrive(a_csv="id,v\n3,4\n")
    (report,) = lake.take()
    assert report.warnings == ()
    assert lake.values() == [{"id": 1, "v": 2}, {"id": 3, "v": 4}]
