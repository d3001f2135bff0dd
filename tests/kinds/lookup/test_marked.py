"""A correction of a large lookup marks the rows that go, in the buckets of their facts alone."""

from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable
from tests.kinds.lookup.plans import DECLARED, filled
from tests.support.games import seeds
from tests.support.in_duckdb import wrong
from tests.support.lake import Lake, counted, folded

from sluice.delta.log import Log
from sluice.delta.log.files import has_vectors
from sluice.delta.writing.own_commits import rows_of
from sluice.operate import maintain as upkeep
from sluice.operate.explain import explain
from sluice.operate.verify import faults

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAIN = DECLARED.replace("abs(buyer)", "buyer")
LARGE = {"merged_bytes": -1, "marked_share": 1_000, "small_files": 3}
REMARK = "up to 390,000 changed rows are marked; more, or rows in few files, rewrite these files"


def large(folder: Path, spark: "SparkSession") -> Lake:
    lake = filled(Lake(folder, PLAIN, spark)).limit(**LARGE)
    lake.advance()
    return lake


def test_a_correction_writes_its_rows_and_no_file_again(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = large(tmp_path, spark)
    lake.put("products", {"product": 3, "price": Decimal(99)})
    assert any(REMARK in step.reason for step in explain(lake.project, lake.table("invoices")))
    (report,) = lake.advance()
    assert (report.inserted, report.updated, report.deleted) == (0, 10, 0)
    at = lake.head("invoices")
    actions = Log(at.uri).actions(at.version)
    files, known = ([a[k] for a in actions if k in a] for k in ("add", "remove"))
    marked = {file["path"] for file in known}
    assert marked < {file["path"] for file in files}, "they stay"
    assert sum(rows_of(file) for file in files if file["path"] not in marked) == 10
    assert len({file["path"].partition("/")[0] for file in files}) <= 7, "one for each buyer"
    assert has_vectors(DeltaTable(at.uri))
    assert wrong(lake) == {}
    assert not any(faults(lake.project, lake.table("invoices")).values())


@pytest.mark.parametrize("seed", seeds(2, 30))
def test_random_corrections_leave_the_rows_and_the_feed_of_a_merged_lookup(
    tmp_path: Path, spark: "SparkSession", seed: int
) -> None:
    """Products, buyers and facts change, facts move to other buckets, and upkeep comes between."""
    marked, merged = large(tmp_path / "marked", spark), filled(Lake(tmp_path / "m", PLAIN, spark))
    merged.advance()
    chance, both = Random(seed), (marked, merged)
    for n in range(8):
        some = chance.sample(range(39), chance.choice([1, 3]))
        match chance.choice(["products", "buyers", "sales", "gone", "maintain"]):
            case "products":
                rows = [{"product": i, "price": Decimal(100 + n)} for i in some]
                changes = [("products", rows, [])]
            case "buyers":
                changes = [("buyers", [{"buyer": some[0] % 7, "region": f"new {n}"}], [])]
            case "sales":
                rows = [{"id": i * 9, "product": (i + n) % 40, "buyer": n % 7} for i in some]
                changes = [("sales", rows, [])]
            case "gone":
                changes = [("sales", [], [{"id": i * 10} for i in some])]
            case "maintain":
                upkeep.maintain(marked.spark, marked.project, [marked.table("invoices")])
                changes = []
        for lake in both:
            for name, rows, gone in changes:
                lake.put(name, *rows, gone=gone)
            lake.advance()
        assert counted(marked.stored("invoices")) == counted(merged.stored("invoices"))
    shown = [folded(lake.feed("invoices")) for lake in both]
    assert shown[0] == shown[1]
    assert has_vectors(DeltaTable(marked.uri("invoices")))
    assert wrong(marked) == {}
    assert not any(faults(marked.project, marked.table("invoices")).values())
