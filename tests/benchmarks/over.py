"""Window functions over long partitions, of which each gets a row a day.

python -m tests.benchmarks.over [--symbols 250] [--days 400 4000] [--batches 3] [--json FILE]

Prices of some symbols, in one file of a build and one for each day after it. Two views are built,
without Spark: `steps` with the previous price, a number, a running total, means of 7 and 30 rows
and a total of 7 days, and `year` with the extremes and the count of 365 days. Then batches add a
row per symbol, and one corrects a price of one symbol in the middle. Printed for each are the
seconds and CPU seconds of the median batch, rows changed and kB written: by Sluice, by Sluice as if
no frame had bounds, and by DuckDB, which computes all rows and writes them as Parquet. In the end,
rows are compared.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import duckdb
import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from rich.console import Console
from rich.table import Table as Printed
from tests.benchmarks.bench_lake import BenchLake, declared, position, timed, written_bytes
from tests.benchmarks.random_keys import append

from sluice.changes import CHANGE
from sluice.delta.writing.commit import commit_arrow
from sluice.kinds.over.operator import OverRows
from sluice.read.lake import Lake

KEY, FIRST = ("symbol", "day"), 19_000
TABLES = """
sources:
  prices:
    path: "prices/{interval_start:%Y-%m-%d}/"
    key: [symbol, day]
    schema: "symbol STRING, day DATE, price DECIMAL(12,2), volume BIGINT"
