"""A cogroup whose changes are merged into it."""

from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SALES = """
sources:
  sales:
    path: "sales/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, v INT, w STRING"
views:
  found:
    kind: cogroup
    key: [g]
    streams:
      s:
        from: sales
        aggregates: {AGGREGATES}
"""
ROWS = [
    {"id": 1, "g": "a", "v": 1, "w": "x"},
    {"id": 2, "g": "a", "v": 5, "w": "y"},
    {"id": 3, "g": "a", "v": 5, "w": "x"},
    {"id": 4, "g": "b", "v": 3, "w": "z"},
]


def lake_of(folder: Path, spark: "SparkSession", aggregates: str) -> Lake:
    """With ROWS, in one batch."""
    lake = Lake(folder, SALES.replace("AGGREGATES", aggregates), spark)
    lake.put("sales", *ROWS)
    lake.advance()
    return lake
