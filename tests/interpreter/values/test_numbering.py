"""Numbers of rows by the values in several columns."""

import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import types as T

from sluice.interpreter.values.column_batch import ArrowColumn
from sluice.interpreter.values.numbering import combine, number_values


def test_combined_numbers_differ_for_other_rows_beyond_64_bits() -> None:
    """Four columns of a million values: the product of their sizes needs 80 bits."""
    rows = [(0, 0, 0, 0), (16, 0, 0, 0), (2**20 - 1,) * 4, (0, 0, 0, 0), (16, 0, 0, 1)]
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    assert combine(columns, len(rows)).tolist() == [0, 1, 2, 0, 3]


def test_combined_numbers_of_no_column_are_all_the_same() -> None:
    assert combine([], 3).tolist() == [0, 0, 0]


def first_places(values: Sequence[int | None]) -> list[int]:
    known: dict[int | None, int] = {}
    return [known.setdefault(value, len(known)) for value in values]


@pytest.mark.parametrize("span", [1, 7, 400, 401, 2**40, 2**64])
@pytest.mark.parametrize("least", [0, 5, -(2**63)])
def test_numbers_of_values_follow_their_first_places(span: int, least: int) -> None:
    """Near values are looked up by place, and distant ones hashed."""
    draw = random.Random(span + least)
    most = min(least + span, 2**63) - 1
    values = [least, most, *(draw.randint(least, most) for _ in range(98))]
    column = ArrowColumn(pa.array(values, pa.int64()), T.LongType())
    assert number_values(column, T.LongType()).tolist() == first_places(values)


def test_numbers_of_values_count_null_as_one() -> None:
    values = [3, None, 3, 2, None]
    column = ArrowColumn(pa.array(values, pa.int64()), T.LongType())
    assert number_values(column, T.LongType()).tolist() == [0, 1, 0, 2, 1]


@pytest.mark.parametrize("seed", range(5))
def test_combined_numbers_follow_the_first_places_of_rows(seed: int) -> None:
    draw = random.Random(seed)
    rows = [(draw.randrange(9), draw.randrange(3 + 2**seed), 7) for _ in range(200)]
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    known: dict[tuple[int, ...], int] = {}
    assert combine(columns, 200).tolist() == [known.setdefault(row, len(known)) for row in rows]
