"""Large tables take a small change by marking rows: no file is rewritten, and readers agree."""

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyspark.sql.types import StructType
from tests.delta.tables import ID_AND_V, LARGE, Change, Small, a_position, by_marking, by_spark

from sluice.changes import CHANGE, Direction
from sluice.delta.log import Log
from sluice.delta.log import files as replayed
from sluice.delta.log.files import added_files, has_vectors
from sluice.delta.log.position import head_as_found
from sluice.delta.reading import searching
from sluice.delta.reading.live import live_rows
from sluice.delta.reading.local import read_if_few, read_where
from sluice.delta.upkeep.maintenance import Filing, vacuum
from sluice.delta.upkeep.rewriting import merge, rewrite_marked
from sluice.delta.upkeep.table_invariants import feed_faults, position_faults, row_count
from sluice.delta.writing.commit import commit_arrow, most_marked, overwrite_arrow, should_mark
from sluice.delta.writing.own_commits import vectors_allowed
from sluice.errors import HistoryLost
from sluice.limits import Limits
from sluice.read.keyed import KeyedTable
from sluice.read.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES, EACH = 4, 25


def row(id_: int, v: str) -> dict[str, Any]:
    return {"id": id_, "v": v}


@pytest.fixture
def table(tmp_path: Path) -> Small:
    """Keys 0 to 99 in four files of neighbours."""
    small = Small.create(tmp_path, ID_AND_V, ["id"], by_marking(None))  # type: ignore[arg-type]
    for first in range(0, FILES * EACH, EACH):
        small.commit(*[("insert", row(i, f"v{i}")) for i in range(first, first + EACH)])
    return small


CHANGES: list[Change] = [
    ("update", row(3, "new")),
    ("update", row(97, "new")),
    ("delete", row(50, "v50")),
    ("insert", row(200, "new")),
]


def expected(*changes: Change) -> list[dict[str, Any]]:
    rows = {i: row(i, f"v{i}") for i in range(FILES * EACH)}
    for change, values in changes:
        rows.pop(values["id"], None)
        if change != "delete":
            rows[values["id"]] = values
    return [rows[i] for i in sorted(rows)]


def test_only_the_change_is_written(table: Small) -> None:
    done = table.commit(*CHANGES)
    assert (done.inserted, done.updated, done.deleted) == (1, 2, 1)
    actions = Log(table.uri).actions(done.version)
    added_, removed = ([a[k]["path"] for a in actions if k in a] for k in ("add", "remove"))
    assert len(set(added_) - set(removed)) == 1
    assert len(removed) == 3
    assert table.feed(done.version) == [
        ("delete", row(50, "v50")),
        ("insert", row(200, "new")),
        ("update_postimage", row(3, "new")),
        ("update_postimage", row(97, "new")),
        ("update_preimage", row(3, "v3")),
        ("update_preimage", row(97, "v97")),
    ]


def test_all_readers_see_the_same_rows(table: Small) -> None:
    table.commit(*CHANGES)
    rows = expected(*CHANGES)
    by_key = [("id", "ascending")]
    assert table.rows() == sorted(rows, key=repr)
    assert pl.scan_delta(table.uri).sort("id").collect().to_dicts() == rows
    with duckdb.connect() as connection:
        stored = QueryBuilder().register("t", DeltaTable(table.uri)).execute("SELECT * FROM t")
        connection.register("stored", stored)
        found = connection.sql("SELECT id, v FROM stored ORDER BY id").to_arrow_table()
    assert found.to_pylist() == rows
    version = table.head.version
    assert read_where(table.uri, version).sort_by(by_key).to_pylist() == rows
    whole = live_rows(DeltaTable(table.uri), table.uri).to_table()
    assert whole.sort_by(by_key).to_pylist() == rows
    assert row_count(table.uri, version) == len(rows)
    near = pc.field("id") >= 97
    some = read_if_few(table.uri, version, 100, ["v"], near, near)
    assert some is not None
    assert sorted(some["v"].to_pylist()) == ["new", "new", "v98", "v99"]


def test_reads_by_row_group_leave_marked_rows_out(table: Small) -> None:
    table.commit(*CHANGES)
    read = KeyedTable(Snapshot.open("t", table.uri), ("id",))
    rows = expected(*CHANGES)
    assert read.all().to_arrow().to_pylist() == rows
    assert read.count == len(rows)
    assert [read.get(i) and read.get(i)["v"] for i in (3, 50, 51, 200)] == [  # type: ignore[index]
        *("new", None, "v51", "new")
    ]
    assert read.range(key_from=48, key_to=52, limit=3).to_arrow()["id"].to_pylist() == [48, 49, 51]
    assert read.read(where="v = 'v50'").to_arrow().num_rows == 0
    assert read.read(columns=["v"]).to_arrow().num_rows == len(rows)


