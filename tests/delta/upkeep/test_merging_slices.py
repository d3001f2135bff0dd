"""Upkeep in pieces of tables with slices and with orders of several columns."""

import os
from dataclasses import replace
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import StructType
from tests.delta.tables import Small, by_delta_rs
from tests.delta.worn import BY_ID, FILE, LIMITS, Table, added, data
from tests.support.forked import forked
from tests.support.games import seeds

from sluice.changes.order import Direction
from sluice.delta.places.failpoint import VARIABLE
from sluice.delta.reading.local import read_rows
from sluice.delta.upkeep import pieces, rewriting
from sluice.delta.upkeep.maintenance import Filing
from sluice.delta.upkeep.rewriting import may_merge, merge
from sluice.delta.upkeep.table_invariants import feed_faults, position_faults
from sluice.delta.writing.filing import is_in_order
from sluice.limits import Limits

pytestmark = pytest.mark.usefixtures("small_row_groups")

SALES = (
    StructType()
    .add("part", "long")
    .add("shop", "string")
    .add("day", "date")
    .add("amount", "decimal(20,2)")
    .add("tags", StructType().add("a", "long").add("b", "string"))
)
PIECES = replace(LIMITS, piece_bytes=87_500)
SHOP_AND_DAY = (Direction("shop"), Direction("day", descending=True))


def sale(n: int) -> dict[str, Any]:
    tags = None if n % 11 == 0 else {"a": n, "b": f"b{n % 3}"}
    shop = None if n % 13 == 0 else f"s{n * 7 % 5}"
    day = date.fromordinal(730_000 + n)
    return {"part": n % 3, "shop": shop, "day": day, "amount": n, "tags": tags}


@pytest.mark.parametrize("is_parted", [False, True])
@pytest.mark.parametrize("piece_bytes", [1, 4_000, 10**9])
def test_orders_of_several_columns_with_nulls_and_parts(
    tmp_path: Path, piece_bytes: int, is_parted: bool
) -> None:
    parts = {"partition_by": ["part"]} if is_parted else {}
    table = Small.create(tmp_path, SALES, ["day"], by_delta_rs(None), **parts)  # type: ignore[arg-type]
    for n in range(4):
        table.commit(*[("insert", sale(i)) for i in range(n, 240, 4)])
    limits = Limits(piece_bytes=piece_bytes, file_rows=50)
    rows, before = table.rows(), table.head.version
    filing = Filing(table.head, limits, SHOP_AND_DAY, "part" if is_parted else None)
    assert may_merge(filing)
    done, large = merge(filing, filing.slices, "seal")
    assert table.rows() == rows
    assert all(table.feed(v) == [] for v in range(before + 1, table.head.version + 1))
    assert not list(feed_faults(table.uri))
    if is_parted and piece_bytes == 1:
        assert len(large) == 3, "row groups are too large for any piece"
    elif is_parted:
        assert (done, large) == (12, [])
        assert [len(s.paths) for s in filing_of(table).slices] == [1, 1, 1]
    else:
        assert done == 4 or piece_bytes < 10**9
    table.commit(("delete", sale(7)), ("update", {**sale(8), "amount": 1}))
    assert len(table.rows()) == 239


def filing_of(table: Small) -> Filing:
    return Filing(table.head, Limits(), SHOP_AND_DAY, "part")


def test_slices_are_filed_as_many_at_once_as_a_piece_holds(tmp_path: Path) -> None:
    table = Small.create(tmp_path, SALES, ["day"], by_delta_rs(None), partition_by=["part"])  # type: ignore[arg-type]
    for n in range(3):
        table.commit(*[("insert", sale(i)) for i in range(n, 90, 3)])
    stood, before = table.rows(), table.head.version
    (one, *_) = filing_of(table).slices
    sizes = {f["path"]: f["size_bytes"] for f in active(table)}
    each = sum(sizes[path] for path in one.paths)
    filing = replace(filing_of(table), limits=Limits(piece_bytes=2 * each + 50))
    merge(filing, filing.slices, "compact")
    assert table.head.version == before + 2
    assert table.rows() == stood


def test_only_a_table_with_slices_and_an_order_is_filed_by_slice(tmp_path: Path) -> None:
    table = Small.create(tmp_path, SALES, ["day"], by_delta_rs(None), partition_by=["part"])  # type: ignore[arg-type]
    table.commit(*[("insert", sale(i)) for i in range(9)])
    assert not may_merge(replace(filing_of(table), partition=None))
    assert not may_merge(replace(filing_of(table), order=()))
    assert not may_merge(replace(filing_of(table), order=[Direction("part")]))


