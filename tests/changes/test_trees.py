"""Joining many parts takes few levels."""

from math import ceil, log2

from hypothesis import given
from hypothesis import strategies as st

from sluice.changes import balance


@given(st.lists(st.integers(), min_size=1, max_size=70))
def test_parts_stay_in_order_in_a_tree_that_is_as_low_as_it_can_be(parts: list[int]) -> None:
    def joined(a: tuple[list[int], int], b: tuple[list[int], int]) -> tuple[list[int], int]:
        return a[0] + b[0], max(a[1], b[1]) + 1

    found, height = balance(joined, [([part], 0) for part in parts])
    assert (found, height) == (parts, ceil(log2(len(parts))))


def test_a_relation_of_hundreds_of_parts_is_no_deeper_than_spark_connect_allows() -> None:
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    from sluice.interpreter.local_session import Session, interpreting

    with interpreting(Session()) as session:
        rows = session.createDataFrame([(7,)], "a bigint")
        met = rows.where(balance(Column.__or__, [F.col("a") == n for n in range(300)]))
        together = balance(lambda a, b: a.unionByName(b), [met] * 300)
        assert len(together.collect()) == 300
