"""A top-k over sales, its lakes filled and built."""

from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.lake import Lake, Row

from sluice.engine import BatchReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SALES = """
sources:
  sales:
    path: "sales/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, v INT, most INT"
views:
  best: {kind: topk, from: sales, partition_by: [g], order_by: [v desc], limit: 2, headroom: 1,
    MORE}
"""


def sale(id_: int, v: int, g: str = "a", most: int | None = 1) -> Row:
    return {"id": id_, "g": g, "v": v, "most": most}


class Lakes:
    """Lakes that are filled and built: each group of ten rows has three of them in the state."""

    def __init__(self, spark: "SparkSession", folder: Path):
        self.spark, self.folder, self.made = spark, folder, 0

    def built(self, more: str = "rank: rank", groups: str = "ab", **spark: str) -> Lake:
        self.made += 1
        declared = SALES.replace("MORE", more)
        lake = Lake(self.folder / str(self.made), declared, self.spark, **spark)
        for n, g in enumerate(groups):
            lake.put("sales", *(sale(100 * n + v, v, g) for v in range(10)))
        lake.advance()
        return lake


def advanced(lake: Lake) -> tuple[BatchReport, BatchReport]:
    state, view = lake.advance()
    return state, view


def top(lake: Lake, g: str = "a") -> list[int]:
    rows = sorted(lake.rows("best"), key=lambda row: row["rank"])
    return [row["v"] for row in rows if row["g"] == g]
