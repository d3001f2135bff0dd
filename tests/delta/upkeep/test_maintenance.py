"""Upkeep changes files and their order, never rows, positions or feeds."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import StructType
from tests.delta.tables import Small, by_delta_rs
from tests.support.ageing import age

from sluice.changes import Direction
from sluice.delta.log.position import Pin, head, head_as_found, positions
from sluice.delta.reading.local import to_spark_types
from sluice.delta.upkeep import maintenance
from sluice.delta.upkeep.maintenance import Filing, committed_at, upkeep, vacuum
from sluice.delta.writing import merge, own_commits
from sluice.delta.writing.filing import is_in_order
from sluice.delta.writing.own_commits import GROUP_ROWS
from sluice.limits import Limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = StructType().add("k", "integer").add("t", "long").add("part", "long")
ORDER = (Direction("k"), Direction("t", descending=True))
PART = 3  # how many slices rows are spread over
NOW = datetime.now(UTC)
Row = dict[str, Any]


def rows(first: int, count: int) -> list[tuple[str, Row]]:
    numbers = range(first, first + count)
    return [("insert", {"k": n * 7 % 1_000, "t": n, "part": n % PART}) for n in numbers]


def filled(folder: Path, commits: int = 4, each: int = 6, **options: Any) -> Small:
    """A table in slices to which so many commits have added rows."""
    table = Small.create(
        folder, SCHEMA, ["k", "t"], by_delta_rs(None), partition_by=["part"], **options
    )
    for n in range(commits):
        table.commit(*rows(n * each, each), inputs={"shop.sales": Pin("id", n)})
    return table


def filing(table: Small) -> Filing:
    return Filing(table.head, Limits(), ORDER, "part")


def feed(table: Small) -> list[Row]:
    read = pa.table(DeltaTable(table.uri).load_cdf(starting_version=0).read_all())
    return (
        to_spark_types(read)
        .sort_by([("_commit_version", "ascending"), ("t", "ascending")])
        .to_pylist()
    )


def footers(table: Small) -> Iterator[pq.FileMetaData]:
    return (pq.read_metadata(path) for path in DeltaTable(table.uri).file_uris())


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("how", ["compact", "refile"])
def test_slices_become_one_file_each_and_nobody_notices(
    tmp_path: Path, session: "SparkSession", how: str
) -> None:
    table = filled(tmp_path)
    before, stood, changes = table.head, table.rows(), feed(table)
    chosen = filing(table).slices[:2]
    own = (session,) if how == "refile" else ()
    assert getattr(filing(table), how)(*own, chosen, "seal") == 8
    after = table.head
    assert [len(s.paths) for s in filing(table).slices] == [1, 1, 4]
    assert (table.rows(), feed(table)) == (stood, changes)
    assert after.position == replace(
        before.position,
        kind="seal",
        run="",
        attempt=after.position.attempt,
        after=before.version,
        unchanged_since=before.data_version,
    )
    assert (after.next_batch, after.data_version) == (before.next_batch, before.data_version)
    table.commit(*rows(100, 3))
    assert len(table.rows()) == len(stood) + 3


@pytest.mark.usefixtures("real_spark")
def test_a_refiled_slice_is_sorted_in_row_groups_of_five_thousand(
    tmp_path: Path, session: "SparkSession"
) -> None:
    table = filled(tmp_path, commits=3, each=PART * 4_000)
    one = filing(table).slices[0]
    assert not is_in_order(table.uri, one.paths, "k")
    filing(table).refile(session, [one], "seal")
    (path,) = filing(table).slices[0].paths
    read = pq.ParquetFile(f"{table.uri}/{path}")
    keys = read.read(["k", "t"]).to_pylist()
    assert keys == sorted(keys, key=lambda row: (row["k"], -row["t"]))
    assert read.metadata.row_group(0).num_rows == GROUP_ROWS
    assert is_in_order(table.uri, [path], "k")


@pytest.mark.usefixtures("real_spark")
def test_a_table_without_slices_is_filed_by_its_key(
    tmp_path: Path, session: "SparkSession"
) -> None:
    table = Small.create(tmp_path, SCHEMA, ["k"], by_delta_rs(None))
    for n in range(4):
        table.commit(*rows(n * 6, 6))
    whole = Filing(table.head, Limits(file_rows=8), (Direction("k"),))
    assert whole.refile(session, whole.slices, "compact") == 4
    files = [pq.read_table(path)["k"].to_pylist() for path in DeltaTable(table.uri).file_uris()]
    assert 2 <= len(files) <= 4
    in_order = sorted(files)
    assert [k for keys in in_order for k in keys] == sorted(r["k"] for r in table.rows())


def test_what_batches_write_is_sorted_by_key_in_small_row_groups(tmp_path: Path) -> None:
    table = filled(tmp_path, commits=1, each=PART * 6_000)
    for footer in footers(table):
        assert [footer.row_group(i).num_rows for i in range(footer.num_row_groups)] == [
            5_000,
            1_000,
        ]
    assert all(is_in_order(table.uri, s.paths, "k") for s in filing(table).slices)


def race(monkeypatch: pytest.MonkeyPatch, table: Small, **position: Any) -> None:
    """A batch that commits just when upkeep is about to."""

    def first(place: str, uri: str) -> None:
        monkeypatch.undo()
        if place == "committing":
            table.commit(*rows(500, 3), **position)

    for module in (merge, own_commits, maintenance):
        monkeypatch.setattr(module, "passing", first)


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("how", ["compact", "refile"])
def test_a_batch_that_comes_in_between_keeps_its_rows_and_its_position(
    tmp_path: Path, session: "SparkSession", monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    table = filled(tmp_path)
    stood, pin = table.rows(), {"shop.sales": Pin("id", 99)}
    race(monkeypatch, table, inputs=pin)
    chosen = filing(table)
    if how == "compact":
        chosen.compact(chosen.slices, "compact")
    else:
        chosen.refile(session, chosen.slices, "seal")
    assert len(table.rows()) == len(stood) + 3
    assert table.head.position.inputs == pin
    assert next(p.inputs for _, p in positions(table.uri)) == pin
    table.commit(*rows(600, 3))
    assert len(table.rows()) == len(stood) + 6


@pytest.mark.usefixtures("real_spark")
def test_a_batch_that_takes_files_away_meanwhile_beats_a_rewrite(
    tmp_path: Path, session: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(tmp_path, commits=2, each=PART * 6_000)
    gone = table.rows()[0]
    wait = threading.Event()
    original = maintenance.arrange_in_files

    def slowly(frame: Any, *order: Any) -> Any:
        wait.set()
        return original(frame, *order)

    def delete() -> None:
        wait.wait(60)
        table.commit(("delete", gone))

    monkeypatch.setattr(maintenance, "arrange_in_files", slowly)
    batch = threading.Thread(target=delete)
    batch.start()
    filing(table).refile(session, filing(table).slices, "seal")
    batch.join()
    assert len(table.rows()) == 2 * PART * 6_000 - 1
    assert head(table.uri).position.kind in ("batch", "seal")


def test_foreign_tables_are_left_alone(tmp_path: Path) -> None:
    uri = str(tmp_path / "foreign")
    write_deltalake(uri, pa.table({"k": [1]}))
    assert head_as_found(uri).position is None


def test_files_that_nobody_names_any_more_are_deleted_a_week_later(tmp_path: Path) -> None:
    table = filled(tmp_path)
    chosen = filing(table)
    chosen.compact(chosen.slices, "compact")
    stood, before = table.rows(), table.head
    assert vacuum(before, before.version, NOW) == 0
    assert table.head.version == before.version
    age(table.uri, before.version, days=9)
    assert vacuum(before, before.version, NOW) == 12
    after = table.head
    assert (table.rows(), after.position.kind) == (stood, "vacuum")
    assert (after.position.inputs, after.data_version) == (
        before.position.inputs,
        before.data_version,
    )
    table.commit(*rows(100, 3))
    assert len(table.rows()) == len(stood) + 3


def test_what_a_slow_consumer_has_still_to_read_stays(tmp_path: Path) -> None:
    table = filled(tmp_path)
    named = table.head.version
    chosen = filing(table)
    chosen.compact(chosen.slices, "compact")
    for version in (named, named + 1):
        age(table.uri, version, days=9)
    assert vacuum(table.head, named, NOW) == 0
    assert len(table.rows(named)) == 24


def test_what_a_consumer_has_still_to_read_stays_where_the_clock_was_set_back(
    tmp_path: Path,
) -> None:
    """Its version was made by a clock that was ahead, the next one by one that wasn't."""
    table = filled(tmp_path)
    named = table.head.version
    chosen = filing(table)
    chosen.compact(chosen.slices, "compact")
    age(table.uri, named, days=-3)
    age(table.uri, named + 1, days=9)
    assert vacuum(table.head, named, NOW) == 0
    assert len(table.rows(named)) == 24


def test_nothing_is_deleted_where_the_log_has_lost_a_consumers_version(tmp_path: Path) -> None:
    table = filled(tmp_path)
    assert committed_at(table.uri, 99) is None
    assert vacuum(table.head, 99, NOW) == 0


def test_the_position_of_late_upkeep_does_not_speak_for_the_table(tmp_path: Path) -> None:
    table = filled(tmp_path)
    early = upkeep(table.head, "seal")
    assert not early.is_overtaken(table.head.version + 1)
    assert early.is_overtaken(table.head.version + 2)
