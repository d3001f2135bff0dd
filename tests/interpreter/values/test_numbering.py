"""Numbers of rows by the values in several columns."""

import numpy as np

from sluice.interpreter.values.numbering import combine


def test_combined_numbers_differ_for_other_rows_beyond_64_bits() -> None:
    """Four columns of a million values: the product of their sizes needs 80 bits."""
    rows = [(0, 0, 0, 0), (16, 0, 0, 0), (2**20 - 1,) * 4, (0, 0, 0, 0), (16, 0, 0, 1)]
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    assert combine(columns, len(rows)).tolist() == [0, 1, 2, 0, 3]


def test_combined_numbers_of_no_column_are_all_the_same() -> None:
    assert combine([], 3).tolist() == [0, 0, 0]
