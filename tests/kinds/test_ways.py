"""The contract of views holds whoever commits, and on both sides of every limit."""

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import pytest
from tests.kinds.cogroup.cases import CASES as COGROUPS
from tests.kinds.join.cases import CASES as JOINS
from tests.kinds.join.cases_within import CASES as WITHIN
from tests.kinds.lookup.cases import CASES as LOOKUPS
from tests.kinds.over.cases import CASES as OVERS
from tests.kinds.select.cases import CASES as SELECTS
from tests.kinds.topk.cases import CASES as RANKINGS
from tests.kinds.ways import CONSTANTS, MARKED, NARROWED, WAYS
from tests.kinds.window_store.cases import CASES as STORES
from tests.sources.cases import CASES as SOURCES
from tests.support.contract import BY_SPARK, Case, hold

from sluice.limits import Limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = [
    case
    for cases in (RANKINGS, COGROUPS, LOOKUPS, STORES, SOURCES, JOINS, WITHIN, SELECTS, OVERS)
    for case in cases
    if case.by_ways
]
MARKABLE = [*(case for case in COGROUPS if not case.needs_spark), *KINDS[:2], *KINDS[5:11]]
MARKED_BY_SPARK = [RANKINGS[0], COGROUPS[-1], COGROUPS[4], LOOKUPS[4], STORES[3], SOURCES[1]]

OF_NO_VIEW = {
    "piece_bytes": "test_merging",
    "reread_rows": "test_rereads",
}


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("nth", range(len(KINDS)), ids=lambda nth: str(KINDS[nth]))
def test_small_tables_go_the_ways_of_large_ones(
    nth: int, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batch by batch another way; which is the first, and who commits, differs by kind."""
    ways = WAYS.copy()
    ways.rotate(-nth)
    if nth // 2 % 2:
        for name, value in CONSTANTS.items():
            monkeypatch.setattr(name, value)
    most = 0 if nth % 2 else 500_000
    hold(replace(KINDS[nth], spark={"small_changelog": most}, ways=tuple(ways)), spark, steps=3)


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize("nth", range(len(MARKABLE)), ids=lambda nth: str(MARKABLE[nth]))
def test_marked_rows_are_gone_for_every_batch(nth: int, local_spark: "SparkSession") -> None:
    """Files with marks are merged in between.

    For every other case, the batch has looked for the rows before its commit marks them.
    """
    here = {**MARKED, **NARROWED} if nth % 2 else MARKED
    hold(replace(MARKABLE[nth], ways=(here, here, {})), local_spark, steps=3)


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("case", MARKED_BY_SPARK, ids=str)
def test_marked_rows_are_gone_for_batches_by_spark(case: Case, spark: "SparkSession") -> None:
    """It marks rows of files that this process wrote, which goes on from there."""
    by_spark = {**MARKED, **BY_SPARK}
    hold(replace(case, ways=(MARKED, by_spark, {})), spark, steps=3)


def test_no_limit_is_without_a_run_beyond_it() -> None:
    """Within them, views are held to the contract by the tests of their operators."""
    beyond = {name for limits in WAYS for name in limits}
    assert beyond | OF_NO_VIEW.keys() == {field.name for field in fields(Limits)}
    assert not beyond & OF_NO_VIEW.keys()
