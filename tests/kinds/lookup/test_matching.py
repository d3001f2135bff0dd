"""Rows are matched here only where Spark would match the same ones."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sluice.kinds.lookup.few import match_rows

INTS = pa.array([3, 1, None, 9], pa.int32())


def found(facts: Any, rows: Any) -> list[int | None] | None:
    index = match_rows(pa.table({"f": facts}), pa.table({"d": rows}), {"d": "f"})
    return None if index is None else index.to_pylist()


def test_each_fact_finds_its_row_and_a_null_finds_none() -> None:
    assert found(INTS, pa.array([None, 1, 3], pa.int64())) == [2, 1, None, None]
    assert found(pa.array(["b", None, "a"]), pa.array(["a", "c", None])) == [None, None, 0]
    assert found(INTS, pa.array([], pa.int64())) == [None] * 4
    assert found(pa.array([], pa.int64()), pa.array([1])) == []


def test_all_columns_have_to_be_equal() -> None:
    facts = pa.table({"a": [1, 1, 2], "b": ["x", "y", "x"]})
    rows = pa.table({"p": ["y", "x"], "q": [1, 2]})
    index = match_rows(facts, rows, {"q": "a", "p": "b"})
    assert index is not None
    assert index.to_pylist() == [None, 0, 1]


def test_a_fact_of_several_rows_is_left_to_spark() -> None:
    assert found(INTS, pa.array([1, 1])) is None


@pytest.mark.parametrize(
    "rows",
    [
        pa.array([1.0]),
        pa.array(["1"]),
        pa.array([Decimal("1.0")]),
        pa.array([[1]]),
    ],
)
def test_so_is_what_spark_may_take_for_equal_otherwise(rows: pa.Array) -> None:
    assert found(INTS, rows) is None
