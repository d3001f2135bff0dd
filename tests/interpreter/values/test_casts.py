"""Casts of whole columns: the same as of each value."""

import random

import pytest
from pyspark.sql import types as T

from sluice.interpreter.values import to_arrow
from sluice.interpreter.values.casts import cast, caster_of
from sluice.interpreter.values.column_batch import ArrowColumn, ColumnBatch, column

DOUBLE = T.DoubleType()


@pytest.mark.parametrize(
    ("type_", "most"),
    [
        (T.DecimalType(9, 2), 10**9 - 1),
        (T.DecimalType(16, 16), 2**53 + 1),
        (T.DecimalType(18, 0), 10**18 - 1),
        (T.DecimalType(38, 2), 10**38 - 1),
        (T.DecimalType(38, 30), 10**38 - 1),
        (T.DecimalType(38, 30), 10**6),
        (T.TimestampType(), 2**53 - 1),
        (T.TimestampType(), 2**63 - 1),
    ],
)
def test_whole_numbers_as_doubles_are_the_nearest_ones(type_: T.DataType, most: int) -> None:
    draw = random.Random(most)
    values = [0, most, -most, None, *(draw.randint(-most, most) for _ in range(200))]
    held = ArrowColumn(to_arrow(values, type_), type_)
    found = cast(column(0, type_), DOUBLE).run(ColumnBatch(len(values), {0: held}))
    one = caster_of(type_, DOUBLE)
    assert [*found] == [None if v is None else one(v) for v in values]
