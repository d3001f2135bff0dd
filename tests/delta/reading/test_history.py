"""A feed that can't be read any more is named before anything is read."""

from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.delta.tables import ID_AND_V, Small

from sluice.delta.reading.spark_reads import check_feed
from sluice.delta.writing.commit import commit_arrow
from sluice.errors import HistoryLost


@pytest.fixture
def table(tmp_path: Path) -> Small:
    small = Small.create(tmp_path, ID_AND_V, ["id"], commit_arrow)
    small.commit(("insert", {"id": 1, "v": "a"}), ("insert", {"id": 2, "v": "b"}))
    small.commit(("update", {"id": 1, "v": "A"}))
    small.position_only()
    small.commit(("delete", {"id": 2, "v": "b"}))
    return small


def check(table: Small, after: int, upto: int = 4) -> None:
    check_feed(table.uri, "sales", "top_products", after, upto)


def test_a_feed_that_is_there_passes(table: Small) -> None:
    check(table, 0)
    check(table, 4)


def test_commits_cleaned_from_the_log_are_named(table: Small) -> None:
    DeltaTable(table.uri).create_checkpoint()
    for version in range(3):
        (Path(table.uri) / "_delta_log" / f"{version:020d}.json").unlink()
    with pytest.raises(
        HistoryLost, match="last read 'sales' at version 1, but its log starts at 3"
    ):
        check(table, 1)
    check(table, 2)


def test_a_hole_in_the_log_is_named(table: Small) -> None:
    (Path(table.uri) / "_delta_log" / f"{3:020d}.json").unlink()
    with pytest.raises(HistoryLost, match="log starts at 4"):
        check(table, 2)


def test_deleted_change_data_is_named(table: Small) -> None:
    for file in (Path(table.uri) / "_change_data").glob("*"):
        file.unlink()
    with pytest.raises(HistoryLost, match="version 2 can't be read any more: 1 of its") as error:
        check(table, 1)
    assert "rebuild top_products" in error.value.hint
    check(table, 0, upto=1)


def test_a_deleted_data_file_of_an_append_is_named(table: Small) -> None:
    for file in Path(table.uri).glob("*.parquet"):
        file.unlink()
    with pytest.raises(HistoryLost, match="version 1 can't be read"):
        check(table, 0)
