"""The head names the position, whoever else has committed; what it can't name is a named error."""

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Field, write_deltalake
from tests.delta.tables import ID_AND_V, Small, a_position, pins

from sluice.delta.log import Log
from sluice.delta.log.position import (
    Head,
    Pin,
    Position,
    _positions,
    head,
    head_as_found,
    head_of,
    positions,
)
from sluice.delta.writing.commit import commit_arrow
from sluice.errors import HistoryLost


@pytest.fixture
def table(tmp_path: Path) -> Small:
    small = Small.create(tmp_path, ID_AND_V, ["id"], commit_arrow)
    small.commit(("insert", {"id": 1, "v": "a"}))
    small.commit(("insert", {"id": 2, "v": "b"}), inputs=pins(sales=4))
    return small


def foreign_insert(uri: str) -> None:
    write_deltalake(uri, pa.table({"id": pa.array([9], pa.int32()), "v": ["z"]}), mode="append")


def test_a_position_survives_its_text() -> None:
    position = a_position(
        7,
        kind="seal",
        definition="d",
        inputs=pins(a=1),
        references=pins(b=2),
        frontier={"a": 1},
        run="r",
        horizon=datetime(2024, 1, 1, tzinfo=UTC),
        after=3,
        unchanged_since=2,
    )
    assert Position.from_json(position.to_json()) == position


@pytest.mark.parametrize("text", [None, "", "{", "[]", "null", '"sluice"', '{"other": 1}'])
def test_metadata_that_is_not_ours_is_no_position(text: str | None) -> None:
    assert Position.from_json(text) is None


def test_a_position_of_another_version_of_sluice_is_still_read() -> None:
    text = json.dumps({"sluice": {"batch": 3, "attempt": "a", "kind": "batch", "later": True}})
    assert Position.from_json(text) == a_position(3, attempt="a")


@pytest.mark.parametrize("end", ["\u2028", "\u0085", "\x1c"])
def test_a_text_with_another_end_of_line_breaks_no_commit(table: Small, end: str) -> None:
    """Statistics of files hold the greatest text, as it is."""
    table.commit(("insert", {"id": 3, "v": f"z{end}"}))
    assert table.head.position is not None
    (added,) = [action["add"] for action in Log(table.uri).actions(3) if "add" in action]
    assert json.loads(added["stats"])["maxValues"]["v"] == f"z{end}"


def test_a_position_only_commit_holds_no_file_and_no_feed_row(table: Small) -> None:
    done = table.position_only(inputs=pins(sales=9))
    assert (done.version, done.changed) == (3, 0)
    kinds = {kind for action in Log(table.uri).actions(3) for kind in action}
    assert kinds == {"commitInfo", "txn"}
    assert table.feed(3) == []
    at = table.head
    assert at.position is not None
    assert (at.version, at.data_version, at.position.inputs) == (3, 2, pins(sales=9))
    table.position_only()
    assert (table.head.version, table.head.data_version) == (4, 2)


def test_the_head_looks_through_foreign_commits_that_change_no_data(table: Small) -> None:
    table.commit(("insert", {"id": 3, "v": "c"}), inputs=pins(sales=5))
    DeltaTable(table.uri).optimize.compact()
    DeltaTable(table.uri).alter.set_table_properties({"delta.logRetentionDuration": "interval 9 d"})
    at = table.head
    assert at.position is not None
    assert (at.version, at.data_version, at.position.inputs) == (5, 3, pins(sales=5))
    assert at.next_batch == 4
    table.commit(("delete", {"id": 3, "v": "c"}))
    assert table.head.data_version == 6


def test_a_foreign_commit_of_rows_is_named_with_its_repair(table: Small) -> None:
    foreign_insert(table.uri)
    DeltaTable(table.uri).optimize.compact()
    with pytest.raises(HistoryLost, match=r"version 3 .*\(WRITE\) was not written by Sluice") as e:
        head(table.uri)
    assert "sluice rebuild" in e.value.hint
    found = head_as_found(table.uri)
    assert found is not None
    assert found.position is None
    assert (found.version, found.next_batch) == (4, 3)


def test_a_foreign_commit_of_columns_is_named_with_its_repair(table: Small) -> None:
    DeltaTable(table.uri).alter.add_columns([Field("w", "string")])
    with pytest.raises(HistoryLost, match=r"version 3 .*\(ADD COLUMN\).* changed its columns") as e:
        head(table.uri)
    assert "sluice rebuild" in e.value.hint


def test_a_restore_is_named_and_its_batches_are_numbered_on(table: Small) -> None:
    DeltaTable(table.uri).restore(1)
    with pytest.raises(HistoryLost, match=r"\(RESTORE\)"):
        head(table.uri)
    repaired = head_as_found(table.uri)
    assert repaired is not None
    assert repaired.next_batch == 3
    table.commit(("insert", {"id": 5, "v": "e"}), before=repaired, kind="rebuild")
    assert table.head.version == 4


def test_a_foreign_commit_below_the_head_is_not_forgotten(table: Small) -> None:
    before = table.head
    foreign_insert(table.uri)
    ours = a_position(before.next_batch, after=before.version)
    properties = CommitProperties(custom_metadata={"userMetadata": ours.to_json()})
    rows = pa.table({"id": pa.array([3], pa.int32()), "v": ["c"]})
    write_deltalake(table.uri, rows, mode="append", commit_properties=properties)
    with pytest.raises(HistoryLost, match="version 3"):
        head(table.uri)