def test_earlier_versions_have_the_rows_that_they_had(table: Small) -> None:
    before = table.head.version
    table.commit(*CHANGES)
    table.commit(("delete", row(4, "v4")), ("update", row(3, "newer")))
    for version, rows in ((before, expected()), (before + 1, expected(*CHANGES))):
        read = KeyedTable(Snapshot.open("t", table.uri, version), ("id",))
        assert read.all().to_arrow().to_pylist() == rows
        assert read_where(table.uri, version).num_rows == len(rows)


def test_marks_add_up_over_commits_and_checkpoints(table: Small) -> None:
    table.write = partial(commit_arrow, limits=replace(LARGE, small_files=1_000))
    for i in range(24):
        table.commit(("delete", row(i, f"v{i}")), ("update", row(75 + i, f"x{i}")))
    assert list(Path(table.uri, "_delta_log").glob("*.checkpoint.parquet"))
    for old in range(20):
        Path(table.uri, "_delta_log", f"{old:020d}.json").unlink()
    replayed._known.clear()  # as in the next process
    files = added_files(table.uri, table.head.version)
    assert files is not None
    vectors = [f["deletionVector"]["cardinality"] for f in files.values() if "deletionVector" in f]
    assert sum(vectors) == 48
    updates: list[Change] = [("update", row(75 + i, f"x{i}")) for i in range(24)]
    rows = expected(*[("delete", row(i, "")) for i in range(24)], *updates)
    assert table.rows() == sorted(rows, key=repr)
    assert not list(position_faults(table.uri))
    done = table.commit(("delete", row(50, "v50")))
    (again,) = [a["add"] for a in Log(table.uri).actions(done.version) if "add" in a]
    assert again["deletionVector"]["cardinality"] == 1
    assert table.rows() == sorted((r for r in rows if r["id"] != 50), key=repr)


def test_a_checkpoint_keeps_what_others_say_of_files(table: Small) -> None:
    commit, tags = Path(table.uri, "_delta_log", f"{table.head.version:020d}.json"), {"BY": "me"}
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        action.get("add", {})["tags"] = tags
    commit.write_text("\n".join(map(json.dumps, actions)))
    DeltaTable(table.uri).create_checkpoint()
    replayed._known.clear()
    done = table.commit(("delete", row(99, "v99")))
    assert [a["add"]["tags"] for a in Log(table.uri).actions(done.version) if "add" in a] == [tags]
    assert table.rows() == sorted(expected()[:-1], key=repr)


def test_the_feed_of_an_overwritten_table_shows_the_rows_that_it_had(table: Small) -> None:
    """delta-rs' feed shows the marked rows of a removed file instead of the others."""
    table.commit(*CHANGES)
    schema = pa.schema(DeltaTable(table.uri).schema().to_arrow())
    before = rewrite_marked(table.head, Limits())
    new = pa.Table.from_pylist([row(1, "new")], schema)
    done = overwrite_arrow(before, new, a_position(before.next_batch))
    gone = [values for change, values in table.feed(done.version) if change == "delete"]
    assert sorted(gone, key=lambda values: int(values["id"])) == expected(*CHANGES)
    assert table.rows() == [row(1, "new")]
    assert not list(feed_faults(table.uri))
    assert rewrite_marked(table.head, Limits()).version == done.version


def test_small_files_are_put_together(table: Small) -> None:
    most, updates = LARGE.small_files, list[Change]()
    for i in range(3 * most):
        updates.append(("update", row(75 + i % 20, f"x{i}")))
        table.commit(updates[-1])
        assert len(DeltaTable(table.uri).file_uris()) <= most
    assert table.rows() == sorted(expected(*updates), key=repr)
    assert not list(feed_faults(table.uri))
    assert not repeated_rows(table)


def test_files_of_few_but_wide_rows_are_not_put_together(table: Small) -> None:
    """Upkeep leaves such files: each has the bytes of a piece."""
    size = min(file["size"] for file in (added_files(table.uri, table.head.version) or {}).values())
    limits = replace(LARGE, piece_bytes=4 * size, small_files=2)
    table.write = partial(commit_arrow, limits=limits)
    before = set(DeltaTable(table.uri).file_uris())
    table.commit(*CHANGES)
    assert before < set(DeltaTable(table.uri).file_uris())


