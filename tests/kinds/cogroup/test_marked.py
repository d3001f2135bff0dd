"""Large tables of a cogroup: `plan` says how a batch will commit, and upkeep follows it."""

from pathlib import Path
from typing import TYPE_CHECKING

from tests.kinds.cogroup.test_extension import SALES, SOLD, view
from tests.kinds.cogroup.test_merging import ROWS, lake_of
from tests.support.lake import HEAD
from tests.support.landed import Landed

from sluice.delta.upkeep.invariants import feed_faults
from sluice.engine.committing.upkeep import Kept
from sluice.engine.context import Context
from sluice.engine.planning.nodes import nodes_of
from sluice.operate.explain import explain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REMARK = "a few changed rows are marked, and no file is rewritten for them"


def test_plan_says_that_changed_rows_of_a_large_table_will_be_marked(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = lake_of(tmp_path, spark, "total: sum(v)")
    lake.put("sales", {**ROWS[0], "v": 7})
    table = lake.table("found")
    assert not any(REMARK in step.reason for step in explain(lake.project, table))
    lake.limit(merged_bytes=-1, marked_share=1_000)
    assert any(REMARK in step.reason for step in explain(lake.project, table))


def test_upkeep_files_tables_again_whose_rows_are_marked(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = lake_of(tmp_path, spark, "total: sum(v)").limit(merged_bytes=-1, marked_share=1_000)
    lake.put("sales", {**ROWS[0], "v": 7})
    lake.advance()
    for node in nodes_of(lake.table("found"), lake.project.graph):
        kept = Kept.of(Context.of(lake.project), node)
        filing = kept.filing
        assert filing is not None
        assert [s.gone for s in kept.crowded(filing)] == [1]


def test_the_feed_stays_whole_if_a_marked_table_is_replaced(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    """A key with one column more replaces both tables; their old rows leave in the feed."""
    lake = Landed(tmp_path, view(SOLD), spark).limit(merged_bytes=-1, marked_share=1_000)
    lake.put("sales", *SALES)
    lake.advance()
    lake.put("sales", {**SALES[0], "v": 7})
    lake.advance()
    lake.declare(HEAD + view(SOLD).replace("key: [g]", "key: [g, id]"))
    lake.rebuild("found")
    for name in lake.stored_names("found"):
        assert not list(feed_faults(lake.uri(name)))
    assert [v for v in lake.verdicts("found") if not v.is_equal] == []
