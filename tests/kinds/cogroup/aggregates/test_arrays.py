"""A bag that grows holds each value once, in order, with the sum of its counts."""

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from sluice.kinds.cogroup.accumulator import FEW, bag, grown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENTRIES = "array<struct<v: {}, n: bigint>>"
VALUES = {
    "bigint": [*range(-20, 20)],
    "double": [0.0, 1.5, float("inf"), *map(float, range(30))],
    "string": [f"é{n}" for n in range(30)],
}


@pytest.mark.parametrize("type_", VALUES)
def test_it_has_the_counts_of_both(spark: "SparkSession", type_: str) -> None:
    chance, rows = random.Random(type_), []
    for number in range(60):
        few, many = (chance.choices(VALUES[type_], k=k) for k in (chance.randrange(40), 3 * FEW))
        came = [(v, chance.choice((-1, 1, 2))) for v in (few if number % 3 else many)]
        rows.append((number, [(v, 1) for v in chance.choices(VALUES[type_], k=number)], came))
    entries = ENTRIES.format(type_)
    given = spark.createDataFrame(rows, f"id int, was {entries}, came {entries}")
    held = F.when(F.col("id") > 0, bag(F.col("was")))
    found = given.select("id", grown(held, F.col("came")).alias("all")).collect()
    assert len(found) == len(rows)
    for row in found:
        counts: Counter[object] = Counter()
        for entry in (*rows[row.id][1], *rows[row.id][2]):
            counts[entry[0]] += entry[1]
        expected = sorted((v, n) for v, n in counts.items() if n)
        assert [tuple(e) for e in row["all"]] == expected
