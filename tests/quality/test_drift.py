"""A source whose files change their columns: told, ignored, or stopped with what was found."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.quality.conftest import SALES, Shop

from sluice.errors import QualityStop
from sluice.storage.arrow import read_rows

ROW = {"id": 1, "item": "tea", "price": 3}


def land(shop: Shop, format_: str, columns: dict[str, list[Any]]) -> None:
    shop.declare(SALES.replace("format: json", f"format: {format_}"))
    path = shop.land(0, [], name=f"part.{format_}")
    if format_ == "parquet":
        pq.write_table(pa.table(columns), path)
    elif format_ == "csv":
        lines = [columns.keys(), *zip(*columns.values(), strict=True)]
        path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    else:
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
        shop.land(0, rows, name=path.name)


@pytest.mark.parametrize("format_", ["json", "csv", "parquet"])
def test_an_added_column_is_told_and_ignored(shop: Shop, format_: str) -> None:
    land(shop, format_, {"id": [1], "item": ["tea"], "colour": ["red"], "price": [3]})
    (told,) = shop.deliver(0).warnings
    assert "colour" in told
    (row,) = read_rows(shop.uri())
    assert {column: row[column] for column in ROW} == ROW
    assert "colour" not in row


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_a_removed_column_stops_the_batch(shop: Shop, format_: str) -> None:
    land(shop, format_, {"id": [1], "price": [3]})
    with pytest.raises(QualityStop, match="lacks the declared column"):
        shop.deliver(0)
    assert read_rows(shop.uri()) == []


def test_columns_in_another_order_are_the_same(shop: Shop) -> None:
    land(shop, "csv", {"price": [3], "item": ["tea"], "id": [1]})
    report = shop.deliver(0)
    assert (report.warnings, report.quarantined, report.inserted) == ((), 0, 1)


def test_a_retyped_column_stops_the_batch_by_column_types_and_file(shop: Shop) -> None:
    land(shop, "parquet", {"id": [1, 2], "item": ["tea", "tea"], "price": ["3", "three"]})
    told = r"/part\.parquet: column price is STRING where INT is declared"
    with pytest.raises(QualityStop, match=told):
        shop.deliver(0)
    assert read_rows(shop.uri()) == []
