"""Selects against brute force: WHERE, SELECT and DISTINCT over one table."""

from tests.kinds.select.cases import CASES
from tests.support.contract import held

test_the_rows_equal_the_query_after_any_batches, test_by_either_engine = held(CASES)
