"""Lookups against brute force: which dimension version a fact is joined with, and when again."""

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.kinds.lookup.cases import CASES
from tests.support.contract import held, hold

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

test_the_lookup_equals_its_query_after_any_batches, test_by_either_engine = held(CASES)


def test_large_facts_of_which_few_change_by_a_dimension(spark: "SparkSession") -> None:
    """They are searched by their own columns; a key that is computed is not among these."""
    (case,) = (case for case in CASES if str(case) == "a refreshed lookup follows its dimensions")
    large = {"read_here_bytes": 0, "joined_changed_share": 9}
    hold(replace(case, ways=(large,)), spark, steps=3)