@pytest.mark.parametrize("days", [4_000_000, -800_000])
def test_dates_that_python_lacks_are_marked_and_filed_again(tmp_path: Path, days: int) -> None:
    columns = StructType().add("id", "integer").add("on", "date")
    small = Small.create(tmp_path, columns, ["id"], by_marking(None))  # type: ignore[arg-type]
    ids, on = pa.array([1, 2], pa.int32()), pa.array([days, 0], pa.date32())
    for change in ("insert", "update", "update"):
        before, rows = small.head, pa.table({"id": ids, "on": on, CHANGE: [change] * 2})
        commit_arrow(before, rows, ["id"], a_position(before.next_batch), LARGE)
    filing = Filing(small.head, Limits(), (Direction("id"),))
    assert merge(filing, filing.slices, "compact")[1] == []
    assert read_where(small.uri, small.head.version)["on"].combine_chunks().equals(on)


def repeated_rows(table: Small) -> list[Change]:
    """Rows of the feed that no commit has changed: put together, they only moved."""
    return [c for v in range(FILES + 1, table.head.version + 1) for c in table.feed(v)[2:]]


def test_a_file_whose_rows_have_all_gone_is_removed(table: Small) -> None:
    done = table.commit(*[("delete", row(i, f"v{i}")) for i in range(EACH)])
    assert not [a for a in Log(table.uri).actions(done.version) if "add" in a]
    assert table.rows() == sorted(expected()[EACH:], key=repr)
    assert not list(feed_faults(table.uri))


@pytest.mark.parametrize(
    "change",
    [("update", row(500, "x")), ("delete", row(500, "x")), ("insert", row(7, "x"))],
    ids=lambda change: change[0],
)
def test_a_changelog_of_other_rows_is_refused_and_changes_nothing(
    table: Small, change: Change
) -> None:
    before = table.head.version
    with pytest.raises(HistoryLost, match="did not hold the rows"):
        table.commit(("update", row(3, "new")), change)
    assert table.head.version == before


def test_files_are_merged_and_rewritten_as_ever_afterwards(table: Small) -> None:
    table.commit(*CHANGES)
    commit_arrow(
        table.head,
        table.changelog([("update", row(4, "merged")), ("delete", row(96, "v96"))]),
        ["id"],
        a_position(table.head.next_batch),
    )
    more: list[Change] = [("update", row(4, "merged")), ("delete", row(96, ""))]
    rows = sorted(expected(*CHANGES, *more), key=repr)
    assert table.rows() == rows
    filing = Filing(table.head, Limits())
    assert filing.compact(filing.slices, "compact") > 1
    assert table.rows() == rows
    assert not list(feed_faults(table.uri))


def test_a_vacuum_keeps_marked_files_and_what_marks_them(table: Small) -> None:
    table.commit(*CHANGES)
    table.commit(("delete", row(4, "v4")))
    rows, later = table.rows(), datetime.now(UTC) + timedelta(days=30)
    stored = DeltaTable(table.uri)
    for file in Path(table.uri).rglob("*.parquet"):
        os.utime(file, (0, 0))
    gone = stored.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert len(gone) == 2, "the change data of two commits"
    assert table.rows() == rows
    assert vacuum(table.head, table.head.version, later) == 0


@pytest.mark.usefixtures("real_spark")
def test_sparks_merge_leaves_no_vectors_in_files(table: Small, session: "SparkSession") -> None:
    table.commit(*CHANGES)
    table.write = by_spark(session)
    table.commit(("update", row(4, "by Spark")), ("delete", row(96, "v96")))
    assert not list(Path(table.uri).glob("*.bin"))
    more: list[Change] = [("update", row(4, "by Spark")), ("delete", row(96, ""))]
    assert table.rows() == sorted(expected(*CHANGES, *more), key=repr)
    assert not list(feed_faults(table.uri))


@pytest.mark.usefixtures("real_spark")
def test_a_worn_table_is_put_in_order_and_nobody_notices(
    table: Small, session: "SparkSession"
) -> None:
    gone: list[Change] = [("delete", row(i, f"v{i}")) for i in range(0, 44, 2)]
    table.commit(*gone[:20])
    (whole,) = Filing(table.head, Limits()).slices
    assert (whole.gone, whole.is_worn) == (20, False)
    table.commit(*gone[20:])
    filing, rows = Filing(table.head, Limits(), [Direction("id")]), table.rows()
    assert (filing.slices[0].gone, filing.slices[0].is_worn) == (22, True)
    assert filing.refile(session, filing.slices, "compact") == FILES
    assert Filing(table.head, Limits()).slices[0].gone == 0
    assert table.rows() == rows
    assert table.feed(table.head.version) == []
    table.commit(("update", row(45, "x")))
    assert not list(feed_faults(table.uri))


