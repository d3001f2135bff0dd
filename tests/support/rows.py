"""Strategies for small, nasty values: few keys, ties, nulls, negative numbers, late times."""

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import strategies as st

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def row(**columns: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    """A row of those columns."""
    return st.fixed_dictionaries(columns)


def maybe(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """`values`, or null now and then."""
    return st.one_of(values, values, values, st.none())


ids = st.integers(1, 7)
groups = maybe(st.sampled_from(["a", "b"]))
numbers = maybe(st.integers(-3, 3))
words = maybe(st.sampled_from(["x", "y", "Y", ""]))
money = maybe(st.integers(-500, 500).map(lambda cents: Decimal(cents).scaleb(-2)))
floats = maybe(st.sampled_from([0.1, 0.2, -0.3, 1e9, -0.0]))
not_finite = st.sampled_from([math.nan, math.inf, -math.inf])
times = maybe(st.integers(-150, 150).map(lambda n: NOON + n * 10 * MINUTE))
