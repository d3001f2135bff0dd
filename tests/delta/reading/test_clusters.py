"""Spans of keys that lie close together."""

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sluice.delta.reading.wanted import MOST, clusters


def test_keys_far_from_each_other_are_in_spans_of_their_own() -> None:
    values = pa.array([5, 7, None, 6, 1_000_000, 1_000_002, 5])
    spans = clusters(values)
    assert spans[0][0] == 5
    assert spans[-1][1] == 1_000_002
    assert not any(least <= 500_000 <= most for least, most in spans)


def test_spans_are_split_at_the_widest_gaps() -> None:
    assert clusters(pa.array([*range(MOST + 1), 99]))[-1] == (99, 99)


def test_no_values_have_no_span() -> None:
    assert clusters(pa.array([], pa.int64())) == []
    assert clusters(pa.array([None], pa.int32())) == []


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=60))
def test_every_value_is_in_one_of_few_ordered_spans(values: list[int]) -> None:
    spans = clusters(pa.array(values, pa.int64()))
    assert len(spans) <= MOST
    assert all(a <= b for a, b in spans)
    assert all(one[1] < other[0] for one, other in pairwise(spans))
    assert all(sum(a <= v <= b for a, b in spans) == 1 for v in values)
