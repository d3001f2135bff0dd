"""The most frequent values of groups with more values than are tracked."""

from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARED = """
sources:
  sales: {path: "s/{interval_start:%Y}/", schema: "id INT, g STRING, w STRING", key: [id]}
views:
  seen: {kind: cogroup, key: [g], streams: {s: {from: sales, aggregates: {
    often: 'approx_top_k(w, 1, 2)'}}}}
"""


def test_the_least_frequent_of_too_many_values_are_forgotten(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = Lake(tmp_path, DECLARED, spark)
    lake.put("sales", *({"id": i, "g": "x", "w": w} for i, w in enumerate("abacab")))
    lake.advance()
    (found,) = lake.rows("seen")
    one_less = {"item": "a", "count": 2}  # each value gives one for the third, which is forgotten
    assert [dict(each) for each in found["often"]] == [one_less]
