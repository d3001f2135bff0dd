"""An interval that had rows is not emptied by files that are gone or broken, unless it is said."""

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.support.landed import ALLOWED, RUN, Landed, NewLanded, day, folder_of

from sluice.errors import QualityStop, Retryable
from sluice.operate.delivering import replay, to_replay
from sluice.operate.rebuild import rebuild

ROWS = [{"id": 1, "v": 1}, {"id": 2, "v": 2}]
BAD = [{"id": 3, "v": -1}, {"id": 4, "v": -2}, {"id": 5, "v": -3}]
POSITIVE = (
    "{type: expect_column_values_to_be_between, column: v, min_value: 0, on_failure: quarantine}"
)


def declared(extra: str = "", path: str = "landing/{interval_start:%Y-%m-%d}/") -> str:
    more = f", {extra}" if extra else ""
    return f"sources:\n  events: {{path: '{path}', schema: 'id INT, v INT'{more}}}\n"


def delivered(folder: Path, session: SparkSession, extra: str = "", **how: str) -> Landed:
    """Two rows of the first day."""
    lake = Landed(folder, declared(extra or "format: json", **how), session)
    lake.land(folder_of(0), a_json=ROWS)
    lake.deliver()
    return lake


def test_a_day_whose_folder_is_gone_stops_with_its_count_until_it_may_be_empty(
    tmp_path: Path, spark: SparkSession
) -> None:
    lake = delivered(tmp_path, spark)
    shutil.rmtree(lake.landing)
    with pytest.raises(
        QualityStop, match=r"2024-01-02\) has 2 rows, and no file at .* was delivered now"
    ) as e:
        lake.deliver()
    assert "--allow-empty" in e.value.hint
    assert "`missing: empty`" in e.value.hint
    assert (len(lake.rows("events")), lake.noted()) == (2, {day(0): (2, 2, 0)})
    (report,) = lake.deliver(run=ALLOWED)
    assert (report.deleted, lake.rows("events"), lake.noted()) == (2, [], {day(0): (0, 0, 0)})
    assert lake.deliver()[0].outcome == "unchanged"


def test_missing_files_may_be_declared_as_none(tmp_path: Path, spark: SparkSession) -> None:
    lake = delivered(tmp_path, spark, "format: json, missing: empty")
    shutil.rmtree(lake.landing)
    (report,) = lake.deliver()
    assert (report.deleted, report.warnings) == (2, ())


@pytest.mark.parametrize(("missing", "is_unusual"), [("empty", False), ("warn", True)])
def test_missing_files_are_no_unusual_count_where_the_source_expects_them(
    new_landed: NewLanded, *, missing: str, is_unusual: bool
) -> None:
    lake = new_landed(declared(f"format: json, missing: {missing}"))
    for nth in range(9):
        lake.land(folder_of(nth), a_json=ROWS * 40)
        lake.deliver(nth)
    (absent,) = lake.deliver(9)
    assert any("0 rows arrived, usually 80" in said for said in absent.warnings) is is_unusual
    lake.land(folder_of(10), a_json="")
    (empty,) = lake.deliver(10)
    assert any("0 rows arrived, usually 80" in said for said in empty.warnings), "there is a file"


def test_failing_missing_files_may_be_allowed_once(tmp_path: Path, spark: SparkSession) -> None:
    lake = delivered(tmp_path, spark, "format: json, missing: fail")
    shutil.rmtree(lake.landing)
    with pytest.raises(QualityStop, match="has 2 rows"):
        lake.deliver()
    assert lake.deliver(run=ALLOWED)[0].deleted == 2
    with pytest.raises(Retryable, match="nothing was delivered at"):
        lake.deliver(1)
    assert lake.deliver(1, run=ALLOWED)[0].rows_in == 0


@pytest.mark.parametrize("missing", ["warn", "empty"])
def test_a_file_that_was_cut_off_takes_no_row_away(new_landed: NewLanded, missing: str) -> None:
    lake = new_landed(declared(f"format: parquet, missing: {missing}"))
    lake.land(folder_of(0), a_parquet=pa.table({"id": [1, 2], "v": [1, 2]}))
    lake.deliver()
    file = lake.landing / folder_of(0) / "a.parquet"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(
        QualityStop, match=r"none of 1 now delivered can be used; e.g. in .*a.parquet"
    ):
        lake.deliver()
    assert (len(lake.rows("events")), lake.quarantine()) == (2, [])


