"""Window stores against brute force: one row per key and time, or all of them."""

from tests.kinds.window_store.cases import CASES
from tests.support.contract import held

test_the_store_equals_its_query_after_any_batches, test_by_either_engine = held(CASES)
