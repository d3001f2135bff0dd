"""Large tables in partitions take a small change by marking rows; slices expire all the same."""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.delta.tables import (
    LARGE,
    WITH_P,
    Change,
    Small,
    a_position,
    by_delta_rs,
    by_marking,
    by_spark,
    changes_of,
    in_order,
)
from tests.support.forked import forked
from tests.support.games import seeds

from sluice.changes import Direction
from sluice.delta.log import Log
from sluice.delta.log.files import has_vectors
from sluice.delta.log.position import head
from sluice.delta.places.failpoint import VARIABLE
from sluice.delta.reading.local import read_if_few, read_where
from sluice.delta.upkeep import rewriting
from sluice.delta.upkeep.maintenance import Filing
from sluice.delta.upkeep.rewriting import merge, rewrite_marked, unmark
from sluice.delta.upkeep.table_invariants import feed_faults, position_faults
from sluice.delta.writing.commit import commit_arrow, overwrite_arrow
from sluice.errors import LostRace
from sluice.limits import Limits
from sluice.read.keyed import KeyedTable
from sluice.read.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTS, EACH = 4, 25
COLUMNS = pa.schema([("id", pa.int32()), ("v", pa.string()), ("p", pa.int32())])
Row = dict[str, Any]


def row(id_: int, v: str, p: int | None = -1) -> Row:
    return {"id": id_, "v": v, "p": id_ % PARTS if p == -1 else p}


