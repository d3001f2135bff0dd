"""Upkeep in pieces: what is worn is rewritten, a bounded part of it in each commit."""

import json
import os
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from tests.delta.tables import a_position
from tests.delta.worn import FILE, LIMITS, Table, added, bytes_read, data, paths
from tests.support.forked import forked
from tests.support.games import seeds

from sluice.delta.log import Log
from sluice.delta.log.files import added_files as files_of
from sluice.delta.log.files import has_vectors
from sluice.delta.log.opened import open_version
from sluice.delta.log.position import Pin
from sluice.delta.places.failpoint import VARIABLE
from sluice.delta.reading.local import read_where
from sluice.delta.upkeep import pieces, rewriting
from sluice.delta.upkeep.maintenance import Filing
from sluice.delta.upkeep.rewriting import merge
from sluice.delta.upkeep.table_invariants import feed_faults, position_faults
from sluice.delta.writing.commit import commit_arrow
from sluice.delta.writing.filing import is_in_order
from sluice.delta.writing.own_commits import rows_of
from sluice.read.keyed import KeyedTable
from sluice.read.snapshot import Snapshot

pytestmark = pytest.mark.usefixtures("small_row_groups")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Six files of neighbours, and three that cover all of them."""
    made = Table(tmp_path_factory.mktemp("made"))
    made.fill(6 * FILE)
    for _ in range(3):
        made.scatter(3_750, gone=125)
    return made


@pytest.fixture(scope="module")
def sliced(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Two slices, each larger than a piece, of neighbours and three files that cover them."""
    made = Table(tmp_path_factory.mktemp("sliced"), replace(LIMITS, piece_bytes=87_500), parts=2)
    made.fill(6 * FILE)
    for _ in range(3):
        made.scatter(2_250, gone=125)
    return made


@pytest.fixture
def table(made: Table, tmp_path: Path) -> Table:
    return made.copied(tmp_path)


@pytest.fixture
def worn(sliced: Table, tmp_path: Path) -> Table:
    return sliced.copied(tmp_path)


