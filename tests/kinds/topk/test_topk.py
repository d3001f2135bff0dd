"""Top-k against brute force: any changes, in any batches, every kind of ranking."""

from tests.kinds.topk.cases import CASES
from tests.support.contract import held

test_the_ranking_equals_its_query_after_any_batches, test_by_either_engine = held(CASES)
