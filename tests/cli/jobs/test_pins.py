"""A job and the command take the same pins: by any name of a dimension, and of no other table."""

import json
from pathlib import Path

import pytest
from tests.cli.trips import Here

from sluice.errors import ExitCode

DECLARED = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  sales:
    path: "landing/sales/{interval_start:%Y-%m-%d}/"
    format: json
    schema: id INT, item INT
dimensions:
  items: {path: landing/items/, format: json, schema: "item INT, price INT", key: [item]}
views:
  priced: {kind: lookup, from: sales, join: [{dimension: items, on: item = items.item}]}
"""


@pytest.fixture
def project(tmp_path: Path) -> Here:
    """A day of one sale that no view has read, and its price before and after a change."""
    project = Here(tmp_path)
    project.declare(DECLARED)
    project.land("sales", 1, [{"id": 1, "item": 1}])
    day = ("--start", "2024-01-01", "--end", "2024-01-02")
    project.complete("ingest", "sales", *day)
    for price in (10, 20):
        items = tmp_path / "landing" / "items"
        items.mkdir(exist_ok=True)
        (items / "a.json").write_text(json.dumps({"item": 1, "price": price}))
        project.complete("load", "items")
    return project


def prices(project: Here) -> list[int]:
    return [row["price"] for row in project.sluice("read", "priced", "--json").records]


@pytest.mark.parametrize("name", ["items", "shop.items"])
@pytest.mark.parametrize("is_job", [True, False], ids=["job", "command"])
def test_pins_name_dimensions_as_anything_does(project: Here, name: str, *, is_job: bool) -> None:
    pinned = ("shop.priced", "--pin", f"{name}=1")
    ended = project.job("advance", *pinned) if is_job else project.sluice("advance", *pinned)
    assert ended.code == ExitCode.OK, ended.err
    assert prices(project) == [10]


def test_a_pin_of_an_unknown_table_is_refused_before_anything_is_done(project: Here) -> None:
    pinned = ("shop.priced", "--pin", "prices=1")
    for ended in (project.job("advance", *pinned), project.sluice("advance", *pinned)):
        assert ended.code == ExitCode.CONFIGURATION
        assert "unknown table 'prices'" in ended.err
    assert "not built" in project.sluice("status").out