@pytest.mark.parametrize(
    ("keys", "files_merged", "marked"),
    [
        ([3, 97], 1.5, True),
        ([3, 4], 1.5, False),
        ([3, 97], FILES + 1, False),
        (list(range(0, 100, 3)), 1.5, False),
    ],
    ids=["scattered", "in one file", "a small table", "a third of all rows"],
)
def test_files_are_rewritten_where_that_is_less(
    table: Small, keys: list[int], files_merged: float, marked: bool
) -> None:
    rows = table.changelog([("update", row(i, "x")) for i in keys])
    size = sum(f.stat().st_size for f in Path(table.uri).glob("*.parquet")) / FILES
    limits = Limits(merged_bytes=int(files_merged * size), marked_share=0.1)
    assert should_mark(table.head, rows, ["id"], limits) is marked


@pytest.mark.parametrize("files_merged", [FILES - 1, FILES + 1], ids=["large", "small"])
def test_no_more_rows_are_marked_than_is_said_beforehand(table: Small, files_merged: int) -> None:
    size = sum(f.stat().st_size for f in Path(table.uri).glob("*.parquet")) / FILES
    limits = Limits(merged_bytes=int(files_merged * size), marked_share=0.1)
    most = most_marked(table.head, ["id"], limits)
    assert most == (10 if files_merged < FILES else 0)
    for keys in (range(0, 100, 10), range(0, 99, 9)):
        rows = table.changelog([("update", row(i, "x")) for i in keys])
        assert should_mark(table.head, rows, ["id"], limits) is (rows.num_rows <= most)


def test_a_table_is_given_vectors_by_its_first_marked_change(table: Small) -> None:
    assert not has_vectors(DeltaTable(table.uri))
    DeltaTable(table.uri).alter.set_table_description("of customers")
    table.commit(*CHANGES)
    protocol = DeltaTable(table.uri).protocol()
    assert DeltaTable(table.uri).metadata().description == "of customers"
    assert protocol.reader_features == ["deletionVectors"]
    assert DeltaTable(table.uri).metadata().configuration["delta.enableChangeDataFeed"] == "true"
    assert table.head.altered == ()


def test_a_table_may_be_named_by_a_uri_with_escapes(tmp_path: Path) -> None:
    folder = tmp_path / "my lake"
    small = Small.create(folder, ID_AND_V, ["id"], by_marking(None))  # type: ignore[arg-type]
    small.uri = Path(small.uri).as_uri()
    small.commit(("insert", row(1, "a")), ("insert", row(2, "b")))
    small.commit(("update", row(1, "new")), ("delete", row(2, "b")))
    assert has_vectors(DeltaTable(small.uri))
    assert small.rows() == [row(1, "new")]
    assert read_where(small.uri, 2).to_pylist() == [row(1, "new")]
    assert KeyedTable(Snapshot.open("t", small.uri), ("id",)).all().to_arrow().num_rows == 1


@pytest.mark.parametrize(
    ("parts", "marked"), [(["p"], True), (["v"], False), (["p", "q"], False)], ids=str
)
def test_a_table_in_several_partitions_or_by_texts_is_merged(
    tmp_path: Path, parts: list[str], marked: bool
) -> None:
    uri = str(tmp_path / "t")
    stored = pa.table({"id": [1, 2], "v": ["a", "b"], "p": [1, 2], "q": [1, 2]})
    write_deltalake(uri, stored, partition_by=parts)
    before = head_as_found(uri)
    assert before is not None
    rows = stored.slice(0, 1).append_column(CHANGE, [["update"]])
    assert should_mark(before, rows, ["id"], LARGE) is marked


def test_a_table_that_can_not_be_searched_is_rewritten_by_the_commit(
    table: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if another writer had left files with columns of other types."""
    monkeypatch.setattr(searching, "columns_of", Mock(side_effect=pa.ArrowInvalid("other types")))
    done = table.commit(*CHANGES)
    monkeypatch.undo()
    assert table.rows() == sorted(expected(*CHANGES), key=repr)
    assert not has_vectors(DeltaTable(table.uri))
    assert done.changed == len(CHANGES)


def test_vectors_that_were_switched_off_are_allowed_again(tmp_path: Path) -> None:
    uri = Small.create(tmp_path, ID_AND_V, ["id"], commit_arrow).uri
    for value in ("true", "false"):
        DeltaTable(uri).alter.set_table_properties({"delta.enableDeletionVectors": value})
    assert [name for each in vectors_allowed(DeltaTable(uri)) for name in each] == [
        "protocol",
        "metaData",
    ]