def active(table: Small) -> list[dict[str, Any]]:
    found = pa.RecordBatchReader.from_stream(DeltaTable(table.uri).get_add_actions(flatten=True))
    return found.read_all().to_pylist()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Two slices, each larger than a piece, of neighbours and three files that cover them."""
    made = Table(tmp_path_factory.mktemp("made"), PIECES, parts=2)
    made.fill(6 * FILE)
    for _ in range(3):
        made.scatter(2_250, gone=125)
    return made


@pytest.fixture
def worn(made: Table, tmp_path: Path) -> Table:
    return made.copied(tmp_path)


def test_a_slice_that_is_larger_than_a_piece_is_cut(worn: Table) -> None:
    before = worn.stored.head.version
    assert all(each.bytes > 2 * PIECES.piece_bytes for each in worn.filing.slices)
    worn.upkeep()
    worn.check()
    assert len(worn.versions_since(before)) > 5
    for version in worn.versions_since(before):
        files = added(worn, version)
        assert 0 < sum(data(worn, file["path"]) for file in files) <= PIECES.piece_bytes
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


def test_a_batch_between_two_pieces_of_a_slice_costs_only_one(
    worn: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = list[int]()

    def between(place: str, uri: str) -> None:
        if place == "committing":
            pieces.append(len(pieces))
            if len(pieces) == 2:
                worn.change([0, 1, 2 * FILE, 12 * FILE - 2, 7], gone=[2, 4])

    monkeypatch.setattr(rewriting, "passing", between)
    worn.upkeep()
    worn.check()
    assert len(pieces) > 6
    assert not list(feed_faults(worn.uri))


def go(uri: str, place: str) -> None:
    os.environ[VARIABLE] = place
    stored = Small(uri, ["id"], by_delta_rs(None))  # type: ignore[arg-type]
    filing = Filing(stored.head, PIECES, BY_ID, "p")
    merge(filing, filing.slices, "compact")


@pytest.mark.parametrize("place", ["merging", "committing", "committed"])
def test_a_kill_between_two_pieces_of_a_slice_leaves_a_whole_table(worn: Table, place: str) -> None:
    version = worn.stored.head.version
    process = forked(go, worn.uri, f"{place}:{Path(worn.uri).name}#3")
    process.join()
    assert process.exitcode == -9
    assert worn.stored.head.version == version + (3 if place == "committed" else 2)
    worn.check()
    worn.scatter(100)
    worn.upkeep()
    worn.check()
    assert not list(feed_faults(worn.uri))


@pytest.mark.parametrize("seed", seeds(2, 40))
def test_random_histories_of_slices_with_upkeep_between(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    limits = replace(LIMITS, piece_bytes=chance.choice([75_000, 150_000]))
    table = Table(tmp_path, limits, parts=chance.choice([2, 3]))
    table.drawn = np.random.default_rng(seed)
    table.fill(4 * FILE)
    for _ in range(8):
        match chance.choice(["scatter", "scatter", "near", "upkeep"]):
            case "scatter":
                table.scatter(chance.choice([10, 750, 2_250]), gone=chance.choice([0, 50]))
            case "near":
                first = chance.randrange(8 * FILE)
                table.change(range(first, first + chance.choice([5, 1_000])))
            case "upkeep":
                before = table.stored.head.version
                table.upkeep()
                assert all(table.stored.feed(v) == [] for v in table.versions_since(before))
        table.check()
    for version, rows in table.then.items():
        then = read_rows(table.uri, version, ["id", "v"])
        assert dict(zip(*then.to_pydict().values(), strict=True)) == rows
    assert not list(feed_faults(table.uri))
    assert not list(position_faults(table.uri))


def test_a_few_files_show_how_wide_the_rows_of_a_slice_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Small.create(tmp_path, SALES, ["day"], by_delta_rs(None), partition_by=["part"])  # type: ignore[arg-type]
    for n in range(12):
        table.commit(*[("insert", sale(i)) for i in range(n * 9, n * 9 + 9)])
    weighed, original = list[int](), pieces._width
    monkeypatch.setattr(pieces, "_width", lambda *given: weighed.append(1) or original(*given))
    at = filing_of(table)
    assert [len(each.paths) for each in at.slices] == [12, 12, 12]
    assert merge(at, at.slices, "seal") == (36, [])
    assert len(weighed) == 3 * rewriting.WEIGHED
