"""Dimensions are what their source is: only what differs is written."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.dimensions.things import declared, landed
from tests.support.lake import counted, folded
from tests.support.landed import Landed, NewLanded, write

from sluice.dimensions import load as loading
from sluice.errors import ConfigError, QualityStop, UsageError
from sluice.files.reading import read_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAD = 'pipeline: shop\nschedule: "@daily"\nstart_date: 2024-01-01\n'
CHANGE = "delivery: changes, change: {column: op, insert: [c, u], delete: [d]}"


def test_a_snapshot_writes_only_what_differs(new_landed: NewLanded) -> None:
    lake = new_landed(declared())
    landed(lake, {"id": 1, "v": 1}, {"id": 2, "v": 2}, {"id": 3})
    report = landed(lake, {"id": 2, "v": 9}, {"id": 3}, {"id": 4, "v": 4})
    assert (report.inserted, report.updated, report.deleted) == (1, 1, 1)
    assert counted(lake.rows("things")) == counted(
        [{"id": 2, "v": 9}, {"id": 3, "v": None}, {"id": 4, "v": 4}]
    )
    assert folded(lake.feed("things")) == counted(lake.stored("things"))
    lake.land("things", b_json=[{"id": 3}], c_json=[{"id": 4, "v": 4}, {"id": 2, "v": 9}])
    before = lake.versions("things")
    assert lake.load().outcome == "unchanged", "other files, the same rows: no commit"
    assert lake.versions("things") == before


def test_unchanged_files_are_not_read_again(new_landed: NewLanded) -> None:
    lake = new_landed(declared())
    landed(lake, {"id": 1})
    before = lake.versions("things", "things__intervals")
    assert lake.load().outcome == "unchanged"
    assert lake.versions("things", "things__intervals") == before


@pytest.mark.usefixtures("long")
def test_a_large_snapshot_that_is_the_same_commits_and_writes_nothing(
    new_landed: NewLanded,
) -> None:
    lake = new_landed(declared().replace("format: json", "format: parquet"))
    ids = pa.array(range(200_000), pa.int32())
    rows = pa.table({"id": ids, "v": pc.multiply(ids, 3)})
    lake.land("things", a_parquet=rows)
    assert lake.load().inserted == 200_000
    before, files = lake.versions("things"), set(Path(lake.uri("things")).rglob("*.parquet"))
    backward = rows.take(pa.array(range(199_999, -1, -1)))
    lake.land("things", b_parquet=backward.slice(0, 70_000), c_parquet=backward.slice(70_000))
    report = lake.load()
    assert (report.outcome, report.rows_in, report.rows_out) == ("unchanged", 200_000, 0)
    assert lake.versions("things") == before
    assert set(Path(lake.uri("things")).rglob("*.parquet")) == files


def test_further_rows_of_a_key_are_quarantined(new_landed: NewLanded) -> None:
    lake = new_landed(declared())
    report = landed(lake, {"id": 1, "v": 1}, {"id": 1, "v": 2}, {"id": None}, {"id": 2})
    assert {r["id"]: r["v"] for r in lake.rows("things")} == {1: 1, 2: None}
    assert report.quarantined == 2
    assert [q["reason"] for q in lake.quarantine("things")] == [
        "another row has the same key (id)",
        "key column id is null",
    ]
    landed(lake, {"id": 1})
    assert lake.quarantine("things") == []


def test_a_bad_row_does_not_take_the_place_of_a_good_one(new_landed: NewLanded) -> None:
    lake = new_landed(declared())
    landed(lake, {"id": 1, "v": "x"}, {"id": 1, "v": 2})
    assert lake.rows("things") == [{"id": 1, "v": 2}]


def test_nor_does_one_that_breaks_an_expectation(new_landed: NewLanded) -> None:
    rule = "expect_column_values_to_be_between, column: v, min_value: 1, on_failure: quarantine"
    lake = new_landed(declared(f"expect: [{{type: {rule}}}]"))
    landed(lake, {"id": 1, "v": 0}, {"id": 1, "v": -1}, {"id": 1, "v": 2}, {"id": 1, "v": 3})
    assert lake.rows("things") == [{"id": 1, "v": 2}]
    reasons = [q["reason"] for q in lake.quarantine("things")]
    assert [reason[:11] for reason in reasons] == ["another row", "expected th", "expected th"]


def test_no_files_are_a_clear_error_and_a_file_without_rows_is_not(new_landed: NewLanded) -> None:
    lake = new_landed(declared())
    with pytest.raises(UsageError, match=r"there are no files at .*landing/things"):
        lake.load()
    landed(lake, {"id": 1})
    report = landed(lake)
    assert report.deleted == 1
    assert lake.rows("things") == []


@pytest.mark.parametrize("broken", [b"PAR1 not really", b""], ids=["garbage", "empty"])
def test_a_broken_file_takes_no_row_away(new_landed: NewLanded, broken: bytes) -> None:
    lake = new_landed(declared().replace("json", "parquet"))
    lake.land("things", a_parquet=[{"id": 1, "v": 1}], b_parquet=[{"id": 2, "v": 2}])
    lake.load()
    lake.land("things", a_parquet=[{"id": 1, "v": 3}], b_parquet=broken)
    with pytest.raises(QualityStop, match=r"b\.parquet can't be read"):
        lake.load()
    assert counted(lake.rows("things")) == counted([{"id": 1, "v": 1}, {"id": 2, "v": 2}])


def test_a_page_that_says_what_went_wrong_is_no_dimension(new_landed: NewLanded) -> None:
    lake = new_landed(declared())
    landed(lake, {"id": 1, "v": 1})
    lake.land("things", a_json="<html>\n<body>not found</body>\n</html>\n")
    with pytest.raises(QualityStop, match="not one of its 3 rows can be used"):
        lake.load()
    assert (len(lake.rows("things")), len(lake.quarantine("things"))) == (1, 3)


def test_a_changed_definition_is_refused(new_landed: NewLanded) -> None:
    lake = new_landed(declared())
    landed(lake, {"id": 1})
    lake.declare(HEAD + declared(schema="id INT, v INT, w INT"))
    with pytest.raises(ConfigError, match="built by a definition that differs"):
        lake.load()


def test_a_stop_keeps_the_dimension_as_it_was(new_landed: NewLanded) -> None:
    expect = "expect: [{type: expect_column_values_to_not_be_null, column: v, on_failure: stop}]"
    lake = new_landed(declared(expect))
    landed(lake, {"id": 1, "v": 1})
    with pytest.raises(QualityStop):
        landed(lake, {"id": 2})
    assert lake.rows("things") == [{"id": 1, "v": 1}]


def test_a_dimension_of_changes_is_the_latest_of_each_key_over_its_files(
    new_landed: NewLanded,
) -> None:
    lake = new_landed(declared(f"{CHANGE}, sequence: [s]", "id INT, v INT, s INT, op STRING"))
    lake.land(
        "things",
        a_json=[
            {"id": 1, "v": 1, "s": 1, "op": "c"},
            {"id": 2, "v": 1, "s": 5, "op": "u"},
            {"id": 3, "v": 1, "s": 1, "op": "c"},
        ],
    )
    lake.load()
    lake.land(
        "things",
        a_json=[{"id": 1, "v": 1, "s": 1, "op": "c"}, {"id": 2, "v": 1, "s": 5, "op": "u"}],
        b_json=[
            {"id": 1, "s": 2, "op": "d"},
            {"id": 2, "v": 9, "s": 4, "op": "u"},
            {"id": 4, "v": 1, "op": "q"},
        ],
    )
    lake.load()
    assert lake.rows("things") == [{"id": 2, "v": 1, "s": 5}]
    assert [q["reason"] for q in lake.quarantine("things")] == ["column op: q is none of c, u, d"]


def test_a_crash_before_the_load_is_noted_does_not_pass_for_the_load_before(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Landed(tmp_path, declared(), spark)
    for name, content in (("a", [{"id": 1}]), ("b", [{"id": 2}])):
        write(tmp_path / name / "x.json", content)
    target = lake.landing / "things"
    shutil.copytree(tmp_path / "a", target)
    lake.load()

    def crash(*_: object) -> None:
        raise RuntimeError("power cut")

    with monkeypatch.context() as patched:
        patched.setattr(loading, "_record", crash)
        shutil.rmtree(target)
        shutil.copytree(tmp_path / "b", target)
        with pytest.raises(RuntimeError, match="power cut"):
            lake.load()
    shutil.rmtree(target)
    shutil.copytree(tmp_path / "a", target)
    lake.load()
    assert [r["id"] for r in lake.rows("things")] == [1]


@pytest.mark.usefixtures("real_spark")
def test_a_delta_table_is_a_snapshot_too(spark: "SparkSession", tmp_path: Path) -> None:
    text = declared().replace("format: json", "format: delta")
    lake = Landed(tmp_path, text, spark)
    with pytest.raises(UsageError, match="there are no files at"):
        lake.load()
    for rows in ("(1, 1), (2, 2)", "(2, 9)"):
        frame = spark.sql(f"SELECT * FROM VALUES {rows} AS t(id, v)")
        frame.write.format("delta").mode("overwrite").save(str(lake.landing / "things"))
        lake.load()
    assert lake.rows("things") == [{"id": 2, "v": 9}]
    assert lake.load().outcome == "unchanged"
    DeltaTable(str(lake.landing / "things")).delete()
    assert lake.load().deleted == 1, "a commit that writes no file counts as well"


@pytest.mark.usefixtures("real_spark")
def test_a_delta_table_is_read_as_it_was_when_the_load_began(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Landed(tmp_path, declared().replace("format: json", "format: delta"), spark)
    frame = spark.sql("SELECT 1 AS id, 1 AS v").write.format("delta")
    path = str(lake.landing / "things")
    frame.save(path)

    def late(*given: Any) -> Any:
        frame.mode("append").save(path)
        return read_files(*given)

    with monkeypatch.context() as patched:
        patched.setattr(loading, "read_files", late)
        report = lake.load()
    assert (report.rows_in, lake.rows("things")) == (1, [{"id": 1, "v": 1}])
    assert lake.load().quarantined == 1


@pytest.mark.usefixtures("real_spark")
def test_a_table_behind_jdbc_is_a_snapshot_too(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"jdbc:derby:{tmp_path / 'derby'};create=true"
    for name, value in (("URL", url), ("USER", "app"), ("PASS", "x")):
        monkeypatch.setenv(f"SHOP_{name}", value)
    text = (
        "dimensions:\n  things: {format: jdbc, schema: 'id INT, v INT', key: [id], options: "
        "{url: '${SHOP_URL}', dbtable: things, user: '${SHOP_USER}', password: '${SHOP_PASS}'}}\n"
    )
    lake = Landed(tmp_path, text, spark)
    for rows in ("(1, 1), (2, 2)", "(2, 9), (3, NULL), (3, 4)"):
        frame = spark.sql(f"SELECT * FROM VALUES {rows} AS t(id, v)")
        given = frame.write.format("jdbc").option("url", url).option("dbtable", "things")
        given.options(user="app", password="x").mode("overwrite").save()
        lake.load()
    assert {r["id"] for r in lake.rows("things")} == {2, 3}
    assert len(lake.quarantine("things")) == 1


def test_a_small_delta_table_needs_no_spark(spark: "SparkSession", tmp_path: Path) -> None:
    """Somebody else's table is read at a version, only if it is new, and never written."""
    theirs = str(tmp_path / "landing" / "things")
    write_deltalake(theirs, pa.table({"id": [1, 2], "v": [1, 2], "more": ["x", "y"]}))
    lake = Landed(tmp_path, declared().replace("format: json", "format: delta"), spark)
    report = lake.load()
    assert (report.engine, report.inserted) == ("process", 2)
    DeltaTable(theirs).delete("id = 1")
    DeltaTable(theirs).update(updates={"v": "9"}, predicate="id = 2")
    report = lake.load()
    assert (report.engine, report.updated, report.deleted) == ("process", 1, 1)
    assert lake.rows("things") == [{"id": 2, "v": 9}]
    assert lake.load().outcome == "unchanged"
