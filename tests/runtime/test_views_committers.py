"""The contract of views holds whoever commits, and however much there is to read."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from tests.operators import test_cogroup, test_lookup, test_source, test_topk, test_window_store
from tests.support.contract import SETTINGS, Case, hold

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = [
    test_topk.CASES[0],  # a state that runs short
    test_topk.CASES[4],  # no key, hidden columns
    test_cogroup.CASES[2],  # recomputed, with lists
    test_cogroup.CASES[4],  # additive, in windows
    test_lookup.CASES[0],  # keeps the number of its batch
    test_window_store.CASES[3],  # partitioned, row by row
    test_source.CASES[1],
]
FEWER = settings(SETTINGS, max_examples=2, stateful_step_count=2)


@pytest.mark.parametrize("case", [KINDS[2], KINDS[5]], ids=str)
def test_spark_commits_what_delta_rs_would(case: Case, spark: "SparkSession") -> None:
    hold(replace(case, spark={"commit": "spark"}), spark, FEWER)


@pytest.mark.parametrize("case", KINDS, ids=str)
def test_large_tables_are_read_and_written_by_spark(
    case: Case, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("storage.table", "runtime.computation", "runtime.topk", "runtime.writing"):
        monkeypatch.setattr(f"sluice.{module}.SMALL_BYTES", -1)
    monkeypatch.setattr("sluice.runtime.cogroup_reads.MOST_ROWS", -1)
    hold(replace(case, spark={"small_changelog": 0}), spark, FEWER)


@pytest.mark.parametrize("case", [KINDS[2], KINDS[3]], ids=str)
def test_touched_rows_of_large_tables_are_picked_without_spark(
    case: Case, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice.runtime.cogroup_reads.SMALL_BYTES", -1)
    hold(case, spark, FEWER)
