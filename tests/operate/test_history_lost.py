"""Whatever happens to a table's past is named beforehand, refused, and mended by a command.

Nothing here ever ends in a table that is wrong and silent.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType
from pyspark.sql import SparkSession
from tests.support.lake import counted
from tests.support.landed import Landed, NewLanded, folder_of

from sluice.errors import (
    DeliveriesLost,
    FeedVacuumed,
    ForeignCommit,
    HistoryLost,
    InputBehind,
    InputReplaced,
    InputRewritten,
    LogCleaned,
    TableAltered,
)
from sluice.operate.doctor import Finding, examine

DECLARED = """
sources:
  events:
    path: "landing/{interval_start:%Y-%m-%d}/"
    format: json
    schema: id INT, v INT
views:
  totals:
    kind: cogroup
    key: [id]
    streams: {e: {from: events, aggregates: {total: sum(v), lines: count(*)}}}
"""
DAYS = [[{"id": 1, "v": 1}, {"id": 2, "v": 5}], [{"id": 1, "v": 3}], [{"id": 3, "v": 4}]]
CORRECTED = [{"id": 1, "v": 2}, {"id": 2, "v": 5}]


@pytest.fixture(scope="module")
def built(real_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days delivered and followed; then the first was corrected, which nobody has read."""
    folder = tmp_path_factory.mktemp("built") / "lake"
    lake = Landed(folder, DECLARED, real_spark)
    for nth, rows in enumerate(DAYS):
        lake.land(folder_of(nth), a_json=rows)
        lake.deliver(nth)
    lake.advance()
    for name in ("events", "events__intervals"):
        shutil.copytree(lake.uri(name), folder / "backup" / name)
    lake.land(folder_of(0), a_json=CORRECTED)
    lake.deliver(0)
    shutil.copytree(folder, folder.parent / "kept")
    return folder


@pytest.fixture
def lake(built: Path, spark: SparkSession) -> Landed:
    """In the same place each time: files are known by their names. So are tables, to Spark."""
    shutil.rmtree(built)
    shutil.copytree(built.parent / "kept", built)
    forget_tables(spark)
    return Landed(built, DECLARED, spark)


def forget_tables(spark: SparkSession) -> None:
    """As in a new process."""
    assert spark._jvm is not None
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def vacuumed_feed(lake: Landed) -> None:
    shutil.rmtree(Path(lake.uri("events")) / "_change_data")


def cleaned_log(lake: Landed) -> None:
    lake.land(folder_of(1), a_json=[{"id": 1, "v": 4}])
    lake.deliver(1)
    forget(lake, "events")


def forget(lake: Landed, name: str) -> None:
    """Nothing of the log before the newest commit but what the checkpoint holds."""
    table = DeltaTable(lake.uri(name))
    table.create_checkpoint()
    for version in range(table.version()):
        (Path(lake.uri(name)) / "_delta_log" / f"{version:020d}.json").unlink()


def foreign_rows(lake: Landed) -> None:
    rows = {"id": pa.array([9], pa.int32()), "total": pa.array([9]), "lines": pa.array([1])}
    write_deltalake(lake.uri("totals"), pa.table(rows), mode="append", schema_mode="merge")


def copied_row(lake: Landed) -> None:
    """Each row is right, but there is one twice."""
    rows = DeltaTable(lake.uri("totals")).to_pyarrow_table().slice(0, 1)
    write_deltalake(lake.uri("totals"), rows, mode="append")


def foreign_update(lake: Landed) -> None:
    DeltaTable(lake.uri("totals")).update({"total": "total + 1"})


def restored_view(lake: Landed) -> None:
    """The batch that follows has a number that Delta has seen, and would skip in silence."""
    DeltaTable(lake.uri("totals")).restore(0)


def overwritten_view(lake: Landed) -> None:
    write_deltalake(lake.uri("totals"), one_row("id", "total", "lines"), mode="overwrite")


def restored_source(lake: Landed) -> None:
    DeltaTable(lake.uri("events")).restore(1)


def renamed_columns(lake: Landed) -> None:
    rows = DeltaTable(lake.uri("events")).to_pyarrow_table()
    names = ["w" if name == "v" else name for name in rows.column_names]
    renamed = rows.rename_columns(names)
    write_deltalake(lake.uri("events"), renamed, mode="overwrite", schema_mode="overwrite")


def added_column(lake: Landed) -> None:
    DeltaTable(lake.uri("totals")).alter.add_columns([Field("extra", PrimitiveType("integer"))])


def dropped_and_made_anew(lake: Landed) -> None:
    for name in ("events", "events__intervals"):
        shutil.rmtree(lake.uri(name))
    for nth in range(3):
        lake.deliver(nth)