@pytest.fixture(params=[["id", "p"], ["id"]], ids=["by key and partition", "by key"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Small:
    """Keys 0 to 99, each in one of four partitions: the rest of its division."""
    return filled(tmp_path, request.param, by_marking(None))  # type: ignore[arg-type]


def filled(folder: Path, key: list[str], write: Any) -> Small:
    small = Small.create(folder, WITH_P, key, write, partition_by=["p"])
    small.commit(*[("insert", row(i, f"v{i}")) for i in range(PARTS * EACH)])
    return small


CHANGES: list[Change] = [
    ("update", row(4, "new")),
    ("update", row(97, "new")),
    ("delete", row(48, "v48")),
    ("insert", row(202, "new")),
]


def expected(*changes: Change) -> list[Row]:
    rows = {i: row(i, f"v{i}") for i in range(PARTS * EACH)}
    for change, values in changes:
        rows.pop(values["id"], None)
        if change != "delete":
            rows[values["id"]] = values
    return [rows[i] for i in sorted(rows)]


FEED = [
    ("delete", row(48, "v48")),
    ("insert", row(202, "new")),
    ("update_postimage", row(4, "new")),
    ("update_postimage", row(97, "new")),
    ("update_preimage", row(4, "v4")),
    ("update_preimage", row(97, "v97")),
]


def test_only_the_change_is_written_and_only_to_its_partitions(table: Small) -> None:
    done = table.commit(*CHANGES)
    assert (done.inserted, done.updated, done.deleted) == (1, 2, 1)
    actions = Log(table.uri).actions(done.version)
    removed = {a["remove"]["path"] for a in actions if "remove" in a}
    added = {a["add"]["path"] for a in actions if "add" in a}
    assert {path.partition("/")[0] for path in removed} == {"p=0", "p=1"}
    assert removed < added, "what is marked stays"
    assert {path.partition("/")[0] for path in added - removed} == {"p=0", "p=1", "p=2"}
    assert table.feed(done.version) == FEED


def test_all_readers_see_the_same_rows(table: Small) -> None:
    table.commit(*CHANGES)
    rows, version = expected(*CHANGES), table.head.version
    assert has_vectors(DeltaTable(table.uri))
    assert table.rows() == in_order(rows)
    assert pl.scan_delta(table.uri).sort("id").collect().to_dicts() == rows
    assert in_order(read_where(table.uri, version).to_pylist()) == in_order(rows)
    near = pc.field("p") == 1
    some = read_if_few(table.uri, version, 100, ["id", "p"], near, near)
    assert some is not None
    assert sorted(some["id"].to_pylist()) == list(range(1, 100, 4))
    read = KeyedTable(Snapshot.open("t", table.uri), ("id",))
    assert read.all().to_arrow().to_pylist() == rows
    assert [read.get(i) for i in (4, 48, 202)] == [row(4, "new"), None, row(202, "new")]


@pytest.mark.usefixtures("real_spark")
def test_spark_sees_the_same_rows_and_the_same_feed(table: Small, session: "SparkSession") -> None:
    done = table.commit(*CHANGES)
    found = session.read.format("delta").load(table.uri).collect()
    assert in_order([each.asDict() for each in found]) == in_order(expected(*CHANGES))
    reader = session.read.format("delta").option("readChangeFeed", "true")
    reader = reader.option("startingVersion", done.version)
    feed = reader.load(table.uri).collect()
    assert changes_of([each.asDict() for each in feed]) == FEED


def test_earlier_versions_have_the_rows_that_they_had(table: Small) -> None:
    before = table.head.version
    table.commit(*CHANGES)
    table.commit(("delete", row(8, "v8")), ("update", row(4, "newer")))
    for version, rows in ((before, expected()), (before + 1, expected(*CHANGES))):
        read = KeyedTable(Snapshot.open("t", table.uri, version), ("id",))
        assert read.all().to_arrow().to_pylist() == rows


def test_a_row_may_move_to_another_partition(tmp_path: Path) -> None:
    table = filled(tmp_path, ["id"], by_marking(None))  # type: ignore[arg-type]
    moves: list[Change] = [("update", row(4, "moved", 3)), ("update", row(5, "lost", None))]
    done = table.commit(*moves)
    assert table.rows() == in_order(expected(*moves))
    assert table.feed(done.version) == changes_of(
        [
            {**row(4, "v4"), "_change_type": "update_preimage"},
            {**row(4, "moved", 3), "_change_type": "update_postimage"},
            {**row(5, "v5"), "_change_type": "update_preimage"},
            {**row(5, "lost", None), "_change_type": "update_postimage"},
        ]
    )
    more: list[Change] = [("update", row(5, "found", 1)), ("delete", row(4, "moved", 3))]
    table.commit(*more)
    assert table.rows() == in_order(expected(*moves, *more))
    assert not list(feed_faults(table.uri))


def test_small_files_are_put_together_in_their_partition(table: Small) -> None:
    most, updates = LARGE.small_files, list[Change]()
    for i in range(3 * most):
        updates.append(("update", row(4 * (i % 20), f"x{i}")))
        done = table.commit(updates[-1])
        actions = Log(table.uri).actions(done.version)
        touched = [a[k]["path"] for a in actions for k in ("add", "remove") if k in a]
        assert {path.partition("/")[0] for path in touched} == {"p=0"}
        assert len(DeltaTable(table.uri).file_uris()) <= PARTS + most
    assert table.rows() == in_order(expected(*updates))
    assert not list(feed_faults(table.uri))


def filing(table: Small, limits: Limits = LARGE) -> Filing:
    return Filing(table.head, limits, (Direction("id"),), "p")


@pytest.mark.parametrize("place", ["merging", "committing", "committed"])
def test_a_batch_that_comes_while_marked_files_are_written_again_keeps_its_rows(
    table: Small, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    table.commit(*CHANGES)

    def late(here: str, _: str) -> None:
        if here == place:
            table.commit(("insert", row(300, "late")))

    monkeypatch.setattr(rewriting, "passing", late)
    with suppress(LostRace):  # unless all pieces were committed before
        unmark(filing(table), filing(table).slices)
    monkeypatch.undo()
    late_row: Change = ("insert", row(300, "late"))
    assert table.rows() == in_order(expected(*CHANGES, late_row))
    unmark(filing(table), filing(table).slices)
    assert table.rows() == in_order(expected(*CHANGES, late_row))
    assert not list(feed_faults(table.uri))


def correct(table: Small, place: str) -> None:
    os.environ[VARIABLE] = f"{place}:{Path(table.uri).name}"
    table.commit(*CHANGES)


def write_again(table: Small, place: str) -> None:
    os.environ[VARIABLE] = f"{place}:{Path(table.uri).name}"
    unmark(filing(table), filing(table).slices)


@pytest.mark.parametrize("place", ["committing", "marked", "committed"])
def test_a_kill_while_rows_are_marked_leaves_all_or_nothing(table: Small, place: str) -> None:
    process = forked(correct, table, place)
    process.join()
    assert process.exitcode == -9
    is_done = place == "committed"
    assert table.rows() == in_order(expected(*CHANGES) if is_done else expected())
    if not is_done:
        table.commit(*CHANGES)
    assert table.rows() == in_order(expected(*CHANGES))
    assert not list(feed_faults(table.uri))


@pytest.mark.parametrize("place", ["committing", "committed"])
def test_a_kill_while_marked_files_are_written_again_is_mended_by_the_next_time(
    table: Small, place: str
) -> None:
    table.commit(*CHANGES)
    process = forked(write_again, table, place)
    process.join()
    assert process.exitcode == -9
    assert table.rows() == in_order(expected(*CHANGES))
    unmark(filing(table), filing(table).slices)
    assert not any(slice_.gone for slice_ in filing(table).slices)
    assert table.rows() == in_order(expected(*CHANGES))
    assert not list(feed_faults(table.uri))
    assert not list(position_faults(table.uri))


def test_the_feed_of_an_overwritten_table_shows_the_rows_that_it_had(table: Small) -> None:
    table.commit(*CHANGES)
    before = rewrite_marked(table.head, Limits())
    new = pa.Table.from_pylist([row(1, "new")], COLUMNS)
    done = overwrite_arrow(before, new, a_position(before.next_batch))
    gone = [values for change, values in table.feed(done.version) if change == "delete"]
    assert gone == in_order(expected(*CHANGES))
    assert not list(feed_faults(table.uri))


def test_rows_that_are_only_marked_leave_the_files_and_other_partitions_stay(table: Small) -> None:
    """As `forget` asks."""
    table.commit(*CHANGES)
    before = {Path(uri) for uri in DeltaTable(table.uri).file_uris()}
    assert unmark(filing(table), filing(table).slices).version == table.head.version
    after = {Path(uri) for uri in DeltaTable(table.uri).file_uris()}
    assert {path.parent.name for path in before - after} == {"p=0", "p=1"}
    texts = [v for path in after for v in pq.read_table(path)["v"].to_pylist()]
    assert sorted(texts) == sorted(r["v"] for r in expected(*CHANGES))


def by_compaction(table: Small, _: Any) -> None:
    at = filing(table)
    assert at.compact(at.slices, "compact") > 0


def by_pieces(table: Small, _: Any) -> None:
    at = filing(table)
    assert merge(at, at.slices, "seal") == (7, [])
    assert sum(s.gone for s in filing(table).slices) == 0


def by_sparks_rewrite(table: Small, session: "SparkSession") -> None:
    at = filing(table)
    assert at.refile(session, at.slices, "seal") == 7


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("how", [by_compaction, by_pieces, by_sparks_rewrite])
def test_files_are_written_again_without_what_is_marked(
    table: Small, session: "SparkSession", how: Callable[..., None]
) -> None:
    table.commit(*CHANGES)
    version = table.head.version
    how(table, session)
    assert table.rows() == in_order(expected(*CHANGES))
    assert all(table.feed(v) == [] for v in range(version + 1, table.head.version + 1))
    more: list[Change] = [("update", row(4, "again")), ("delete", row(96, "v96"))]
    table.commit(*more)
    assert table.rows() == in_order(expected(*CHANGES, *more))
    assert not list(feed_faults(table.uri))


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("write", [by_delta_rs, by_spark])
def test_other_commits_follow_on_marked_rows(
    table: Small, session: "SparkSession", write: Callable[..., Any]
) -> None:
    """They rewrite marked files, take the last rows of some, and add to others."""
    table.commit(*CHANGES)
    gone: list[Change] = [("delete", r) for r in expected(*CHANGES) if r["p"] == 1]
    more: list[Change] = [("update", row(8, "x")), ("insert", row(500, "y")), *gone]
    table.write = write(session)
    done = table.commit(*more)
    assert table.rows() == in_order(expected(*CHANGES, *more))
    assert [c for c in table.feed(done.version) if c[0] == "delete"] == [
        ("delete", each) for each in in_order([values for _, values in gone])
    ]
    assert not list(feed_faults(table.uri))


@pytest.mark.parametrize("seed", seeds(3, 40))
def test_marked_and_merged_tables_have_the_same_rows_and_feeds(tmp_path: Path, seed: int) -> None:
    """Random histories, with upkeep and expiry between, of the same changes in both ways."""
    chance, held = Random(seed), {i: row(i, f"v{i}") for i in range(PARTS * EACH)}
    limits = Limits(piece_bytes=chance.choice([1_500, 10**9]), file_rows=30, slice_file_rows=30)
    key = chance.choice([["id"], ["id", "p"]])
    marked = partial(commit_arrow, limits=LARGE)
    both = [filled(tmp_path, key, write) for write in (marked, commit_arrow)]
    earliest, then = 0, dict[int, list[Row]]()
    for n in range(15):
        match chance.choice(["batch", "batch", "batch", "upkeep", "expiry"]):
            case "batch":
                changes = list(drawn(chance, held, n, earliest, may_move=key == ["id"]))
                versions = [small.commit(*changes).version for small in both] if changes else []
                feeds = [s.feed(v) for s, v in zip(both, versions, strict=False)]
                assert feeds[1:] == feeds[:-1]
                then |= {version: list(held.values()) for version in versions[:1]}
            case "upkeep":
                at = filing(both[0], limits)
                merge(at, at.slices, "seal")
            case "expiry" if earliest < PARTS + 3:
                earliest += chance.choice([0, 1])
                gone = [r for r in held.values() if r["p"] is not None and r["p"] < earliest]
                changes = [("delete", r) for r in gone]
                feeds = [s.feed(s.commit(*changes).version) for s in both if changes]
                assert feeds[1:] == feeds[:-1]
                held = {i: r for i, r in held.items() if r not in gone}
        assert [s.rows() for s in both] == 2 * [in_order(list(held.values()))]
    for version, rows in then.items():
        assert both[0].rows(version) == in_order(rows)
    assert not list(feed_faults(both[0].uri))
    assert not list(position_faults(both[0].uri))
    assert head(both[0].uri) is not None


def drawn(
    chance: Random, held: dict[int, Row], n: int, earliest: int, *, may_move: bool
) -> list[Change]:
    """Changes of random keys, which are applied to what is held."""
    changes = list[Change]()
    for id_ in chance.sample(range(PARTS * EACH + 40), chance.choice([1, 5, 40])):
        old, part = held.get(id_), earliest + id_ % PARTS
        if old is None:
            changes.append(("insert", row(id_, f"n{n}", part)))
        elif chance.random() < 0.3:
            changes.append(("delete", old))
        else:
            to = part if may_move and chance.random() < 0.3 else old["p"]
            changes.append(("update", row(id_, f"n{n}", to)))
    for change, values in changes:
        held.pop(values["id"], None)
        if change != "delete":
            held[values["id"]] = values
    return changes
