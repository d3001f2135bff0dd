"""Engines of notebooks read a lake on a disk, as docs/other_engines.md shows."""

from pathlib import Path

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable

from sluice.delta.places.lake_layout import FORMAT

LAKE = Path(__file__).parents[1] / "delta" / "lakes" / str(FORMAT) / "lake" / "trips"
TOWNS = [("Bern", 12), ("Graz", 1), ("Rome", 5)]


@pytest.fixture
def towns() -> str:
    return str(LAKE / "towns")


def test_pandas(towns: str) -> None:
    frame = DeltaTable(towns).to_pandas().sort_values("town")
    assert list(zip(frame["town"], frame["sum"], strict=True)) == TOWNS


def test_polars_with_and_without_a_version(towns: str) -> None:
    visible = pl.exclude("^_sluice.*$")
    assert pl.scan_delta(towns).select(visible).sort("town").collect().rows() == TOWNS
    assert pl.read_delta(towns, version=1).height <= len(TOWNS)


def test_duckdb_over_a_dataset(towns: str) -> None:
    dataset = DeltaTable(towns).to_pyarrow_dataset()
    assert duckdb.sql("SELECT town, sum FROM dataset ORDER BY town").fetchall() == TOWNS
    assert dataset.count_rows() == len(TOWNS)