views:
"""
CALLS = {
    "steps": {
        "change": "price - lag(price) OVER w",
        "n": "row_number() OVER w",
        "traded": "sum(volume) OVER (w ROWS UNBOUNDED PRECEDING)",
        "week": "avg(price) OVER (w ROWS BETWEEN 6 PRECEDING AND CURRENT ROW)",
        "month": "avg(price) OVER (w ROWS BETWEEN 29 PRECEDING AND CURRENT ROW)",
        "days": "sum(volume) OVER (w RANGE BETWEEN INTERVAL 7 DAYS PRECEDING AND CURRENT ROW)",
    },
    "year": {
        "high": "max(price) OVER (w RANGE BETWEEN INTERVAL 365 DAYS PRECEDING AND CURRENT ROW)",
        "low": "min(price) OVER (w RANGE BETWEEN INTERVAL 365 DAYS PRECEDING AND CURRENT ROW)",
        "days": "count(*) OVER (w RANGE BETWEEN INTERVAL 365 DAYS PRECEDING AND CURRENT ROW)",
    },
}
ROUNDED = ("week", "month")  # DuckDB's means of decimals are fractions


@dataclass(frozen=True)
class Measured:
    """The median batch of a kind, by one way."""

    rows: int
    view: str
    change: str
    way: str
    seconds: float
    cpu: float
    changed: int
    kilobytes: float


class Bench(BenchLake):
    """The lake of prices and both views."""

    def __init__(self, folder: Path, symbols: int, days: int):
        views = "".join(
            f"  {view}: {{kind: over, from: prices, partition_by: [symbol], order_by: [day], "
            f"select: {{symbol: symbol, day: day, price: price, "
            f"{', '.join(f'{name}: {call}' for name, call in calls.items())}}}}}\n"
            for view, calls in CALLS.items()
        )
        super().__init__(declared(folder, TABLES + views, "1g"))
        self.folder, self.symbols, self.days = folder, symbols, days

    def build(self) -> None:
        days = np.arange(FIRST, FIRST + self.days)
        append(self.uri("prices"), self.rows(np.arange(self.symbols), days))
        for view in CALLS:
            self.follow(view)

    def rows(self, symbols: np.ndarray, days: np.ndarray, by: int = 0) -> pa.Table:
        """Rows of each symbol on each day."""
        n, day = np.repeat(symbols, len(days)), np.tile(days, len(symbols))
        cents = (n * 7_919 + day * 104_729 + by) % 100_000
        price = pa.array(cents).cast(pa.decimal128(21, 0)).cast(pa.decimal128(12, 2))
        return pa.table(
            {
                "symbol": pa.array([f"S{each:05}" for each in n]),
                "day": pa.array(day.astype(np.int32)).cast(pa.date32()),
                "price": price,
                "volume": pa.array((n * 31 + day * 17) % 5_000),
            }
        )

    def change(self, what: str, nth: int) -> None:
        """Commit a row of each symbol on the next day, or another price in the middle."""
        if what == "a day":
            rows, change = (
                self.rows(np.arange(self.symbols), np.array([FIRST + self.days])),
                "insert",
            )
            self.days += 1
        else:
            day = np.array([FIRST + self.days // 2 + nth])
            rows, change = self.rows(np.array([self.symbols // 2]), day, by=1), "update"
        before = self.head("prices")
        rows = rows.append_column(CHANGE, pa.array([change] * rows.num_rows))
        commit_arrow(before, rows, KEY, position(before.next_batch), self.project.limits)

    def measure(self, what: str, way: str, batches: int) -> Iterator[Measured]:
        """Make changes, and bring each view up to them."""
        count = self.symbols * self.days
        found: dict[str, list[tuple[float, float, int, float]]] = {view: [] for view in CALLS}
        for nth in range(batches + 1):  # the first also indexes
            self.change(what, nth)
            for view, of_view in found.items():
                of_view.append(self._batch(view))
        for view, of_view in found.items():
            middle = [median(column) for column in zip(*of_view[1:], strict=True)]
            yield Measured(count, view, what, way, *middle)

    def _batch(self, view: str) -> tuple[float, float, int, float]:
        began = time.perf_counter()
        cpu, (report,) = timed(lambda: self.follow(view))
        assert report.engine == "process", report
        kilobytes = written_bytes(self.uri(view), self.head(view).version) / 1e3
        return round(time.perf_counter() - began, 2), cpu, report.rows_out, round(kilobytes, 1)

    def recompute(self, view: str) -> Measured:
        """Compute all rows by DuckDB."""
        began, to = time.perf_counter(), self.folder / f"{view}.parquet"
        files = DeltaTable(self.uri("prices")).file_uris()
        calls = ", ".join(f"{call} AS {name}" for name, call in CALLS[view].items())
        query = f"SELECT symbol, day, price, {calls} FROM read_parquet({files!r})"

        def compute() -> None:
            with duckdb.connect(config={"threads": 2}) as base:
                window = "WINDOW w AS (PARTITION BY symbol ORDER BY day)"
                base.execute(f"COPY ({query} {window}) TO '{to}' (FORMAT parquet)")

        cpu, _ = timed(compute)
        seconds, count = round(time.perf_counter() - began, 2), self.symbols * self.days
        size = to.stat().st_size / 1e3
        return Measured(count, view, "any", "duckdb", seconds, cpu, count, round(size, 1))

    def check(self, view: str) -> None:
        """Compare a view's rows with DuckDB's."""
        mine = Lake(self.project).table(view).read().to_arrow()
        columns = ", ".join(
            f"round({c}, 2) AS {c}" if c in ROUNDED else c for c in mine.column_names
        )
        with duckdb.connect() as base:
            base.register("mine", mine)
            theirs = f"SELECT {columns} FROM read_parquet('{self.folder / view}.parquet')"
            differing = base.sql(f"(SELECT {columns} FROM mine) EXCEPT ALL ({theirs})")
            assert not differing.fetchall(), f"{view} is not what its query gives"


def run(symbols: int, days: int, batches: int, folder: Path) -> Iterator[Measured]:
    """Measure tables of that many days."""
    built = folder / f"{days}"
    Bench(built, symbols, days).build()
    followed = OverRows.reach
    for way in ("whole partitions", "frames"):
        OverRows.reach = followed if way == "frames" else None  # type: ignore[assignment]
        copy = folder / f"{days}-{way[:5]}"
        shutil.copytree(built, copy)
        bench = Bench(copy, symbols, days)
        yield from bench.measure("a day", way, batches)
        yield from bench.measure("a price", way, batches)
        for view in CALLS:
            recomputed = bench.recompute(view)
            bench.check(view)
            if way == "frames":
                yield recomputed


def main(argv: list[str]) -> None:
    """Print a table, and all measurements as a line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--symbols", type=int, default=250)
    parser.add_argument("--days", type=int, nargs="*", default=[400, 4_000])
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(argv)
    printed = Printed("rows", "view", "change", "way", "s", "CPU s", "changed", "kB")
    found = list[Measured]()
    with tempfile.TemporaryDirectory() as folder:
        for days in given.days:
            found += run(given.symbols, days, given.batches, Path(folder))
    for one in sorted(found, key=lambda m: (m.rows, m.view, m.change)):
        printed.add_row(
            *(f"{value:,}" if type(value) is int else f"{value}" for value in asdict(one).values())
        )
    Console(width=120).print(printed)
    text = json.dumps([asdict(one) for one in found])
    print(text)
    if given.json:
        given.json.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
