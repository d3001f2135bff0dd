"""Lookups against brute force: which dimension version a fact is joined with, and when again."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.kinds.lookup.cases import CASES
from tests.support.contract import held, hold

from sluice.kinds.lookup import batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

test_the_lookup_equals_its_query_after_any_batches, test_by_either_engine = held(CASES)


def test_large_facts_of_which_few_change_by_a_dimension(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are searched by their own columns; a key that is computed is not among these."""
    (case,) = (case for case in CASES if str(case) == "a refreshed lookup follows its dimensions")
    monkeypatch.setattr(batch, "CHANGED_SHARE", 9)
    hold(replace(case, ways=({"read_here_bytes": 0},)), spark, steps=3)