def test_nor_do_rows_that_all_go_to_quarantine(tmp_path: Path, spark: SparkSession) -> None:
    lake = delivered(tmp_path, spark, f"format: json, expect: [{POSITIVE}]")
    lake.land(folder_of(0), a_json=BAD)
    with pytest.raises(QualityStop, match="has 2 rows, and none of 3 now delivered can be used"):
        lake.deliver()
    assert (len(lake.rows("events")), lake.quarantine()) == (2, [])
    (report,) = lake.deliver(run=ALLOWED)
    assert (report.deleted, report.quarantined) == (2, 3)


def test_a_day_that_had_no_row_may_have_bad_ones(new_landed: NewLanded) -> None:
    lake = new_landed(declared(f"format: json, expect: [{POSITIVE}]"))
    lake.deliver()
    lake.land(folder_of(0), a_json=BAD)
    assert lake.deliver()[0].quarantined == 3


def test_files_without_rows_say_that_there_are_none(tmp_path: Path, spark: SparkSession) -> None:
    lake = delivered(tmp_path, spark)
    lake.land(folder_of(0), a_json="")
    assert lake.deliver()[0].deleted == 2


def test_rows_that_left_files_of_many_intervals_are_missed_too(new_landed: NewLanded) -> None:
    text = declared("format: json, time: at", path="landing/").replace(
        "v INT", "v INT, at TIMESTAMP"
    )
    lake = new_landed(text)
    rows = [{"id": n, "v": n, "at": f"2024-01-0{n}T10:00:00"} for n in (1, 2)]
    lake.land("", a_json=rows)
    for nth in (0, 1):
        lake.deliver(nth)
    lake.land("", a_json=rows[1:])
    with pytest.raises(QualityStop, match=r"has 1 row, and no row at .* was delivered now"):
        lake.deliver(0)
    assert lake.deliver(1)[0].outcome != "failed"
    assert len(lake.rows("events")) == 2


def test_a_source_with_a_key_keeps_its_rows_as_well(tmp_path: Path, spark: SparkSession) -> None:
    lake = delivered(tmp_path, spark, "format: json, key: [id]")
    shutil.rmtree(lake.landing)
    with pytest.raises(QualityStop, match="has 2 rows"):
        lake.deliver()
    assert len(lake.rows("events")) == 2
    lake.deliver(run=ALLOWED)
    assert lake.rows("events") == []


def test_fruitless_replays_keep_what_was_noted(tmp_path: Path, spark: SparkSession) -> None:
    lake = delivered(tmp_path, spark, f"format: json, expect: [{POSITIVE}]")
    lake.land(folder_of(0), a_json=[*ROWS, *BAD])
    lake.deliver()
    lake.land(folder_of(0), a_json=BAD)
    events = lake.table("events")
    days = to_replay(lake.project, events)
    with pytest.raises(QualityStop, match="none of 3"):
        list(replay(lake.spark, lake.project, events, days, RUN))
    assert (lake.noted(), len(lake.rows("events"))) == ({day(0): (5, 2, 3)}, 2)
    list(replay(lake.spark, lake.project, events, days, ALLOWED))
    assert (lake.noted(), lake.rows("events")) == ({day(0): (3, 0, 3)}, [])


def test_fruitless_rebuilds_change_nothing(tmp_path: Path, spark: SparkSession) -> None:
    lake = delivered(tmp_path, spark)
    (lake.folder / "config" / "pipelines" / "shop.yaml").write_text(
        (lake.folder / "config" / "pipelines" / "shop.yaml").read_text().replace("v INT", "v DATE")
    )
    lake.declare((lake.folder / "config" / "pipelines" / "shop.yaml").read_text())
    with pytest.raises(QualityStop, match=r"had rows, .* none can be used \(2 and 2 rows\)"):
        lake.rebuild()
    assert len(lake.rows("events")) == 2
    rebuild(lake.spark, lake.project, lake.table("events"), replace(ALLOWED, id="again"))
    assert (lake.rows("events"), lake.noted()) == ([], {day(0): (2, 0, 2)})


def test_unusable_logs_of_changes_leave_their_dimension(new_landed: NewLanded) -> None:
    text = """dimensions:
  things:
    {path: landing/things/, format: json, delivery: changes, schema: "id INT, v INT", key: [id]}
"""
    lake = new_landed(text)
    lake.land("things", a_json=ROWS)
    lake.load()
    lake.land("things", a_json=[{"id": "one", "v": 1}])
    with pytest.raises(QualityStop, match="not one of its 1 rows can be used"):
        lake.load()
    assert len(lake.rows("things")) == 2
