"""What lookups cost: a batch of facts, a dimension's change, a reload, against joining all again.

python -m tests.benchmarks.lookup [--facts 10000000] [--dimensions 100000,1000000]
    [--batches 10000,100000] [--changes 1,1000,100000] [--master local[4]]

One lake, one warm session: facts joined to two dimensions by a plain lookup and by one with
`refresh: true`. Each step is compared with joining all facts to the same dimensions once more
and writing the result as a table, which gives no change feed, and with merging that join into
such a table, which gives the same one. `--facts 200000 --dimensions 5000,20000 --changes 1,1000`
takes about a minute.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table as Shown
from tests.benchmarks.bench_lake import timed as cpu_of
from tests.benchmarks.bench_lake import written_bytes

from sluice.declare.meaning import definition
from sluice.declare.project import Project
from sluice.declare.project import load as load_project
from sluice.delta.log.actions import Log
from sluice.delta.log.position import Position, head
from sluice.delta.places.lake_layout import layout
from sluice.delta.reading.spark_reads import create
from sluice.delta.writing.merge import SparkCommit
from sluice.dimensions.load import load
from sluice.engine.advance import Run, advance
from sluice.spark.session import Spark

PIPELINE = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  sales:
    path: "sales/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id BIGINT, product BIGINT, customer BIGINT, quantity INT"
dimensions:
  products: {path: products/, schema: "product BIGINT, name STRING, price INT", key: [product]}
  customers: {path: customers/, schema: "customer BIGINT, region STRING", key: [customer]}
views:
  invoices:
    kind: lookup
    from: sales
    join: &join
      - {dimension: products, on: product = products.product, type: left}
      - {dimension: customers, on: customer = customers.customer, type: left}
    select: &select {id: id, total: quantity * products.price, region: customers.region}
  refreshed: {kind: lookup, from: sales, join: *join, select: *select, refresh: true}
"""
CHANGES_OF_FACTS = ("inserted", "changed")


@dataclass(frozen=True)
class Step:
    """One measured step; `ratio`: how often it fits into joining everything again.

    `merges`: how often into merging that as well. `cpu`: seconds of all processors.
    """

    name: str
    seconds: float
    rows: int
    files: int
    megabytes: float
    ratio: float | None = None
    merges: float | None = None
    cpu: float = 0.0
    phases: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Baseline:
    """Seconds of joining all facts again: and writing a table, and merging it into one."""

    written: float
    merged: float

    def step(
        self, name: str, seconds: float, rows: int, files: int, megabytes: float, **more: Any
    ) -> Step:
        """A measured step next to both."""
        ratios = (round(each / seconds, 1) for each in (self.written, self.merged))
        return Step(name, round(seconds, 2), rows, files, megabytes, *ratios, **more)