def test_a_table_that_was_dropped_and_made_again_by_another_is_named(table: Small) -> None:
    old = table.head.table
    shutil.rmtree(table.uri)
    write_deltalake(table.uri, pa.table({"id": [1]}))
    with pytest.raises(HistoryLost, match="version 0"):
        head(table.uri)
    found = head_as_found(table.uri)
    assert found is not None
    assert found.table != old


def test_a_table_with_rows_of_its_own_is_not_ours(tmp_path: Path) -> None:
    uri = str(tmp_path / "foreign")
    assert head(uri) is None
    write_deltalake(uri, pa.table({"id": [1]}))
    with pytest.raises(HistoryLost):
        head(uri)


def test_commits_that_land_while_a_head_is_read_are_none_of_it(table: Small) -> None:
    before, opened = table.head, DeltaTable(table.uri)
    for number in range(3, 6):
        table.commit(("insert", {"id": number, "v": "x"}), inputs=pins(sales=number))
    assert head_of(opened, table.uri) == before
    assert dict(_positions(opened, table.uri, None)) == dict(positions(table.uri)[3:])


def test_the_head_of_a_cleaned_log_still_names_the_position(table: Small) -> None:
    for number in range(3, 8):
        table.commit(("insert", {"id": number, "v": "x"}), inputs=pins(sales=number))
    clean_log(table.uri)
    at = table.head
    assert at.position is not None
    assert (at.version, at.position.inputs, at.last_txn) == (7, pins(sales=7), 7)
    table.commit(("delete", {"id": 7, "v": "x"}))
    assert table.head.version == 8
    assert len(table.rows()) == 6
    assert [v for v, _ in positions(table.uri)] == [8, 7]


def test_a_log_cleaned_behind_foreign_commits_is_named(table: Small) -> None:
    DeltaTable(table.uri).alter.set_table_properties({"delta.logRetentionDuration": "interval 9 d"})
    clean_log(table.uri)
    with pytest.raises(HistoryLost, match="has no position any more"):
        head(table.uri)


def clean_log(uri: str) -> None:
    """As maintenance does it: a checkpoint at the head, the commits before it deleted."""
    table = DeltaTable(uri)
    table.create_checkpoint()
    for version in range(table.version()):
        (Path(uri) / "_delta_log" / f"{version:020d}.json").unlink()


def test_an_earlier_position_is_read_by_the_names_that_came_after_it() -> None:
    first = Position(1, "a", "batch", inputs={"p.a": Pin("t", 3), "p.a__state": Pin("s", 4)})
    second = first.rename_table("p.a", "p.b").rename_table("p.b", "p.a")
    third = replace(second, inputs={"p.a": Pin("other", 1)}).rename_table("p.c", "p.d")
    newest = third.rename_table("p.a", "p.e")
    named = [set(one.as_named_in(newest).inputs) for one in (first, second, third, newest)]
    assert named == [{"p.e", "p.e__state"}, {"p.e", "p.e__state"}, {"p.e"}, {"p.e"}]
    assert Position.from_json(newest.to_json()) == newest
    assert Position.from_json(first.to_json()) == first


def test_a_commits_head_is_read_once(table: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def counted(opened: DeltaTable, uri: str) -> Head:
        read.append(opened.version())
        return head_of(opened, uri)

    monkeypatch.setattr("sluice.delta.log.position.head_of", counted)
    table.commit(("insert", {"id": 3, "v": "c"}))
    read.clear()
    assert head(table.uri) == head(table.uri) == head_of(DeltaTable(table.uri), table.uri)
    assert len(read) <= 1
    table.commit(("update", {"id": 3, "v": "d"}))
    assert [at.version for at in (head(table.uri),) if at] == [4]


def test_a_folder_replaced_by_another_table_has_that_tables_head(tmp_path: Path) -> None:
    first, second = (Small.create(tmp_path, ID_AND_V, ["id"], commit_arrow) for _ in range(2))
    for n in range(3):
        first.commit(("insert", {"id": n, "v": "a"}))
    second.commit(("insert", {"id": 1, "v": "b"}))
    before, other = head(first.uri), head(second.uri)
    shutil.rmtree(first.uri)
    assert head(first.uri) is None
    shutil.move(second.uri, first.uri)
    after = head(first.uri)
    assert before
    assert other
    assert after
    assert (after.version, after.table) == (other.version, other.table) != (3, before.table)


def test_commits_open_the_table_once(table: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    class Counted(DeltaTable):
        def __init__(self, uri: str, **options: Any) -> None:
            opened.append(uri)
            super().__init__(uri, **options)

    monkeypatch.setattr("sluice.delta.places.delta_rs.DeltaTable", Counted)
    for n in range(3, 8):
        table.commit(("insert", {"id": n, "v": "c"}), ("update", {"id": 1, "v": str(n)}))
        table.position_only(inputs=pins(sales=n))
    assert len(opened) <= 1


def test_as_many_positions_as_asked_for_are_the_newest(table: Small) -> None:
    for number in range(3, 6):
        table.commit(("insert", {"id": number, "v": "x"}))
    every = positions(table.uri)
    assert [version for version, _ in every] == [5, 4, 3, 2, 1, 0]
    for limit in range(1, 8):
        assert positions(table.uri, limit) == every[:limit]


@pytest.mark.parametrize("more", [0, 1])
def test_a_table_of_another_writer_has_no_position_and_no_batch(tmp_path: Path, more: int) -> None:
    uri = str(tmp_path / "other")
    for _ in range(more + 1):
        foreign_insert(uri)
    with pytest.raises(HistoryLost, match=rf"version {more} .*was not written by Sluice"):
        head(uri)
    found = head_as_found(uri)
    assert found is not None
    assert (found.position, found.next_batch, found.data_version) == (None, 1, more)
