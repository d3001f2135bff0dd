"""Upkeep changes files, never rows, positions or feeds."""

import uuid

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from sluice.changelog.diff import CHANGE
from sluice.storage.commit import commit_arrow
from sluice.storage.maintenance import compact
from sluice.storage.position import Head, Pin, Position, head


def build(uri: str, commits: int) -> Head:
    """A table of one row a commit, each with a position."""
    schema = pa.schema([("k", pa.int64())])
    position = Position(0, uuid.uuid4().hex, "create")
    DeltaTable.create(
        uri,
        schema,
        configuration={"delta.enableChangeDataFeed": "true"},
        commit_properties=CommitProperties(custom_metadata={"userMetadata": position.to_json()}),
    )
    for n in range(1, commits + 1):
        before = head(uri)
        rows = pa.table({"k": [n], CHANGE: ["insert"]})
        inputs = {"shop.sales": Pin("id", n)}
        commit_arrow(before, rows, ("k",), Position(n, uuid.uuid4().hex, "batch", inputs=inputs))
    return head(uri)


def feed(uri: str) -> list[dict]:
    rows = pa.table(DeltaTable(uri).load_cdf(starting_version=0).read_all()).to_pylist()
    return sorted(rows, key=lambda row: (row["_commit_version"], row["k"]))


def test_many_files_become_one_and_the_position_stays(tmp_path):
    uri = str(tmp_path / "t")
    before, changes = build(uri, 5), feed(str(tmp_path / "t"))
    assert compact(uri, many=5) == 5
    after = head(uri)
    assert len(DeltaTable(uri).file_uris()) == 1
    assert after.version == before.version + 1
    assert after.data_version == before.data_version
    assert after.position.inputs == before.position.inputs
    assert after.next_batch == before.next_batch
    assert feed(uri) == changes


def test_few_files_are_left_alone(tmp_path):
    uri = str(tmp_path / "t")
    before = build(uri, 3)
    assert compact(uri, many=4) == 0
    assert head(uri).version == before.version


def test_a_table_that_is_not_sluices_is_left_alone(tmp_path):
    uri = str(tmp_path / "t")
    for n in range(4):
        write_deltalake(uri, pa.table({"k": [n]}), mode="append")
    assert compact(uri, many=2) == 0
    assert compact(str(tmp_path / "nothing"), many=2) == 0


def test_a_batch_goes_on_after_upkeep(tmp_path):
    uri = str(tmp_path / "t")
    build(uri, 4)
    compact(uri, many=2)
    before = head(uri)
    rows = pa.table({"k": [9], CHANGE: ["insert"]})
    done = commit_arrow(before, rows, ("k",), Position(before.next_batch, "a", "batch"))
    assert done.inserted == 1
    assert sorted(DeltaTable(uri).to_pyarrow_table()["k"].to_pylist()) == [1, 2, 3, 4, 9]
