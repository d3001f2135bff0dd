"""Make the small lake of the format that this release writes: run it before the number rises.

    python -m tests.delta.lakes.make

It lands two days, corrects the first, and keeps `<format>/lake` beside this file, without reports.
"""

import shutil
import tempfile
from pathlib import Path

from tests.cli.trips import Here

from sluice.delta.places.lake_layout import FORMAT

HERE = Path(__file__).parent
PIPELINE = """
pipeline: trips
schedule: "@daily"
start_date: 2024-01-01
sources:
  sales:
    path: "landing/sales/{interval_start:%Y-%m-%d}/"
    format: json
    schema: id BIGINT, shop INT, amount INT
    key: [id]
    expect:
    - {type: expect_column_values_to_be_between, column: amount, min_value: 0,
       on_failure: quarantine}
dimensions:
  shops: {path: shops/, format: json, schema: "shop INT, town STRING", key: [shop]}
views:
  placed:
    kind: lookup
    from: sales
    join: [{dimension: shops, on: shop = shops.shop, type: left}]
    select: {id: id, town: shops.town, amount: amount}
  towns: {kind: cogroup, key: [town], streams: {s: {from: placed, aggregates: {sum: sum(amount)}}}}
  best: {kind: topk, from: towns, order_by: [sum desc, town], limit: 2}
  busy: {kind: sql, sql: "SELECT shop, count(*) AS n FROM sales GROUP BY shop HAVING count(*) > 1"}
"""
FIRST = [{"id": 1, "shop": 1, "amount": 5}, {"id": 2, "shop": 2, "amount": 3}]
CORRECTED = [*FIRST, {"id": 3, "shop": 2, "amount": -1}]
SECOND = [{"id": 4, "shop": 2, "amount": 9}, {"id": 5, "shop": 3, "amount": 1}]
THIRD = [{"id": 6, "shop": 3, "amount": 20}]
TOWNS = '{"shop": 1, "town": "Rome"}\n{"shop": 2, "town": "Bern"}\n{"shop": 3, "town": "Graz"}\n'


def begin(folder: Path) -> Here:
    """Return the project whose lake is kept, with its landed files."""
    project = Here(folder)
    project.declare(PIPELINE)
    (folder / "shops").mkdir()
    (folder / "shops" / "a.json").write_text(TOWNS, "utf-8")
    project.land("sales", 1, CORRECTED)
    project.land("sales", 2, SECOND)
    return project


def make(folder: Path) -> None:
    """Build the lake in `folder`."""
    project = begin(folder)
    project.land("sales", 1, FIRST)
    project.complete("run", "trips", "--start", "2024-01-01", "--end", "2024-01-03")
    project.land("sales", 1, CORRECTED)
    project.complete("run", "trips", "--start", "2024-01-01", "--end", "2024-01-02")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="trips-") as made:
        make(Path(made))
        kept = HERE / str(FORMAT) / "lake"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(Path(made) / "lake", kept, ignore=shutil.ignore_patterns("report"))
