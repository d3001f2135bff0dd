"""What can go wrong with the files of a table is found by name, and the given repair mends it."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.delta.tables import ID_AND_V, Small

from sluice.delta.places.lake_layout import table_at
from sluice.delta.upkeep.erasure import (
    TableFault,
    file_faults,
    file_retention,
    log_faults,
    orphans,
    setting_faults,
)
from sluice.delta.writing.commit import commit_arrow

NOW = datetime.now(UTC)


@pytest.fixture
def table(tmp_path: Path) -> Small:
    small = Small.create(tmp_path, ID_AND_V, ["id"], commit_arrow)
    small.commit(("insert", {"id": 1, "v": "a"}), ("insert", {"id": 2, "v": "b"}))
    small.commit(("update", {"id": 1, "v": "A"}))
    DeltaTable(small.uri).create_checkpoint()
    small.commit(("insert", {"id": 3, "v": "c"}))
    return small


def log(table: Small) -> Path:
    return Path(table.uri) / "_delta_log"


def found(table: Small) -> list[TableFault]:
    every = [*log_faults(table.uri), *file_faults(table.uri)]
    return every or [*orphans(table.uri, NOW), *setting_faults(table.uri)]


def names(table: Small) -> list[str]:
    return [name for name, _, _ in found(table)]


def test_a_healthy_table_has_nothing(table: Small) -> None:
    assert found(table) == []


def test_a_log_that_was_cleaned_from_its_beginning_is_healthy(table: Small) -> None:
    for version in range(2):
        (log(table) / f"{version:020d}.json").unlink()
    assert found(table) == []


def test_a_hole_in_the_log_is_named(table: Small) -> None:
    (log(table) / f"{1:020d}.json").unlink()
    ((kind, what, repair), *_) = found(table)
    assert (kind, what) == ("hole-in-log", "the log lacks version(s) 1")
    assert f"`sluice rebuild {table_at(table.uri)}`" in repair


@pytest.mark.parametrize("text", ['{"add": {"pa', ""])
def test_a_commit_that_is_no_json_is_named(table: Small, text: str) -> None:
    (log(table) / f"{1:020d}.json").write_text(text)
    assert "broken-commit" in names(table)


def test_a_broken_checkpoint_is_named_and_can_be_done_without(table: Small) -> None:
    rows, checkpoint = table.rows(), log(table) / f"{2:020d}.checkpoint.parquet"
    checkpoint.write_bytes(b"PAR1 not really PAR1")
    assert "broken-checkpoint" in names(table)
    checkpoint.unlink()
    assert found(table)[0][1] == "_delta_log/_last_checkpoint names version 2, which is not there"
    (log(table) / "_last_checkpoint").unlink()
    assert found(table) == []
    assert table.rows() == rows


def test_a_broken_note_of_the_last_checkpoint_is_named(table: Small) -> None:
    (log(table) / "_last_checkpoint").write_text("{")
    assert names(table)[0] == "broken-checkpoint"


def test_a_data_file_that_is_gone_or_another_is_named(table: Small) -> None:
    file = Path(DeltaTable(table.uri).file_uris()[0].removeprefix("file://"))
    file.write_bytes(file.read_bytes() + b"more")
    assert names(table) == ["changed-files"]
    file.unlink()
    assert names(table) == ["missing-files"]


def test_a_table_that_can_not_be_opened_is_named(table: Small) -> None:
    for file in log(table).iterdir():
        if file.name != f"{3:020d}.json":
            file.unlink()
    assert names(table) == ["unreadable"]


def test_a_file_that_no_commit_names_is_reported_a_day_later(table: Small) -> None:
    left = Path(table.uri) / "part-00000-left.parquet"
    left.write_bytes(b"x" * 10)
    assert found(table) == []
    yesterday = (NOW - timedelta(days=1, minutes=1)).timestamp()
    os.utime(left, (yesterday, yesterday))
    assert names(table) == ["orphan-files"]
    assert "1 file(s) of 10 bytes" in found(table)[0][1]


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [
        ("delta.enableChangeDataFeed", "false", "true"),
        ("delta.enableExpiredLogCleanup", "true", "false"),
    ],
)
def test_a_setting_that_loses_history_is_named(
    table: Small, name: str, wrong: str, right: str
) -> None:
    DeltaTable(table.uri).alter.set_table_properties({name: wrong})
    ((kind, what, repair),) = found(table)
    assert (kind, what.startswith(f"{name} is {wrong}")) == ("unfit-setting", True)
    assert f"'{name}' = '{right}'" in repair
    DeltaTable(table.uri).alter.set_table_properties({name: right})
    assert found(table) == []


def test_a_feed_that_is_not_even_named_is_off(tmp_path: Path) -> None:
    """So it is where somebody has unset it."""
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    ((_, what, repair),) = setting_faults(str(tmp_path / "t"))
    assert what.startswith("delta.enableChangeDataFeed is false")
    assert "'delta.enableChangeDataFeed' = 'true'" in repair


def test_the_retention_of_deleted_files_is_read(table: Small) -> None:
    assert file_retention(table.uri) == timedelta(days=7)
    set_properties = DeltaTable(table.uri).alter.set_table_properties
    set_properties({"delta.deletedFileRetentionDuration": "interval 36 hours"})
    assert file_retention(table.uri) == timedelta(hours=36)