@pytest.fixture(params=["made", "sliced"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    made: Table = request.getfixturevalue(request.param)
    return made.copied(tmp_path)


def test_a_worn_table_is_put_in_order_in_pieces_and_nobody_notices(table: Table) -> None:
    before = table.stored.head
    assert table.upkeep() >= 6
    table.check()
    commits = table.versions_since(before.version)
    assert len(commits) > 3
    for version in commits:
        assert table.stored.feed(version) == []
        assert not Log(table.uri).changes_data(version)
        files = added(table, version)
        assert 0 < sum(data(table, file["path"]) for file in files) <= table.limits.piece_bytes
        for file in files:
            bounds = json.loads(file["stats"])
            ids = pq.read_table(Path(table.uri, file["path"]))["id"].to_pylist()
            assert (bounds["minValues"]["id"], bounds["maxValues"]["id"]) == (ids[0], ids[-1])
            assert ids == sorted(ids)
            assert len(ids) <= 1.5 * FILE
    after = table.stored.head
    assert after.position == replace(
        before.position,
        kind="compact",
        run="",
        attempt=after.position.attempt,
        after=after.version - 1,
        unchanged_since=before.data_version,
    )
    assert (after.next_batch, after.data_version) == (before.next_batch, before.data_version)
    assert sum(s.gone for s in Filing(after, table.limits).slices) == 0
    assert is_in_order(table.uri, sorted(paths(table)), "id")
    assert not list(position_faults(table.uri))
    checkpoint = Path(table.uri, "_delta_log", f"{after.version:020d}.checkpoint.parquet")
    assert checkpoint.exists(), "a reader needs no commit of upkeep"
    assert (table.upkeep(), table.stored.head.version) == (0, after.version), "it is in order"


def test_no_piece_reads_more_than_the_limit(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    read = bytes_read(monkeypatch)
    table.upkeep()
    assert len(read) > 3
    assert 0 < max(read) <= table.limits.piece_bytes


def test_rows_that_are_wide_in_memory_are_cut_by_that(table: Table) -> None:
    """Texts that repeat take a hundredth of their room on the disk."""
    version, text = table.stored.head.version, "all the same " * 10
    for first in range(2):
        ids = pa.array(range(first, 4 * FILE, 2), pa.int32())
        table.append(pa.table({"id": ids, "v": pa.repeat(text, len(ids))}))
    table.upkeep()
    written = [sum(rows_of(a) for a in added(table, v)) for v in table.versions_since(version + 2)]
    assert sum(written) > 8 * FILE
    assert max(written) * len(text) <= 1.5 * pieces.IN_MEMORY * table.limits.piece_bytes


@pytest.mark.parametrize(
    ("piece_bytes", "file_rows", "is_less"), [(100, 20, False), (200, 10, False), (200, 20, True)]
)
def test_covers_are_gathered_if_fewer_are_left(
    piece_bytes: int, file_rows: int, is_less: bool
) -> None:
    files = [pieces.FileLayout(f"f{n}", 10, 0, (0, 50), ((10, 100),)) for n in range(3)]
    limits = replace(LIMITS, piece_bytes=piece_bytes, file_rows=file_rows, small_files=9)
    assert bool(pieces.plan_gathering(files, limits)) == is_less


def test_a_table_that_was_filed_is_not_filed_again(tmp_path: Path) -> None:
    """Of a file in order with the rows of three, and a cover most of whose rows are marked."""
    table = Table(tmp_path, replace(LIMITS, small_files=100))
    table.change(range(0, 6 * FILE, 2))
    table.fill(4 * FILE)
    table.scatter(3_750)
    table.scatter(1_250, gone=3_000)
    assert table.upkeep()
    version = table.stored.head.version
    assert max(map(rows_of, files_of(table.uri, version).values())) <= 2 * FILE
    assert [table.upkeep(), table.upkeep()] == [0, 0]
    assert table.stored.head.version == version
    table.check()


def test_files_that_are_not_worn_stay(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.fill(6 * FILE)
    before = paths(table)
    near = np.arange(2 * FILE, 4 * FILE, 8)
    table.change(near)
    kept = paths(table) & before
    table.upkeep()
    table.check()
    assert len(before & paths(table)) == 5
    assert len(kept) == 6
    is_marked = [f for f in Filing(table.stored.head, LIMITS).slices if f.gone]
    assert not is_marked


def test_few_changed_rows_are_no_reason_to_rewrite_files(tmp_path: Path) -> None:
    """What has gathered is merged by itself."""
    table = Table(tmp_path, replace(LIMITS, small_files=99))
    table.fill(6 * FILE)
    ground = paths(table)
    for _ in range(3):
        table.scatter(250)
    assert table.upkeep() == 3
    table.check()
    assert ground < paths(table)
    assert len(paths(table)) == len(ground) + 1


def test_small_neighbours_are_put_together(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.fill(4 * FILE)
    ground = paths(table)
    for first in range(8 * FILE, 8 * FILE + 2_000, 250):
        table.change(range(first, first + 250))
    assert table.upkeep() == 8
    table.check()
    assert ground < paths(table)
    assert len(paths(table)) == len(ground) + 1
    assert not has_vectors(DeltaTable(table.uri))


def test_rows_in_no_order_are_sorted_first(tmp_path: Path) -> None:
    """A file with the rows of many, as a MERGE leaves it, which is larger than a piece may be."""
    table = Table(tmp_path)
    table.rows = {int(key): f"{key * 7_919:012x}" for key in table.drawn.permutation(4 * FILE)}
    at = table.stored.head
    table.append(pa.table({"id": pa.array(table.rows, pa.int32()), "v": [*table.rows.values()]}))
    (lump,) = paths(table)
    assert data(table, lump) > LIMITS.piece_bytes
    table.upkeep()
    table.check()
    assert is_in_order(table.uri, sorted(paths(table)), "id")
    assert len(table.versions_since(at.version + 1)) > 2
    for version in table.versions_since(at.version + 1):
        written = sum(data(table, file["path"]) for file in added(table, version))
        assert written <= LIMITS.piece_bytes
        assert table.stored.feed(version) == []


def test_other_engines_read_a_table_between_two_pieces(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that lie in new files are marked in the files from which they were taken."""

    def look(place: str, uri: str) -> None:
        if place != "committed":
            return
        rows = pl.scan_delta(table.uri).collect().to_dict(as_series=False)
        assert dict(zip(rows["id"], rows["v"], strict=True)) == table.rows
        with duckdb.connect() as connection:
            stored = QueryBuilder().register("t", DeltaTable(table.uri)).execute("SELECT * FROM t")
            connection.register("stored", stored)
            (count,) = connection.sql("SELECT count(DISTINCT id) FROM stored").fetchall()
        assert count == (len(table.rows),)
        read = KeyedTable(Snapshot.open("t", table.uri), ("id",))
        for key in (0, 1, 4 * FILE, 4 * FILE + 1, 12 * FILE - 2):
            found = read.get(key)
            assert (found and found["v"]) == table.rows.get(key)

    monkeypatch.setattr(rewriting, "passing", look)
    table.upkeep()


@pytest.mark.usefixtures("real_spark")
def test_spark_reads_a_table_between_two_pieces(table: Table, session: "SparkSession") -> None:
    name = Path(table.uri).name
    process = forked(go, table, f"committed:{name}#2")
    process.join()
    assert sum(s.gone for s in Filing(table.stored.head, LIMITS).slices) > 0
    rows = session.read.format("delta").load(table.uri).toPandas()
    assert dict(zip(rows["id"], rows["v"], strict=True)) == table.rows


@pytest.mark.parametrize("place", ["merging", "committing"])
def test_a_batch_that_comes_in_between_costs_only_a_piece(
    either: Table, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    pieces, lost = list[int](), list[int]()

    def first(here: str, uri: str) -> None:
        if here == "committed":
            pieces.append(either.stored.head.version)
        if here == place and len(pieces) == 1 and not lost:
            either.change([0, 2 * FILE, 12 * FILE - 2, 7], gone=[2, 4])
            lost.append(either.stored.head.version)

    monkeypatch.setattr(rewriting, "passing", first)
    either.upkeep()
    either.check()
    assert len(pieces) >= 3
    assert [v for v in either.versions_since(0) if Log(either.uri).changes_data(v)][-1] == lost[0]
    assert not list(feed_faults(either.uri))
    monkeypatch.undo()
    assert either.upkeep() > 0
    either.check()
    assert sum(s.gone for s in either.filing.slices) <= 6


def test_a_batchs_position_holds_although_upkeep_goes_on(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin = {"shop.sales": Pin("id", 99)}
    done = list[str]()

    def once(here: str, uri: str) -> None:
        if here == "committing" and not done:
            done.append(here)
            rows = table.stored.changelog([("insert", {"id": 99, "v": "new"})])
            at = table.stored.head
            commit_arrow(at, rows, ["id"], a_position(at.next_batch, inputs=pin), LIMITS)

    monkeypatch.setattr(rewriting, "passing", once)
    table.upkeep()
    assert table.stored.head.position.inputs == pin
    assert table.stored.head.position.kind == "compact"


def go(table: Table, place: str) -> None:
    os.environ[VARIABLE] = place
    table.upkeep()


@pytest.mark.parametrize("place", ["merging", "committing", "committed"])
def test_a_kill_between_two_pieces_leaves_a_whole_table_and_the_next_upkeep_goes_on(
    either: Table, place: str
) -> None:
    version = either.stored.head.version
    process = forked(go, either, f"{place}:{Path(either.uri).name}#3")
    process.join()
    assert process.exitcode == -9
    assert either.stored.head.version == version + (3 if place == "committed" else 2)
    either.check()
    done = {file["path"] for v in either.versions_since(version) for file in added(either, v)}
    either.scatter(100)
    either.upkeep()
    either.check()
    if either.parts == 1:
        assert done & paths(either), "what was in order is not written again"
        assert sum(s.gone for s in either.filing.slices) < 100
    assert not list(feed_faults(either.uri))


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("seed", seeds(3, 40))
def test_random_histories_with_upkeep_between(tmp_path: Path, seed: int, parts: int) -> None:
    chance = Random(seed)
    limits = replace(LIMITS, piece_bytes=chance.choice([75_000, 150_000, 250_000, 10**9]))
    table = Table(tmp_path, limits, parts)
    table.drawn = np.random.default_rng(seed)
    table.fill(2 * FILE)
    for _ in range(12):
        match chance.choice(["scatter", "scatter", "near", "gone", "upkeep"]):
            case "scatter":
                table.scatter(chance.choice([10, 750, 2_250]), gone=chance.choice([0, 50]))
            case "near":
                first = chance.randrange(8 * FILE)
                table.change(range(first, first + chance.choice([5, 1_000])))
            case "gone":
                known = sorted(table.rows)
                first = chance.randrange(len(known) - 1_250)
                table.change([], known[first : first + chance.choice([1, 1_000])])
            case "upkeep":
                before = table.stored.head.version
                table.upkeep()
                assert all(table.stored.feed(v) == [] for v in table.versions_since(before))
        table.check()
    for version, rows in table.then.items():
        then = read_where(table.uri, version, ["id", "v"])
        assert dict(zip(*then.to_pydict().values(), strict=True)) == rows
    assert not list(feed_faults(table.uri))
    assert not list(position_faults(table.uri))


def test_a_slice_that_is_larger_than_a_piece_is_cut(worn: Table) -> None:
    before, most = worn.stored.head.version, worn.limits.piece_bytes
    assert all(each.bytes > 2 * most for each in worn.filing.slices)
    worn.upkeep()
    worn.check()
    assert len(worn.versions_since(before)) > 5
    for version in worn.versions_since(before):
        files = added(worn, version)
        assert 0 < sum(data(worn, file["path"]) for file in files) <= most
        assert len({file["path"].partition("/")[0] for file in files}) == 1
        assert worn.stored.feed(version) == []
    assert sum(each.gone for each in worn.filing.slices) == 0
    for each in worn.filing.slices:
        assert is_in_order(worn.uri, each.paths, "id")
    assert (worn.upkeep(), worn.upkeep()) == (0, 0)
    assert not list(position_faults(worn.uri))


def test_other_slices_stay_as_they_are(worn: Table) -> None:
    one, other = worn.filing.slices
    merge(worn.filing, [one], "compact")
    worn.check()
    assert worn.filing.slices[1] == other
    assert worn.filing.slices[0].gone == 0


def test_rows_from_before_a_column_was_added_get_a_null(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.change(range(20))
    table.append(pa.table({"id": pa.array([20], pa.int32()), "v": ["new"], "more": [1]}))
    assert table.upkeep() == 2
    rows = read_where(table.uri, table.stored.head.version)
    assert rows["more"].to_pylist() == [None] * 20 + [1]
    assert rows.schema.names == ["id", "v", "more"]


def test_a_table_gets_vectors_only_if_it_must_be_cut(tmp_path: Path) -> None:
    for piece_bytes, is_cut in ((10**9, False), (LIMITS.piece_bytes, True)):
        limits = replace(LIMITS, piece_bytes=piece_bytes)
        table = Table(tmp_path, limits)
        table.fill(3 * FILE)
        for _ in range(2):
            new = 2 * table.drawn.choice(3 * FILE, 2_250, replace=False) + 1
            table.change(set(new.tolist()) - table.rows.keys())
        table.upkeep()
        table.check()
        assert has_vectors(open_version(table.uri)) is is_cut
