"""Twelve materialized views of a spark-pipelines project: PySpark's own runner and Sluice.

python -m tests.benchmarks.spark_pipelines [--rows 5000000] [--changed 1000] [--json FILE]

Both run the same files over the same Delta tables, after some rows of the orders were updated,
deleted and added. Sluice has run before, and once more after a change like it. Each run is a new
process, the runner's with a Spark Connect server of its own. Prints seconds, CPU seconds of all
processes, and bytes written. Rows are those that the views' feeds got; the runner writes every row
of every view again, and has no feed. Both must end with the same rows.
"""

import argparse
import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyspark
from deltalake import DeltaTable, write_deltalake
from rich.console import Console
from rich.table import Table

import sluice
from sluice.spark.jars import classpath
from sluice.spark.java import environment

CUSTOMERS, PRODUCTS, STATES = 200_000, 10_000, 50
SPEC = """\
name: shop
storage: file://{folder}/{way}
configuration:
  spark.sql.session.timeZone: UTC
  spark.sql.shuffle.partitions: "8"
libraries:
  - glob: {{include: "transformations/**"}}
"""
DELTA = """\
spark.sql.extensions io.delta.sql.DeltaSparkSessionExtension
spark.sql.catalog.spark_catalog org.apache.spark.sql.delta.catalog.DeltaCatalog
spark.connect.grpc.binding.address 127.0.0.1
"""
PYTHON = """
from pyspark import pipelines as dp
from pyspark.sql import functions as F
from pyspark.sql.window import Window

orders = spark.read.format("delta").load("{folder}/orders")
customers = spark.read.format("delta").load("{folder}/customers")
products = spark.read.format("delta").load("{folder}/products")

@dp.materialized_view
def large():
    return orders.filter("amount > 900 and state is not null")

@dp.materialized_view
def by_state():
    return orders.groupBy("state").agg(F.count("*").alias("n"), F.sum("amount").alias("amount"))

@dp.materialized_view
def by_customer():
    return orders.groupBy("customer").agg(
        F.count("*").alias("n"), F.sum("amount").alias("amount"), F.max("at").alias("latest"))

@dp.materialized_view
def by_product():
    return orders.groupBy("product").agg(
        F.sum("amount").alias("amount"), F.min("at").alias("first"))

@dp.materialized_view
def latest():
    newest = Window.partitionBy("customer").orderBy(F.desc("at"), "id")
    rows = orders.withColumn("nth", F.row_number().over(newest))
    return rows.filter("nth = 1").select("customer", "id", "amount", "at")

@dp.materialized_view
def idle():
    return customers.join(orders, "customer", "left_anti")
"""
SQL = """
CREATE MATERIALIZED VIEW daily AS
SELECT to_date(at) AS day, state, count(*) AS n, sum(amount) AS amount
FROM delta.`{folder}/orders` GROUP BY to_date(at), state;

CREATE MATERIALIZED VIEW by_segment AS
SELECT c.segment, count(*) AS n, avg(o.amount) AS amount
FROM delta.`{folder}/orders` o JOIN delta.`{folder}/customers` c ON o.customer = c.customer
GROUP BY c.segment;

CREATE MATERIALIZED VIEW large_named AS
SELECT l.id, l.amount, c.segment, p.category
FROM large l JOIN delta.`{folder}/customers` c ON l.customer = c.customer
JOIN delta.`{folder}/products` p ON l.product = p.product;

CREATE MATERIALIZED VIEW best_products AS
SELECT category, product, amount, nth FROM (
  SELECT p.category, b.product, b.amount,
    row_number() OVER (PARTITION BY p.category ORDER BY b.amount DESC, b.product) AS nth
  FROM by_product b JOIN delta.`{folder}/products` p ON b.product = p.product
) WHERE nth <= 10;

CREATE MATERIALIZED VIEW best_customers AS
SELECT customer, amount FROM by_customer ORDER BY amount DESC, customer LIMIT 100;

CREATE MATERIALIZED VIEW by_category AS
SELECT p.category, sum(b.amount) AS amount, count(*) AS products
FROM by_product b JOIN delta.`{folder}/products` p ON b.product = p.product GROUP BY p.category;
"""
VIEWS = (
    *("large", "by_state", "by_customer", "by_product", "latest", "idle", "daily", "by_segment"),
    *("large_named", "best_products", "best_customers", "by_category"),
)


@dataclass(frozen=True)
class Measured:
    """What a run cost; `rows`: those of the views' change feeds."""

    run: str
    way: str
    seconds: float
    cpu_seconds: float
    bytes: int
    rows: int | None


