"""Lookups against brute force: which dimension version a fact is joined with, and when again."""

from tests.kinds.lookup.cases import CASES
from tests.support.contract import held

test_the_lookup_equals_its_query_after_any_batches, test_by_either_engine = held(CASES)
