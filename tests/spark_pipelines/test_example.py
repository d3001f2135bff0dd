"""The project that `sluice init --example spark-pipelines` writes, over a little shopping."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark_pipelines.projects import rows_of, sluice

LINES = pa.schema(
    {
        **dict.fromkeys(("household_id", "basket_id", "product_id", "quantity"), pa.int64()),
        "sales_value": pa.decimal128(12, 2),
        "transaction_timestamp": pa.timestamp("us", "UTC"),
    }
)
PRODUCTS = {"product_id": [7, 8], "department": ["DELI", "MEAT"], "brand": ["Private", "National"]}


def sell(folder: Path, day: int, *lines: tuple[int, int, int, int, str]) -> None:
    """Deliver a day's lines: household, basket, product, quantity, value."""
    there = folder / f"landing/transactions/2017-05-0{day}"
    there.mkdir(parents=True)
    at = datetime(2017, 5, day, tzinfo=UTC)
    rows = [(*line[:4], Decimal(line[4]), at) for line in lines]
    columns = [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), LINES, strict=True)]
    pq.write_table(pa.table(columns, schema=LINES), there / "part-0.parquet")


def test_the_example_is_a_project_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_LAKE", str(tmp_path / "lake"))
    made = sluice("init", "--example", "spark-pipelines")
    assert made.exit_code == 0, made.output
    assert made.output.splitlines()[-1].endswith("`sluice run shopping`")
    (tmp_path / "landing/products").mkdir(parents=True)
    pq.write_table(pa.table(PRODUCTS), tmp_path / "landing/products/part-0.parquet")
    sell(tmp_path, 8, (1, 1, 7, 1, "2.50"), (1, 1, 8, 2, "9.00"), (2, 2, 7, 0, "5.00"))
    assert sluice("run").exit_code == 0
    sell(tmp_path, 9, (3, 3, 7, 1, "3.00"))
    assert sluice("run").exit_code == 0
    shown = {row["department"]: row["sales"] for row in rows_of(tmp_path / "config", "departments")}
    assert {name: Decimal(str(value)) for name, value in shown.items()} == {
        "DELI": Decimal("5.50"),
        "MEAT": Decimal("9.00"),
    }
    assert len(rows_of(tmp_path / "config", "best_products")) == 2
