"""Upkeep in pieces of tables with slices and with orders of several columns."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import StructType
from tests.delta.tables import Small, by_delta_rs

from sluice.changes import Direction
from sluice.delta.upkeep import pieces, rewriting
from sluice.delta.upkeep.maintenance import Filing
from sluice.delta.upkeep.rewriting import may_merge, merge
from sluice.delta.upkeep.table_invariants import feed_faults
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
