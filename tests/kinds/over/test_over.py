"""Overs against brute force: partitions, orders with ties, frames."""

from tests.kinds.over.cases import CASES
from tests.support.contract import held

test_the_rows_equal_the_query_after_any_batches, test_by_either_engine = held(CASES)
