"""In a table with deletion vectors, a vacuum keeps what versions within retention need."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.delta.tables import ID_AND_V, Small, a_position, by_marking
from tests.support.ageing import age
from tests.support.forked import forked

from sluice.changes import Direction
from sluice.delta.log import Log
from sluice.delta.log.files import vector_file
from sluice.delta.log.position import head_as_found
from sluice.delta.places.failpoint import VARIABLE
from sluice.delta.upkeep import maintenance as vacuuming
from sluice.delta.upkeep.erasure import erase_past
from sluice.delta.upkeep.maintenance import Filing, vacuum
from sluice.delta.upkeep.rewriting import merge
from sluice.delta.writing.commit import overwrite_arrow
from sluice.limits import Limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def marked(folder: Path) -> Small:
    """Keys 0 to 99 in a file of which a row is marked."""
    small = Small.create(folder, ID_AND_V, ["id"], by_marking(None))  # type: ignore[arg-type]
    small.commit(*[("insert", {"id": i, "v": f"v{i}"}) for i in range(100)])
    small.commit(("delete", {"id": 7, "v": "v7"}))
    return small


def test_a_file_that_was_marked_long_ago_stays_after_it_has_gone(tmp_path: Path) -> None:
    """delta-rs takes it for one that had gone when it was marked."""
    table, now = marked(tmp_path), datetime.now(UTC)
    before, rows = table.head.version, table.rows()
    filing = Filing(table.head, Limits(), (Direction("id"),))
    assert merge(filing, filing.slices, "compact") == (1, [])
    old(table, upto=before)
    assert vacuum(table.head, table.head.version, now) == 1, "the change data"
    assert table.rows(before) == rows
    assert len(table.rows(before - 1)) == 100
    old(table, upto=table.head.version)
    assert vacuum(table.head, table.head.version, now) == 1
    assert table.rows() == rows


def test_a_vacuum_that_was_killed_is_done_by_the_next(tmp_path: Path) -> None:
    table = marked(tmp_path)
    for i in range(3):
        table.commit(("update", {"id": 10 + i, "v": "new"}))
    rows, there = table.rows(), len(list(Path(table.uri).rglob("*.parquet")))
    old(table, upto=table.head.version)
    process = forked(go, table.uri)
    process.join()
    assert process.exitcode == -9
    assert len(list(Path(table.uri).rglob("*.parquet"))) == there - 1
    assert vacuum(table.head, table.head.version, datetime.now(UTC)) == 3
    assert table.rows() == rows


def go(uri: str) -> None:
    os.environ[VARIABLE] = f"deleting:{Path(uri).name}#2"
    found = head_as_found(uri)
    assert found is not None
    vacuum(found, found.version, datetime.now(UTC))


@pytest.fixture
def table(tmp_path: Path, session: "SparkSession") -> Small:
    """Keys 0 to 99, of which Spark has deleted some, by a vector beside the table's file."""
    small = marked(tmp_path)
    session.sql(f"DELETE FROM delta.`{small.uri}` WHERE id IN (10, 60)")
    return small


def old(table: Small, upto: int, days: float = 30) -> None:
    """All files, and the commits up to a version, as if made long ago."""
    for file in Path(table.uri).rglob("*.[pb]*"):
        os.utime(file, (0, 0))
    for version in range(upto + 1):
        age(table.uri, version, days)


def vectors(table: Small) -> set[str]:
    return {path.name for path in Path(table.uri).glob("*.bin")}


def rebuilt(table: Small) -> None:
    """The table's rows written again, by a batch that may follow another writer's."""
    before = head_as_found(table.uri)
    assert before is not None
    schema = pa.schema(DeltaTable(table.uri).schema().to_arrow())
    rows = pa.Table.from_pylist(table.rows(), schema)
    overwrite_arrow(before, rows, a_position(9, kind="rebuild"))


@pytest.mark.usefixtures("real_spark")
def test_the_log_names_the_file_of_a_vector(table: Small) -> None:
    actions = Log(table.uri).actions(3)
    assert {vector_file(a["add"]) for a in actions if "add" in a} == vectors(table)


@pytest.mark.usefixtures("real_spark")
def test_a_vector_stays_while_a_version_within_retention_needs_it(table: Small) -> None:
    rebuilt(table)
    stood, now = table.rows(3), datetime.now(UTC)
    old(table, upto=2)
    named, version = vectors(table), table.head.version
    vacuum(table.head, version, now)
    assert vectors(table) == named
    assert table.rows(3) == stood
    old(table, upto=version)
    assert vacuum(table.head, table.head.version, now) > 0
    assert not vectors(table)
    assert table.rows() == stood


@pytest.mark.usefixtures("real_spark")
def test_a_vector_stays_while_a_consumer_has_still_to_read_its_version(table: Small) -> None:
    rebuilt(table)
    old(table, upto=table.head.version)
    named = vectors(table)
    vacuum(table.head, 3, datetime.now(UTC))
    assert vectors(table) == named
    assert len(table.rows(3)) == 97


@pytest.mark.usefixtures("real_spark")
def test_a_vector_of_the_head_stays_and_remains_of_others_go(table: Small) -> None:
    named = vectors(table)
    Path(table.uri, "deletion_vector_1.bin").write_bytes(b"remains")
    found = head_as_found(table.uri)
    assert found is not None
    old(table, upto=found.version)
    assert vacuum(found, found.version, datetime.now(UTC)) > 0
    assert vectors(table) == named
    assert len(table.rows()) == 97


@pytest.mark.usefixtures("real_spark")
def test_nothing_is_deleted_if_the_log_does_not_say_what_a_version_needs(
    table: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    rebuilt(table)
    old(table, upto=table.head.version)
    monkeypatch.setattr(vacuuming, "added_files", lambda *_: None)
    assert vacuum(table.head, table.head.version, datetime.now(UTC)) == 0
    assert vectors(table)


@pytest.mark.usefixtures("real_spark")
def test_an_erasure_keeps_what_marks_the_newest_rows(table: Small) -> None:
    named = vectors(table)
    old(table, upto=3)
    erase_past(table.uri, datetime.now(UTC))
    assert vectors(table) == named
    assert len(table.rows()) == 97