class Project:
    """The project in a folder, over its Delta tables."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.folder, self.rows = folder, rows
        self.draw = np.random.default_rng(7)
        files = folder / "transformations"
        files.mkdir()
        (files / "views.py").write_text(PYTHON.replace("{folder}", str(folder)))
        (files / "views.sql").write_text(SQL.replace("{folder}", str(folder)))
        (folder / "spark-defaults.conf").write_text(DELTA)
        for way in ("sluice", "spark"):
            (folder / f"by_{way}.yml").write_text(SPEC.format(folder=folder, way=way))
        self._write("orders", self.orders(np.arange(rows)))
        customers, products = np.arange(CUSTOMERS), np.arange(PRODUCTS)
        segments = pa.array([f"segment {n}" for n in customers % 7])
        self._write("customers", pa.table({"customer": customers, "segment": segments}))
        categories = pa.array([f"category {n}" for n in products % 90])
        self._write("products", pa.table({"product": products, "category": categories}))

    def _write(self, name: str, rows: pa.Table) -> None:
        settings = {"delta.enableChangeDataFeed": "true"}
        write_deltalake(self.folder / name, rows, configuration=settings)

    def orders(self, ids: Any) -> pa.Table:
        """Return orders with these ids and other values."""
        draw, n = self.draw, len(ids)
        at = 1_700_000_000_000_000 + draw.integers(0, 90 * 86_400, n) * 1_000_000
        return pa.table(
            {
                "id": ids,
                "customer": draw.integers(0, CUSTOMERS - 1_000, n),
                "product": draw.integers(0, PRODUCTS, n),
                "state": pc.binary_join_element_wise(
                    "S", pa.array(draw.integers(0, STATES, n)).cast(pa.string()), ""
                ),
                "amount": draw.integers(1, 1_000, n),
                "at": pa.array(at).cast(pa.timestamp("us", "UTC")),
            }
        )

    def change(self, count: int) -> None:
        """Update most of so many orders; delete a tenth, and add a tenth."""
        some = self.draw.choice(self.rows, count, replace=False)
        tenth = count // 10
        new = np.concatenate([some[tenth:-tenth], np.arange(self.rows, self.rows + tenth)])
        table = DeltaTable(self.folder / "orders")
        table.delete(f"id IN ({', '.join(map(str, some[:tenth]))})")
        merger = table.merge(self.orders(new), "t.id = s.id", source_alias="s", target_alias="t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()
        self.rows += tenth

    def run_sluice(self, run: str) -> Measured:
        """Bring all views up to date by Sluice."""
        command = [sys.executable, "-m", "sluice.cli.main", "run", "--spec", "by_sluice.yml"]
        measured, said = self._measured(run, "Sluice", [*command, "--format", "json"])
        reports = [json.loads(line) for line in said.splitlines()]
        counts = ("inserted", "updated", "deleted")
        of_views = [r for r in reports if r["table"].partition(".")[2] in VIEWS]
        return replace(measured, rows=sum(r[c] for r in of_views for c in counts))

    def run_spark(self, run: str) -> Measured:
        """Bring all views up to date by PySpark's runner, which computes them whole each time."""
        runner = str(Path(pyspark.__file__).parent / "bin" / "spark-pipelines")
        command = [runner, "--driver-memory", "3g", "run", "--spec", "by_spark.yml"]
        return self._measured(run, "PySpark's runner", command)[0]

    def _measured(self, run: str, way: str, command: list[str]) -> tuple[Measured, str]:
        home = Path(pyspark.__file__).parent
        env = {**os.environ, **environment(), "SPARK_LOCAL_IP": "127.0.0.1"}
        env |= {
            "SPARK_HOME": str(home),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOG_LEVEL": "ERROR",
            "SPARK_CONF_DIR": str(self.folder),
            "SPARK_DIST_CLASSPATH": os.pathsep.join(map(str, classpath())),
        }
        before, used, began = self._files(), cpu_of_children(), time.monotonic()
        done = subprocess.run(
            command, cwd=self.folder, env=env, capture_output=True, text=True, check=False
        )
        seconds = time.monotonic() - began
        assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
        cpu = cpu_of_children() - used
        written = sum(size for _, size, _ in self._files() - before)
        print(f"{run}, {way}: {seconds:.1f} s, {cpu:.1f} CPU s", flush=True)
        return Measured(run, way, round(seconds, 1), round(cpu, 1), written, None), done.stdout

    def _files(self) -> set[tuple[str, int, int]]:
        found = [file for file in self.folder.rglob("*") if file.is_file()]
        return {(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in found}

    def check(self) -> None:
        """Both have the same rows of every view."""
        lake = sluice.open(self.folder / "by_sluice.yml")
        for name in VIEWS:
            files = (self.folder / "spark-warehouse" / name).glob("*.parquet")
            rows = ds.dataset([*map(str, files)]).to_table()
            own = lake.table(name).to_arrow().select(rows.column_names)
            assert _bag(own) == _bag(rows), name


def _bag(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    columns = [[_shown(v) for v in column.to_pylist()] for column in rows.columns]
    return Counter(zip(*columns, strict=True))


def _shown(value: Any) -> str:
    text = f"{value:.9g}" if isinstance(value, float) else str(value)
    return text.removesuffix("+00:00")


def cpu_of_children() -> float:
    """Return the CPU seconds of all child processes that have ended, and of theirs.

    Processes whose parent ended first have this one as their parent, by `adopt_orphans`.
    """
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parent ends."""
    set_child_subreaper = 36
    assert ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0) == 0


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--changed", type=int, default=1_000)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    adopt_orphans()
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder), asked.rows)
        found = [project.run_sluice("first run")]
        project.change(asked.changed)
        found += [project.run_sluice(f"{asked.changed:,} rows changed")]
        project.change(asked.changed)
        again = f"the next {asked.changed:,}"
        found += [project.run_sluice(again), project.run_spark(again)]
        project.check()
    shown = Table("run", "way", "seconds", "CPU seconds", "MB written", "rows of feeds")
    for one in found:
        rows = "–" if one.rows is None else f"{one.rows:,}"
        megabytes = f"{one.bytes / 1e6:,.1f}"
        shown.add_row(one.run, one.way, f"{one.seconds}", f"{one.cpu_seconds}", megabytes, rows)
    Console().print(shown)
    _, *ours, theirs = found
    times = " and ".join(f"{theirs.cpu_seconds / one.cpu_seconds:.1f}" for one in ours)
    print(f"{times} times less CPU for the changed rows")
    if asked.json:
        asked.json.write_text(json.dumps([asdict(one) for one in found], indent=2))


if __name__ == "__main__":
    main()
