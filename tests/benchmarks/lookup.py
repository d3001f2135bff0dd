"""What lookups cost: a batch of facts, a dimension's change, a reload, against joining all again.

python -m tests.benchmarks.lookup [--facts 10000000] [--dimensions 100000,1000000]
    [--batches 10000,100000] [--changes 1,1000,100000] [--memory 3g]

One lake, one warm session: facts joined to two dimensions by a plain lookup and by one with
`refresh: true`. Beside them, all facts are joined to the same dimensions once more, and the result
is written as a table, which gives no change feed, and merged into such a table, which gives the
same one. `--facts 200000 --dimensions 5000,20000 --changes 1,1000` takes about a minute.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table as Shown
from tests.benchmarks.bench_lake import BenchLake, declared, timed, written_bytes

from sluice.changes import CHANGE
from sluice.delta.log import Log
from sluice.dimensions.load import load
from sluice.engine.advance import Run

TABLES = """
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
VIEWS = ("invoices", "refreshed")


@dataclass(frozen=True)
class Step:
    """One measured step. `cpu`: seconds of all processors."""

    name: str
    seconds: float
    cpu: float
    rows: int = 0
    files: int = 0
    megabytes: float = 0.0


class Shop(BenchLake):
    """The lake, its facts and its dimensions; deterministic by row number."""

    def __init__(self, folder: Path, memory: str):
        super().__init__(declared(folder, TABLES, memory))
        self.folder, self.count, self.products, self.customers = folder, 0, 0, 0
        self.dearer: list[str] = []  # what each landing has added to prices

    def build(self, products: int, customers: int, facts: int) -> None:
        """Load both dimensions and deliver the facts."""
        self.products, self.customers = products, customers
        self.land_products(0)
        rows = self.session.range(customers).selectExpr(
            "id AS customer", "concat('region ', pmod(xxhash64(id), 50)) AS region"
        )
        self._land(rows, "customers")
        for name in ("products", "customers"):
            self.load(name)
        self.fill("sales", self.facts(0, facts), ("id",))
        self.count = facts

    def land_products(self, changed: int) -> None:
        """Land the whole snapshot, `changed` of its rows dearer than before, spread over all."""
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
        """Commit new facts, or change the newest ones."""
        rows = self.facts(self.count - count * change, count, salt=7 * change)
        changelog = rows.withColumn(CHANGE, F.lit("update" if change else "insert"))
        self.commit("sales", changelog, ("id",))
        self.count += 0 if change else count

    def load(self, name: str) -> Any:
        return load(self.spark, self.project, self.project.graph.table(name), Run("bench"))[-1]

    def write_all(self) -> None:
        """Join all facts, both dimensions broadcast, and write the result."""
        self._joined().write.format("delta").mode("overwrite").save(self.uri("joined_again"))

    def merge_all(self) -> None:
        """Join all facts, and write only what differs: with a change feed, as a view's."""
        uri = self.uri("merged_again")
        if not DeltaTable.is_deltatable(uri):
            writer = self._joined().write.format("delta")
            writer.option("delta.enableChangeDataFeed", "true").save(uri)
        self._joined().createOrReplaceTempView("joined")
        self.session.sql(
            f"MERGE INTO delta.`{uri}` t USING joined s ON t.id = s.id "
            "WHEN MATCHED AND NOT (s.total <=> t.total AND s.region <=> t.region) "
            "THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * "
            "WHEN NOT MATCHED BY SOURCE THEN DELETE"
        ).collect()

    def _joined(self) -> DataFrame:
        products, customers = (F.broadcast(self.now(name)) for name in ("products", "customers"))
        joined = self.now("sales").join(products, "product", "left")
        joined = joined.join(customers, "customer", "left")
        return joined.selectExpr("id", "quantity * price AS total", "region")

    def measure(self, name: str, view: str) -> Step:
        """Measure the batch that is pending for a view: the files and bytes that it writes."""
        uri = self.uri(view)
        version = DeltaTable(uri).version() if DeltaTable.is_deltatable(uri) else 0
        began = time.perf_counter()
        cpu, reports = timed(lambda: self.follow(view))
        seconds = round(time.perf_counter() - began, 2)
        versions = range(version + 1, DeltaTable(uri).version() + 1)
        files = sum(_written_files(uri, version) for version in versions)
        size = sum(written_bytes(uri, version) for version in versions) / 1e6
        what = f"{view}: {name}"
        return Step(what, seconds, cpu, reports[-1].rows_out, files, round(size, 2))


def _written_files(uri: str, version: int) -> int:
    """Count the files of a commit; one whose rows were only marked was not written."""
    actions = Log(uri).actions(version)
    known = {a["remove"]["path"] for a in actions if "remove" in a}
    return sum("add" in a and a["add"]["path"] not in known for a in actions)


def measure(shop: Shop, given: argparse.Namespace) -> Iterator[Step]:
    """Yield every step, the build first."""
    shop.build(*given.dimensions, given.facts)
    yield from (shop.measure("build", view) for view in VIEWS)
    yield _faster_of_two("all joined again and written", shop.write_all)
    yield _faster_of_two("all joined again and merged", shop.merge_all)
    for is_change, what in ((False, "added"), (True, "changed")):
        for size in (100, *given.batches):  # the first warms up
            shop.sell(size, change=is_change)
            steps = [shop.measure(f"{size:,} facts {what}", view) for view in VIEWS]
            yield from steps if size > 100 else ()
    yield from dimension_changes(shop, given.changes)
    rows = shop.session.read.parquet(str(shop.folder / "customers")).localCheckpoint()
    shop._land(rows, "customers")
    began = time.perf_counter()
    cpu, report = timed(lambda: shop.load("customers"))
    seconds = round(time.perf_counter() - began, 2)
    yield Step(f"customers in new files: {report.outcome}", seconds, cpu, report.rows_in)


def _faster_of_two(name: str, work: Callable[[], None]) -> Step:
    steps = []
    for _ in range(2):
        began = time.perf_counter()
        cpu, _ = timed(work)
        steps.append(Step(name, round(time.perf_counter() - began, 2), cpu))
    return min(steps, key=lambda step: step.seconds)


def dimension_changes(shop: Shop, sizes: Sequence[int]) -> Iterator[Step]:
    """Measure what so many changed products cost the refreshed lookup."""
    for size in (2, *sizes):  # the first warms up
        shop.land_products(size)
        shop.load("products")
        step = shop.measure(f"{size:,} products changed", "refreshed")
        yield from [step] if size != 2 else ()


def main(argv: list[str]) -> None:
    """Prints a table, and the same as a line of JSON."""

    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",")]

    parser = argparse.ArgumentParser()
    parser.add_argument("--facts", type=int, default=10_000_000)
    parser.add_argument("--dimensions", type=numbers, default=[100_000, 1_000_000])
    parser.add_argument("--batches", type=numbers, default=[10_000, 100_000])
    parser.add_argument("--changes", type=numbers, default=[1, 1_000, 100_000])
    parser.add_argument("--memory", default="3g")
    given, busy = parser.parse_args(argv), os.getloadavg()[0]
    table = Shown("step", "seconds", "CPU s", "changelog", "files", "MB written")
    steps = []
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop(Path(folder), given.memory)
        try:
            for step in measure(shop, given):
                steps.append(asdict(step))
                table.add_row(*map(str, steps[-1].values()))
                print(step, file=sys.stderr)
        finally:
            shop.spark.stop()
    Console().print(table, f"load average before: {busy:.1f}")
    print(json.dumps({**vars(given), "load": round(busy, 1), "steps": steps}))


if __name__ == "__main__":
    main(sys.argv[1:])
