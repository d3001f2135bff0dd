"""Joins against brute force: both sides change, in one batch or in several."""

from tests.kinds.join.cases import CASES
from tests.support.contract import held

test_the_rows_equal_the_query_after_any_batches, test_by_either_engine = held(CASES)
