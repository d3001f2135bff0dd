"""The contract of views holds whoever commits, and on both sides of every limit."""

from collections import deque
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from tests.kinds.cogroup import test_cogroup
from tests.kinds.join import test_join, test_within
from tests.kinds.lookup import test_lookup
from tests.kinds.select import test_select
from tests.kinds.topk import test_topk
from tests.kinds.window_store import test_window_store
from tests.sources import test_source
from tests.support.contract import SETTINGS, Case, hold

from sluice.limits import Limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("real_spark")

KINDS = [
    test_topk.CASES[0],  # a state that runs short
    test_topk.CASES[6],  # no key, hidden columns
    test_cogroup.CASES[2],  # recomputed, with lists
    test_cogroup.CASES[4],  # additive, in windows
    test_cogroup.CASES[6],  # sessions
    test_lookup.CASES[0],  # keeps the number of its batch
    test_lookup.CASES[3],
    test_lookup.CASES[4],  # follows its dimensions
    test_lookup.CASES[7],
    test_window_store.CASES[3],  # partitioned, row by row
    test_source.CASES[1],
    test_join.CASES[3],  # both sides drive it
    test_within.CASES[3],  # full, expiring
    test_select.CASES[4],  # distinct
]
MARKABLE = [*test_cogroup.CASES, *KINDS[:2], *KINDS[5:11]]
FEWER = settings(SETTINGS, stateful_step_count=2)
IN_TURN = settings(SETTINGS, stateful_step_count=3)
NONE = -1  # not even nothing is within the limit

NARROWED = {"read_here_bytes": NONE}  # without Spark
PICKED = {**NARROWED, "computed_here_bytes": NONE}
SCANNED = {  # begun without Spark, and left to it
    **NARROWED,
    "narrowed_bytes": NONE,
    **dict.fromkeys(("kept_bytes", "searched_bytes", "scanned_bytes", "matched_rows"), NONE),
    **dict.fromkeys(("few_tasks_bytes", "few_tasks_merge_bytes"), NONE),
    **dict.fromkeys(("uncounted_changelog_bytes", "counted_changelog_bytes"), NONE),
    **dict.fromkeys(("ranked_feed_bytes", "grouped_feed_bytes", "joined_uncounted_bytes"), NONE),
    **dict.fromkeys(("named_groups", "named_values"), 0),
    "broadcast_memory_share": 0,
}
FOUND_TO_BE_MANY = {
    **PICKED,
    **dict.fromkeys(("ranked_state_bytes", "handed_rows", "picked_groups"), NONE),
    **dict.fromkeys(("ranked_full_bytes", "ranked_full_share"), NONE),
    **dict.fromkeys(("counted_changelog_bytes", "held_changelog_bytes"), NONE),
    **dict.fromkeys(("spread_sample_rows", "least_ranges", "sampled_changelog_rows"), 1),
    **dict.fromkeys(("file_rows", "slice_rows", "slice_file_rows"), 1),
    **dict.fromkeys(("joined_keys", "joined_changed_share", "unordered_rows"), 0),
    "multiplied_rows": 0,
    "slice_files": 2,
}
MARKED = {**dict.fromkeys(("merged_bytes", "merged_slice_bytes"), NONE)}
MARKED |= {"marked_share": 1_000, "small_files": 2}
WAYS = deque([NARROWED, PICKED, SCANNED, FOUND_TO_BE_MANY, MARKED])
OF_NO_VIEW = {
    "quarantined_rows": "test_balance",
    "quarantined_bytes": "test_balance",
    "handed_bytes": "stores/test_handed",
    "interpreted_rows": "test_small",
    "searched_together_bytes": "test_searching",
    "found_bytes": "test_found",
    "messages_here_bytes": "sources/kafka/decoding/test_large",
    "loose_files": "test_lookup_plans",
    "piece_bytes": "test_merging",
    "round_intervals": "test_run_dimensions",
    "swept_bytes": "test_sweep",
    "swept_feed_bytes": "test_sweep",
}


@pytest.mark.parametrize("case", [KINDS[2], KINDS[9]], ids=str)
def test_spark_commits_what_delta_rs_would(case: Case, spark: "SparkSession") -> None:
    hold(replace(case, spark={"commit": "spark"}), spark, FEWER)


@pytest.mark.parametrize("nth", range(len(KINDS)), ids=lambda nth: str(KINDS[nth]))
def test_small_tables_go_the_ways_of_large_ones(nth: int, spark: "SparkSession") -> None:
    """Batch by batch another way; which is the first, and who commits, differs by kind."""
    ways = WAYS.copy()
    ways.rotate(-nth)
    most = 0 if nth % 2 else 500_000
    hold(replace(KINDS[nth], spark={"small_changelog": most}, ways=tuple(ways)), spark, IN_TURN)


@pytest.mark.parametrize("nth", range(len(MARKABLE)), ids=lambda nth: str(MARKABLE[nth]))
def test_marked_rows_are_gone_for_every_batch(nth: int, spark: "SparkSession") -> None:
    """Rows are marked by either engine's batches, and files with marks are merged in between.

    For every other case, the batch has looked for the rows before its commit marks them.
    """
    here = {**MARKED, **NARROWED} if nth % 2 else MARKED
    by_spark = {**MARKED, "computed_here_bytes": NONE}
    hold(replace(MARKABLE[nth], ways=(here, by_spark, {})), spark, IN_TURN)


def test_no_limit_is_without_a_run_beyond_it() -> None:
    """Within them, views are held to the contract by the tests of their operators."""
    beyond = {name for limits in WAYS for name in limits}
    assert beyond | OF_NO_VIEW.keys() == {field.name for field in fields(Limits)}
    assert not beyond & OF_NO_VIEW.keys()
