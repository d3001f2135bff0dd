"""Ten of TPC-H's queries as views in SQL: a batch against recomputes by Spark and by DuckDB.

python -m tests.benchmarks.sql [--scale 1] [--share 0.001] [--queries q1 q6] [--ways view duckdb]
    [--repeat 2] [--memory 4g] [--json FILE]

Scale 1 is 1,500,000 orders and 6,000,000 lines, in the shape of TPC-H's tables. After each change
of a `share` of the orders and lines (three fifths updates, a fifth deletes, a fifth inserts) every
way follows, in a warm session:

- `view` is this project's batch of the view and of all tables that keep it;
- `spark` computes the query over the tables and writes the result again;
- `duckdb` reads copies of the tables in Parquet and writes the result as Parquet.

The tables are sources with a key: a change marks rows of their files and adds a file.

In the end all of them hold the same rows. `--scale 0.01` takes about three minutes. With a tenth
of the share at ten times the scale, as many rows change.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table as Printed
from tests.benchmarks.repeated import measure
from tests.benchmarks.sql_lake import CHOSEN, WAYS, Measured, SqlLake

ORDERS = 1_500_000  # at scale 1


def run(orders: int, given: argparse.Namespace) -> Iterator[Measured]:
    """Yield all that is measured of tables of that size."""
    with tempfile.TemporaryDirectory() as folder:
        bench = SqlLake(Path(folder), orders, given.memory, given.queries, given.ways)
        try:
            bench.land()
            yield from bench.measure("build")
            for _ in range(given.repeat):
                bench.change(given.share)
                yield from bench.measure("batch")
            bench.check()
        finally:
            bench.spark.stop()


def show(found: list[Measured]) -> None:
    """Print seconds, and how many times the view's the recomputes take."""
    ways = [way for way in WAYS if any(one.way == way for one in found)]
    printed = Printed("orders", "query", "step", *ways, *(f"{way} / view" for way in ways[1:]))
    by_step: dict[tuple[int, str, str], dict[str, float]] = {}
    for one in found:
        by_step.setdefault((one.orders, one.query, one.step), {})[one.way] = one.seconds
        by_step.setdefault((one.orders, "all", one.step), dict.fromkeys(ways, 0.0))
        by_step[one.orders, "all", one.step][one.way] += one.seconds
    for (orders, query, step), seconds in by_step.items():
        ratios = [f"{seconds[way] / max(seconds['view'], 0.01):.1f}" for way in ways[1:]]
        each = [f"{seconds[way]:.2f}" for way in ways]
        printed.add_row(f"{orders:,}", query, step, *each, *ratios)
    Console(width=110).print(printed)


def main(argv: list[str]) -> None:
    """Print a table, and all measurements as a line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--share", type=float, default=0.001)
    parser.add_argument("--queries", nargs="+", choices=CHOSEN, default=CHOSEN)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--memory", default="4g")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(argv)
    given.rows = [round(given.scale * ORDERS)]
    measure(run, given, show, lambda m: (m.orders, m.query, m.step, m.way))


if __name__ == "__main__":
    main(sys.argv[1:])