class Shop:
    """The lake, its facts and its dimensions; deterministic by row number."""

    def __init__(self, folder: Path, master: str, memory: str):
        (folder / "config" / "pipelines").mkdir(parents=True)
        conf = f"{{spark.driver.memory: {memory}, spark.local.dir: {folder / 'spark'}}}"
        settings = f"lake: lake\nspark: {{master: '{master}', conf: {conf}}}\n"
        (folder / "config" / "sluice.yaml").write_text(settings)
        (folder / "config" / "pipelines" / "shop.yaml").write_text(PIPELINE)
        self.folder = folder
        self.project: Project = load_project(folder / "config")
        self.spark = Spark(self.project.spark)
        self.session = self.spark.tune(small=False)
        self.count = 0
        self.products = self.customers = 0
        self.dearer: list[str] = []  # what each landing has added to prices

    def uri(self, name: str) -> str:
        return layout(self.project).uri(f"shop.{name}")

    def land_dimensions(self, products: int, customers: int) -> None:
        self.products, self.customers = products, customers
        self.land_products(0)
        rows = self.session.range(customers).selectExpr(
            "id AS customer", "concat('region ', pmod(xxhash64(id), 50)) AS region"
        )
        self._land(rows, "customers")

    def land_products(self, changed: int) -> None:
        """The whole snapshot, `changed` of its rows dearer than before, spread over all.

        What was changed earlier stays so.
        """
        every = max(self.products // max(changed, 1), 1)
        is_changed = f"id % {every} = {len(self.dearer) % every} AND id < {every * changed}"
        self.dearer.append(f"IF({is_changed}, 1000, 0)")
        price = f"CAST(id % 900 + 1 + {' + '.join(self.dearer)} AS INT) AS price"
        rows = self.session.range(self.products)
        self._land(rows.selectExpr("id AS product", "concat('p', id) AS name", price), "products")

    def _land(self, rows: DataFrame, name: str) -> None:
        rows.coalesce(4).write.mode("overwrite").parquet(str(self.folder / name))

    def facts(self, first: int, count: int, *, salt: int = 0) -> DataFrame:
        return self.session.range(first, first + count).selectExpr(
            "id",
            f"pmod(xxhash64(id, {salt}), {self.products}) AS product",
            f"pmod(xxhash64(id, {salt + 1}), {self.customers}) AS customer",
            f"CAST(id % 9 + 1 + {salt} AS INT) AS quantity",
        )

    def sell(self, count: int, *, change: bool = False) -> None:
        """Commit facts to the source's table, as its ingestion does: new ones, or changed ones."""
        table, uri = self.project.graph.table("sales"), self.uri("sales")
        first = self.count - count if change else self.count
        rows = self.facts(first, count, salt=7 if change else 0)
        kind = "update" if change else "insert"
        made = definition(table)
        before = head(uri) or create(
            uri, rows.schema, Position(0, uuid.uuid4().hex, "ingest", made)
        )
        position = Position(before.next_batch, uuid.uuid4().hex, "ingest", made)
        changelog = rows.withColumn("_sluice_change", F.lit(kind))
        by_spark = SparkCommit(self.session, before, position, table.key)
        by_spark.changelog(changelog, {kind: count})
        self.count += 0 if change else count

    def load(self, name: str) -> Any:
        return load(self.spark, self.project, self.project.graph.table(name), Run("benchmark"))[-1]

    def advance(self, name: str) -> Any:
        found = self.project.graph.table(name)
        return advance(self.spark, self.project, found, Run("benchmark"))[-1]

    def join_all(self) -> None:
        """All facts, both dimensions broadcast, and a table of the result."""
        self._joined().write.format("delta").mode("overwrite").save(self.uri("joined_again"))

    def merge_all(self) -> None:
        """The same join, and only what differs is written: with a change feed, as a view's."""
        uri, session = self.uri("merged_again"), self.spark.tune(small=False)
        if not DeltaTable.is_deltatable(uri):
            writer = self._joined().write.format("delta")
            writer.option("delta.enableChangeDataFeed", "true").save(uri)
        self._joined().createOrReplaceTempView("joined")
        session.sql(
            f"MERGE INTO delta.`{uri}` t USING joined s ON t.id = s.id "
            "WHEN MATCHED AND NOT (s.total <=> t.total AND s.region <=> t.region) "
            "THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * "
            "WHEN NOT MATCHED BY SOURCE THEN DELETE"
        ).collect()

    def _joined(self) -> DataFrame:
        session = self.spark.tune(small=False)
        tables = {
            n: session.read.format("delta").load(self.uri(n))
            for n in ("sales", "products", "customers")
        }
        joined = (
            tables["sales"]
            .join(F.broadcast(tables["products"]), "product", "left")
            .join(F.broadcast(tables["customers"]), "customer", "left")
        )
        return joined.selectExpr("id", "quantity * price AS total", "region")


def written(uri: str, after: int) -> tuple[int, float]:
    """Files that the commits after a version have added, and their megabytes, feed and log.

    A file whose rows were only marked was not written.
    """
    versions = range(after + 1, DeltaTable(uri).version() + 1)
    size, files = sum(written_bytes(uri, version) for version in versions), 0
    for version in versions:
        actions = Log(uri).actions(version)
        known = {a["remove"]["path"] for a in actions if "remove" in a}
        files += sum("add" in a and a["add"]["path"] not in known for a in actions)
    return files, round(size / 1e6, 2)


def timed(shop: Shop, view: str, name: str, baseline: Baseline) -> Step:
    """The batch that is pending for a view."""
    version = DeltaTable(shop.uri(view)).version()
    began = time.perf_counter()
    cpu, report = cpu_of(lambda: shop.advance(view))
    seconds = time.perf_counter() - began
    files, megabytes = written(shop.uri(view), version)
    more = {"cpu": cpu, "phases": report.seconds}
    return baseline.step(name, seconds, report.rows_out, files, megabytes, **more)


def measure(shop: Shop, given: argparse.Namespace) -> Iterator[Step]:
    """Every step, the build first."""
    shop.land_dimensions(*given.dimensions)
    for name in ("products", "customers"):
        shop.load(name)
    shop.sell(given.facts)
    for view in ("invoices", "refreshed"):
        began = time.perf_counter()
        report = shop.advance(view)
        files, megabytes = written(shop.uri(view), 0)
        seconds = round(time.perf_counter() - began, 2)
        yield Step(f"{view}: build", seconds, report.rows_out, files, megabytes)
    baseline = Baseline(_better_of_two(shop.join_all), _better_of_two(shop.merge_all))
    yield baseline.step("join all again and write", baseline.written, given.facts, 0, 0.0)
    yield baseline.step("join all again and merge", baseline.merged, 0, 0, 0.0)
    yield from _batches(shop, given.batches, baseline)
    yield from dimension_changes(shop, given.changes, baseline)
    yield from _reload(shop, baseline)


def _better_of_two(work: Callable[[], None]) -> float:
    """The first warms up."""
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def _batches(shop: Shop, sizes: list[int], baseline: Baseline) -> Iterator[Step]:
    for change in (False, True):
        what = CHANGES_OF_FACTS[change]
        shop.sell(100, change=change)  # warms up
        for view in ("invoices", "refreshed"):
            shop.advance(view)
        for size in sizes:
            shop.sell(size, change=change)
            for view in ("invoices", "refreshed"):
                yield timed(shop, view, f"{view}: {size:,} facts {what}", baseline)


def dimension_changes(shop: Shop, sizes: list[int], baseline: Baseline) -> Iterator[Step]:
    """Measure what so many changed products cost the refreshed lookup."""
    shop.land_products(2)  # warms up
    shop.load("products")
    shop.advance("refreshed")
    for size in sizes:
        shop.land_products(size)
        shop.load("products")
        yield timed(shop, "refreshed", f"refreshed: {size:,} products changed", baseline)


def _reload(shop: Shop, baseline: Baseline) -> Iterator[Step]:
    """The same rows in new files."""
    path = shop.folder / "customers"
    shop._land(shop.session.read.parquet(str(path)).localCheckpoint(), "customers")
    version = DeltaTable(shop.uri("customers")).version()
    began = time.perf_counter()
    report = shop.load("customers")
    seconds = time.perf_counter() - began
    commits = DeltaTable(shop.uri("customers")).version() - version
    name = f"customers reloaded unchanged: {report.outcome}, {commits} commits"
    yield baseline.step(name, seconds, report.rows_in, 0, 0.0)


def main(argv: list[str]) -> None:
    """Prints a table, and the same as a line of JSON."""
    given, busy = _parser().parse_args(argv), os.getloadavg()[0]
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop(Path(folder), given.master, given.memory)
        steps = []
        try:
            for step in measure(shop, given):
                steps.append(step)
                console.print(f"{step.seconds:8.2f} s  {step.name}", dict(step.phases))
        finally:
            shop.spark.stop()
    sizes = " and ".join(f"{n:,}" for n in given.dimensions)
    table = Shown(title=f"{given.facts:,} facts, dimensions of {sizes} rows")
    columns = ("step", "seconds", "CPU s", "changelog", "files", "MB written")
    columns += ("than a join", "and a merge")
    for column in columns:
        table.add_column(column, justify="left" if column == "step" else "right")
    for s in steps:
        numbers = (f"{s.seconds:.2f}", f"{s.cpu:.2f}", f"{s.rows:,}", f"{s.files}")
        numbers += (f"{s.megabytes:.2f}",)
        ratios = ("" if r is None else f"{r:.1f}x" for r in (s.ratio, s.merges))
        table.add_row(s.name, *numbers, *ratios)
    console.print(table, f"load average before: {busy:.1f}")
    told = {**vars(given), "load": round(busy, 1), "steps": [vars(s) for s in steps]}
    print(json.dumps(told))


def _parser() -> argparse.ArgumentParser:
    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",")]

    parser = argparse.ArgumentParser()
    parser.add_argument("--facts", type=int, default=10_000_000)
    parser.add_argument("--dimensions", type=numbers, default=[100_000, 1_000_000])
    parser.add_argument("--batches", type=numbers, default=[10_000, 100_000])
    parser.add_argument("--changes", type=numbers, default=[1, 1_000, 100_000])
    parser.add_argument("--master", default="local[4]")
    parser.add_argument("--memory", default="3g")
    return parser


if __name__ == "__main__":
    main(sys.argv[1:])
