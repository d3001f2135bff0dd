"""A small shop whose sales are really delivered: files, ingestion, gate and tables."""

import datetime as dt
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluice.declare.project import Project, load
from sluice.delta.places.lake_layout import layout
from sluice.engine import BatchReport
from sluice.engine.advance import Run
from sluice.language.interval import Interval
from sluice.operate.run import deliver
from sluice.spark.session import Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = dt.datetime(2017, 3, 1, tzinfo=dt.UTC)
SALES = """\
pipeline: shop
schedule: "@daily"
start_date: 2017-03-01
sources:
  sales:
    path: "landing/{interval_start:%Y-%m-%d}/"
    format: json
    schema: id INT, item STRING, price INT
    key: [id]
    expect:
      - type: expect_column_values_to_be_between
        column: price
        min_value: 0
        on_failure: quarantine
"""
CONF = {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"}


class Shop:
    """A project in a folder, whose days are delivered one by one."""

    def __init__(self, folder: Path, session: "SparkSession") -> None:
        self.folder, self.session = folder, session
        self.declare(SALES)

    def declare(self, text: str) -> Project:
        path = self.folder / "config" / "pipelines" / "shop.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        conf = ", ".join(f"{name}: '{value}'" for name, value in CONF.items())
        (path.parent.parent / "sluice.yaml").write_text(f"spark: {{conf: {{{conf}}}}}\n")
        self.project = load(self.folder / "config")
        self.spark = Spark(self.project.spark)
        return self.project

    def land(self, nth: int, rows: Iterable[dict[str, Any]], name: str = "part.json") -> Path:
        """The file of a day."""
        path = self.folder / "landing" / f"{DAY + dt.timedelta(days=nth):%Y-%m-%d}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        return path

    def deliver(self, nth: int) -> BatchReport:
        """Ingest a day; what its delivery says."""
        table = self.project.graph.table("sales")
        day = Interval(DAY + dt.timedelta(days=nth), DAY + dt.timedelta(days=nth + 1))
        report, *_ = deliver(self.spark, self.project, table, Run(f"run-{nth}"), [day])
        return report

    def uri(self, suffix: str = "", table: str = "sales") -> str:
        return layout(self.project).uri(f"shop.{table}", suffix)


@pytest.fixture
def shop(tmp_path: Path, spark: "SparkSession") -> Callable[[], Shop]:
    return Shop(tmp_path, spark)