def put_back(lake: Landed, *names: str) -> None:
    for name in names:
        shutil.rmtree(lake.uri(name))
        shutil.copytree(lake.folder / "backup" / name, lake.uri(name))


def put_back_from_a_backup(lake: Landed) -> None:
    lake.advance()
    put_back(lake, "events", "events__intervals")


def put_back_and_written_again(lake: Landed) -> None:
    """Version for version as many as were read, but other ones."""
    put_back_from_a_backup(lake)
    lake.land(folder_of(0), a_json=[{"id": 2, "v": 6}])
    lake.deliver(0)
    position = lake.head("totals__state").position
    assert position is not None
    assert position.inputs["shop.events"].version == lake.head("events").version


def one_row(*names: str) -> pa.Table:
    types = {"id": pa.int32()}
    return pa.table({name: pa.array([9], types.get(name, pa.int64())) for name in names})


@dataclass(frozen=True)
class Case:
    happens: Callable[[Landed], None]
    error: type[HistoryLost]
    told: str
    rebuilt: str


CASES = [
    Case(vacuumed_feed, FeedVacuumed, "of its files were deleted", "totals"),
    Case(cleaned_log, LogCleaned, "no longer shows", "totals"),
    Case(foreign_rows, ForeignCommit, "was not written by Sluice", "totals"),
    Case(copied_row, ForeignCommit, "was not written by Sluice", "totals"),
    Case(foreign_update, ForeignCommit, r"\(UPDATE\) was not written by Sluice", "totals"),
    Case(restored_view, ForeignCommit, r"\(RESTORE\) was not written by Sluice", "totals"),
    Case(overwritten_view, ForeignCommit, "was not written by Sluice", "totals"),
    Case(restored_source, ForeignCommit, r"\(RESTORE\) was not written by Sluice", "events"),
    Case(renamed_columns, ForeignCommit, "was not written by Sluice", "events"),
    Case(added_column, ForeignCommit, "changed its columns", "totals"),
    Case(dropped_and_made_anew, InputReplaced, "replaced by another table", "totals"),
    Case(put_back_from_a_backup, InputBehind, "which is now only at", "totals"),
    Case(put_back_and_written_again, InputRewritten, "which is another commit now", "totals"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.happens.__name__)
def test_lost_history_is_found_refused_and_mended(lake: Landed, case: Case) -> None:
    case.happens(lake)
    found = {one.name for one in stopping(lake)}
    assert name_of(case.error) in found
    with pytest.raises(case.error, match=case.told) as refused:
        lake.advance()
    assert f"`sluice rebuild shop.{case.rebuilt}`" in refused.value.hint
    lake.rebuild(case.rebuilt)
    mended(lake)


@pytest.mark.parametrize(
    ("table", "setting"),
    [
        ("events", "delta.enableChangeDataFeed = false"),
        ("totals", "delta.enableChangeDataFeed = false"),
        ("totals", "delta.appendOnly = true"),
    ],
)
def test_a_setting_that_stops_consumers_is_refused_before_anything_is_written(
    lake: Landed, table: str, setting: str
) -> None:
    DeltaTable(lake.uri(table)).alter.set_table_properties(dict([setting.split(" = ")]))
    assert name_of(TableAltered) in {one.name for one in stopping(lake)}
    before = lake.versions("events", "totals")
    with pytest.raises(TableAltered, match=setting.replace("=", "is")) as refused:
        bring_up_to_date(lake)
    assert lake.versions("events", "totals") == before
    lake.session.sql(refused.value.hint)
    if table == "events":
        with pytest.raises(TableAltered, match="feed was switched off") as refused:
            bring_up_to_date(lake)
        assert "`sluice rebuild shop.totals`" in refused.value.hint
        lake.rebuild("totals")
    mended(lake)


def test_a_renamed_column_is_reported_and_so_is_what_delta_does_not_take_back(lake: Landed) -> None:
    at = f"ALTER TABLE delta.`{lake.uri('events')}`"
    mapped = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2'"
    lake.session.sql(f"{at} SET TBLPROPERTIES ({mapped}, 'delta.minWriterVersion' = '5')")
    with pytest.raises(TableAltered, match="columnMapping was switched on"):
        bring_up_to_date(lake)
    lake.session.sql(f"{at} RENAME COLUMN v TO w")
    with pytest.raises(ForeignCommit, match=r"\(RENAME COLUMN\) .* changed its columns"):
        bring_up_to_date(lake)
    with pytest.raises(TableAltered) as refused:
        lake.rebuild("events")
    assert "move it away and run `sluice rebuild shop.events`" in refused.value.hint
    shutil.rmtree(lake.uri("events"))
    lake.rebuild("events")
    mended(lake)


def test_a_lost_source_whose_files_were_corrected_is_read_as_they_landed(lake: Landed) -> None:
    shutil.rmtree(lake.uri("events"))
    lake.land(folder_of(1), a_json=[{"id": 7, "v": 7}])
    with pytest.raises(HistoryLost, match="are not those that were delivered") as refused:
        lake.rebuild("events")
    assert "`sluice rebuild shop.events --as-landed`" in refused.value.hint
    lake.rebuild("events", as_landed=True)
    mended(lake)


def test_files_that_are_gone_are_not_taken_as_landed(lake: Landed) -> None:
    shutil.rmtree(lake.uri("events"))
    lake.land(folder_of(1))
    with pytest.raises(HistoryLost, match=r"the files of \[2024-01-02, .* are gone") as refused:
        lake.rebuild("events", as_landed=True)
    assert refused.value.hint == "restore the files. Nothing was changed"


def test_nor_are_those_that_are_gone_from_files_that_days_share(new_landed: NewLanded) -> None:
    shared = DECLARED.replace("{interval_start:%Y-%m-%d}/", "all/")
    declared = shared.replace("v INT\n", "v INT, at TIMESTAMP\n    time: at\n")
    lake = new_landed(declared)
    rows = [{"id": n, "v": n, "at": f"2024-01-0{1 + n // 2}T00:00:00Z"} for n in range(4)]
    lake.land("all", a_json=rows)
    for nth in range(2):
        lake.deliver(nth)
    shutil.rmtree(lake.uri("events"))
    lake.land("all", a_json=rows[:3])
    with pytest.raises(HistoryLost, match=r"\[2024-01-02, .* had more rows than can be read now"):
        lake.rebuild("events")
    lake.land("all", a_json=rows[:2])
    with pytest.raises(HistoryLost, match=r"\[2024-01-02, .* had rows, and none can be read now"):
        lake.rebuild("events", as_landed=True)
    lake.land("all", a_json=rows[:3])
    lake.rebuild("events", as_landed=True)
    assert sorted(row["id"] for row in lake.rows("events")) == [0, 1, 2]


def test_a_source_put_back_alone_lacks_what_its_notes_speak_of(lake: Landed) -> None:
    put_back(lake, "events")
    assert name_of(DeliveriesLost) in {one.name for one in stopping(lake)}
    with pytest.raises(DeliveriesLost, match=r"batch 4 was .* is only at batch 3") as refused:
        lake.deliver(0)
    assert "sluice rebuild shop.events" in refused.value.hint
    lake.rebuild("events")
    mended(lake)


def test_a_quiet_view_outlives_the_log(lake: Landed) -> None:
    lake.advance()
    for name in ("events", "totals", "totals__state"):
        forget(lake, name)
    assert {report.outcome for report in lake.advance()} == {"unchanged"}
    assert stopping(lake) == []


def test_verify_sees_a_row_that_is_there_twice(lake: Landed) -> None:
    lake.advance()
    copied = DeltaTable(lake.uri("totals"))
    position = replace(lake.head("totals").position, after=copied.version())  # type: ignore[type-var]
    write_deltalake(
        copied,
        copied.to_pyarrow_table().slice(0, 1),
        mode="append",
        commit_properties=CommitProperties(custom_metadata={"userMetadata": position.to_json()}),
    )
    (verdict,) = (v for v in lake.verdicts() if v.table == "shop.totals")
    assert (verdict.is_equal, verdict.extra, len(verdict.differences)) == (False, 1, 1)


def bring_up_to_date(lake: Landed) -> None:
    for nth in range(3):
        lake.deliver(nth)
    lake.advance()


def mended(lake: Landed) -> None:
    """What was landed is what is there, and nobody misses anything."""
    bring_up_to_date(lake)
    landed = [row for nth in range(3) for row in rows_of(lake, nth)]
    assert counted(lake.rows("events")) == counted(landed)
    assert counted(lake.rows("totals")) == counted(totals(landed))
    assert stopping(lake) == []
    assert {report.outcome for report in lake.advance()} == {"unchanged"}


def name_of(error: type[HistoryLost]) -> str:
    """As `sluice doctor` calls it."""
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in error.__name__)[1:]


def stopping(lake: Landed) -> list[Finding]:
    tables = lake.project.graph.tables.values()
    return [one for one in examine(lake.project, tables, datetime.now(UTC)) if one.stops]


def rows_of(lake: Landed, nth: int) -> list[dict[str, int]]:
    text = (lake.landing / folder_of(nth) / "a.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def totals(rows: list[dict[str, int]]) -> list[dict[str, int]]:
    return [
        {
            "id": key,
            "total": sum(r["v"] for r in rows if r["id"] == key),
            "lines": sum(1 for r in rows if r["id"] == key),
        }
        for key in {r["id"] for r in rows}
    ]
