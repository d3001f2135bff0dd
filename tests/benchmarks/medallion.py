"""A broker's warehouse of 51 views: its batches by Sluice, beside recomputes by DuckDB and Spark.

python -m tests.benchmarks.medallion [--scale 1] [--rivals duckdb spark] [--json FILE]

Scale 1 is some 290,000 source rows. A first delivery, two of 0.7 and 1.4 % and one again with every
tenth row removed are followed by

- `sluice`: a new process of `sluice run`, which starts a JVM only if a batch needs it;
- `duckdb`: all files read, all views computed and written as Parquet;
- `spark`: the same in a session that stays warm, each view as a Delta table that is overwritten.

Prints seconds, CPU seconds and bytes written of each, as they are measured. After each
delivery, Sluice's rows must equal DuckDB's.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import Window
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table
from tests.benchmarks.bench_lake import timed
from tests.examples.medallion import market
from tests.examples.medallion.recompute import PIPELINE, PROJECT, VIEWS, differing_rows, recompute

import sluice
from sluice.declare.project import load
from sluice.spark.session import Spark

RIVALS = ("duckdb", "spark")


@dataclass(frozen=True)
class Measured:
    """What bringing all views up to one delivery cost."""

    delivery: str
    way: str
    seconds: float
    cpu_seconds: float
    bytes: int


class Warehouse:
    """A project in a folder, and the ways to keep its views."""

    def __init__(self, folder: Path, rivals: list[str]) -> None:
        self.folder, self.landing = folder, folder / "landing"
        shutil.copytree(PROJECT, folder / "config")
        market.land_reference(self.landing / "reference")
        self.rivals = rivals
        self.spark = Spark(load(folder / "config").spark)

    def measure(self, delivery: str, day: int) -> Iterator[Measured]:
        """Yield what each way costs for the delivery of that day."""
        began = _children()
        yield self._measured(delivery, "sluice", lambda: self._run(day), lambda: _children(began))
        if "duckdb" in self.rivals:
            yield self._measured(delivery, "duckdb", self._duckdb)
        if "spark" in self.rivals:
            yield self._measured(delivery, "spark", self._spark)
        differing = differing_rows(recompute(self.landing), sluice.open(self.folder / "config"))
        assert not differing, differing

    def _measured(
        self,
        delivery: str,
        way: str,
        work: Callable[[], None],
        used: Callable[[], float] | None = None,
    ) -> Measured:
        before, began = self._files(), time.monotonic()
        cpu, _ = timed(work)
        seconds = time.monotonic() - began
        written = sum(size for (_, size, _) in self._files() - before)
        return Measured(delivery, way, round(seconds, 2), used() if used else cpu, written)

    def _files(self) -> set[tuple[str, int, int]]:
        found = [file for file in self.folder.rglob("*") if file.is_file()]
        return {(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in found}

    def _run(self, day: int) -> None:
        start = market.FIRST_DAY + timedelta(days=day)
        bounds = ["--start", f"{start}", "--end", f"{start + timedelta(days=1)}"]
        command = [sys.executable, "-m", "sluice.cli.main", "run", "brokerage", *bounds]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        print(*(line for line in done.stdout.splitlines() if "left to Spark" in line))

    def _duckdb(self) -> None:
        to = self.folder / "duckdb"
        to.mkdir(exist_ok=True)
        with recompute(self.landing) as database:
            for name in VIEWS:
                database.execute(f"COPY {name} TO '{to / name}.parquet'")

    def _spark(self) -> None:
        session = self.spark.tune(small=False)
        for name, table in {**PIPELINE["sources"], **PIPELINE["dimensions"]}.items():
            folder = "reference" if name in PIPELINE["dimensions"] else "2*"
            files = str(self.landing / folder / f"{name}.{table['format']}")
            rows = session.read.schema(table["schema"]).options(header=True)
            read: Any = rows.format(table["format"]).load(files)
            if "key" in table:
                order = [*map(F.desc, table.get("sequence", ())), F.desc("file")]
                latest = F.row_number().over(Window.partitionBy(*table["key"]).orderBy(*order))
                read = read.withColumn("file", F.col("_metadata.file_path"))
                read = read.withColumn("nth", latest).where("nth = 1").drop("file", "nth")
            read.createOrReplaceTempView(name)
        for name, query in VIEWS.items():
            to = str(self.folder / "spark" / name)
            session.sql(query).write.format("delta").mode("overwrite").save(to)
            session.read.format("delta").load(to).createOrReplaceTempView(name)


def _children(before: float = 0.0) -> float:
    """Return the CPU seconds of ended child processes and theirs, less those before."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(used.ru_utime + used.ru_stime - before, 2)


def run(folder: Path, scale: float, rivals: list[str]) -> Iterator[Measured]:
    """Land the four deliveries, and measure each way after each of them."""
    broker, warehouse = market.Market(scale), Warehouse(folder, rivals)
    try:
        broker.deliver(warehouse.landing)
        yield from warehouse.measure("first", 0)
        corrected = broker.deliver(warehouse.landing, share=0.007)
        yield from warehouse.measure("0.7 %", 1)
        broker.deliver(warehouse.landing, share=0.014)
        yield from warehouse.measure("1.4 %", 2)
        market.remove_rows(corrected)
        yield from warehouse.measure("again, less rows", 1)
    finally:
        if warehouse.spark.is_started:
            warehouse.spark.session.stop()


def main(argv: list[str]) -> None:
    """Print a table, and all measurements as a line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rivals", nargs="*", choices=RIVALS, default=[*RIVALS])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(argv)
    printed = Table("delivery", "way", "seconds", "CPU s", "MB written")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for one in run(Path(folder), given.scale, given.rivals):
            found.append(asdict(one))
            print(one, flush=True)
            figures = f"{one.seconds:.1f}", f"{one.cpu_seconds:.1f}", f"{one.bytes / 1e6:.1f}"
            printed.add_row(one.delivery, one.way, *figures)
    Console(width=110).print(printed)
    measured = json.dumps(
        {"scale": given.scale, "load_average": os.getloadavg()[0], "measured": found}
    )
    print(measured)
    if given.json:
        given.json.write_text(measured)


if __name__ == "__main__":
    main(sys.argv[1:])
