"""A version is known by who made it: numbers come again where a table was put back."""

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.delta.tables import ID_AND_V, Small, a_position

from sluice.delta.log.continuity import as_of, check_input, is_still, position_at
from sluice.delta.log.position import Pin, Position
from sluice.delta.upkeep.maintenance import Filing
from sluice.delta.writing.commit import commit_arrow
from sluice.errors import InputBehind, InputReplaced, InputRewritten, LogCleaned
from sluice.limits import Limits


@pytest.fixture
def table(tmp_path: Path) -> Small:
    """Two commits after its creation, and a copy of it as it was after the first."""
    table = Small.create(tmp_path, ID_AND_V, ["id"], commit_arrow)
    insert(table, 1)
    shutil.copytree(table.uri, tmp_path / "backup")
    insert(table, 2)
    return table


def insert(table: Small, number: int) -> None:
    table.commit(("insert", {"id": number, "v": "a"}))


def put_back(table: Small) -> None:
    shutil.rmtree(table.uri)
    shutil.copytree(Path(table.uri).parent / "backup", table.uri)


def test_a_version_whose_number_came_again_is_another(table: Small) -> None:
    read = table.head.pin
    put_back(table)
    with pytest.raises(InputBehind, match="reflects version 2 of sales, which is now only at 1"):
        check_input("totals", "sales", table.head, read)
    for number in (3, 4):
        insert(table, number)
        with pytest.raises(InputRewritten, match="version 2 of sales, which is another") as told:
            check_input("totals", "sales", table.head, read)
        assert "sluice rebuild totals" in told.value.hint


def test_what_was_read_before_the_backup_stays_read(table: Small) -> None:
    read = as_of(table.head, 1).pin
    put_back(table)
    insert(table, 3)
    check_input("totals", "sales", table.head, read)


def test_upkeep_and_settings_have_a_past_of_their_own(table: Small) -> None:
    filing = Filing(table.head, Limits())
    filing.compact(filing.slices, "compact")
    DeltaTable(table.uri).alter.set_table_properties({"delta.checkpointInterval": "100"})
    pins = [as_of(table.head, version).pin for version in range(5)]
    assert len({pin.attempt for pin in pins}) == 4  # a setting has no attempt
    assert all(is_still(table.head, pin) for pin in pins)
    put_back(table)
    for number in (3, 4, 5):
        insert(table, number)
    assert [is_still(table.head, pin) for pin in pins] == [True, True, False, False, False]


def test_a_table_of_another_id_is_another_table(table: Small) -> None:
    with pytest.raises(InputReplaced):
        check_input("totals", "sales", table.head, Pin("another", 1))
    with pytest.raises(InputReplaced, match="does not exist any more"):
        check_input("totals", "sales", None, table.head.pin)
    check_input("totals", "sales", None, None)


def test_what_the_log_no_longer_shows_is_an_error(table: Small) -> None:
    read, newest = as_of(table.head, 1).pin, table.head.pin
    DeltaTable(table.uri).create_checkpoint()
    for version in range(2):
        (Path(table.uri) / "_delta_log" / f"{version:020d}.json").unlink()
    assert position_at(table.uri, 1) is None
    with pytest.raises(LogCleaned, match="no longer shows"):
        check_input("totals", "sales", table.head, read)
    check_input("totals", "sales", table.head, newest)
    check_input("totals", "sales", table.head, Pin(read.table, read.version))


def test_positions_without_an_attempt_are_read(table: Small) -> None:
    said = a_position(1, inputs={"sales": table.head.pin}).to_json()
    position = Position.from_json(said)
    assert position is not None
    assert position.inputs["sales"].attempt == table.head.pin.attempt != ""
    earlier = Position.from_json(said.replace(f',"attempt":"{table.head.pin.attempt}"', ""))
    assert earlier is not None
    assert earlier.inputs == position.inputs
    assert earlier.inputs["sales"].attempt == ""
