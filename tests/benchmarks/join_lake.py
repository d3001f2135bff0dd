"""Lines, orders, two views over them, and the tables that the views are measured against."""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from tests.benchmarks.bench_lake import BenchLake, declared

from sluice.changes import CHANGE
from sluice.engine.batch_plan import Context
from sluice.engine.plan import nodes_of, plan_batch

LINES_OF_AN_ORDER = 10
FILES = 32
TABLES = """
sources:
  lines:
    path: "lines/{interval_start:%Y-%m-%d}/"
    schema: "order_id BIGINT, line INT, product BIGINT, amount DECIMAL(12,2)"
    key: [order_id, line]
  orders:
    path: "orders/{interval_start:%Y-%m-%d}/"
    schema: "id BIGINT, customer BIGINT, status STRING"
    key: [id]
views:
  joined:
    kind: join
    left: lines
    right: orders
    on: lines.order_id = orders.id
    select:
      order_id: lines.order_id
      line: lines.line
      id: orders.id
      customer: orders.customer
      status: orders.status
      amount: lines.amount
  stepped:
    kind: over
    from: lines
    partition_by: [order_id]
    order_by: [line]
    select: {order_id: order_id, line: line, amount: amount, previous: lag(amount) OVER w}
"""
KEYS = {"lines": ("order_id", "line"), "orders": ("id",)}
QUERIES = {
    "joined": (
        "SELECT l.order_id, l.line, o.id, o.customer, o.status, l.amount "
        "FROM {lines} l JOIN {orders} o ON l.order_id = o.id"
    ),
    "stepped": (
        "SELECT order_id, line, amount, "
        "lag(amount) OVER (PARTITION BY order_id ORDER BY line) AS previous FROM {lines}"
    ),
}
WAYS = ("view", "merge", "overwrite", "duckdb")


@dataclass(frozen=True)
class Measured:
    """One way to follow one change; `changes` 0 is the build."""

    rows: int
    view: str
    spread: str
    changes: int
    way: str
    seconds: float
    jobs: int = 0
    megabytes: float = 0.0
    changed: int | None = None
    plan: str = ""


class JoinLake(BenchLake):
    """The lake, and the ways to follow its changes."""

    def __init__(self, folder: Path, rows: int, given: argparse.Namespace):
        super().__init__(declared(folder, TABLES, given.memory))
        self.folder, self.memory = folder, given.memory
        self.counts = {"lines": rows, "orders": rows // LINES_OF_AN_ORDER}

    def land(self) -> None:
        """Commit all lines and orders, filed by their keys."""
        for name, key in KEYS.items():
            rows = self._rows(name, self.session.range(self.counts[name], numPartitions=8))
            laid = rows.repartitionByRange(FILES, *key).sortWithinPartitions(*key)
            self.fill(name, laid, key)
            self.copy(name)

    def change(self, count: int, spread: str) -> None:
        """Commit `count` changes, half to lines and half to orders."""
        salt = self.head("lines").version
        for name, key in KEYS.items():
            few = count // 2
            chosen = self.now(name).where(self._is_chosen(name, few * 4 // 5, spread, salt))
            fate = F.when(_drawn(salt, *key) % 4 == 0, "delete").otherwise("update")
            value = "amount" if name == "lines" else "customer"
            moved = chosen.withColumn(value, F.col(value) + 1).withColumn(CHANGE, fate)
            fresh = self._fresh(name, few // 5, spread, salt).withColumn(CHANGE, F.lit("insert"))
            self.deliver(name, moved.unionByName(fresh), key)
            self.copy(name)

    def _rows(self, name: str, ids: DataFrame) -> DataFrame:
        if name == "orders":
            status = F.element_at(
                F.array(*map(F.lit, "NPSD")), (_drawn(2, "id") % 4 + 1).cast("int")
            )
            return ids.select(
                "id", (_drawn(1, "id") % 50_000).alias("customer"), status.alias("status")
            )
        order, line = F.floor(F.col("id") / LINES_OF_AN_ORDER), F.col("id") % LINES_OF_AN_ORDER
        return ids.select(
            order.cast("bigint").alias("order_id"),
            line.cast("int").alias("line"),
            (_drawn(3, "id") % 5_000).alias("product"),
            ((_drawn(4, "id") % 100_000) / 100).cast("decimal(12,2)").alias("amount"),
        )

    def _is_chosen(self, name: str, count: int, spread: str, salt: int) -> Column:
        """Return a condition that about `count` rows meet."""
        order = F.col(KEYS[name][0])
        if spread == "near":
            orders = count if name == "orders" else count // LINES_OF_AN_ORDER
            return order.between(self._first(salt), self._first(salt) + orders - 1)
        return _drawn(salt, *KEYS[name]) % self.counts[name] < count

    def _fresh(self, name: str, count: int, spread: str, salt: int) -> DataFrame:
        """Return `count` new rows: orders behind the last, lines of orders near or anywhere."""
        new = self.session.range(count, numPartitions=1)
        if name == "orders":
            first = self.counts["orders"] + salt * 10_000_000
            return self._rows(name, new.select((F.col("id") + first).alias("id")))
        anywhere = _drawn(salt, "id") % self.counts["orders"]
        order = F.col("id") + self._first(salt) if spread == "near" else anywhere
        line = (F.col("id") + LINES_OF_AN_ORDER * (1 + 1_000_000 * salt)).cast("int")
        return new.select(
            order.cast("bigint").alias("order_id"),
            line.alias("line"),
            F.lit(1).cast("bigint").alias("product"),
            F.lit(1).cast("decimal(12,2)").alias("amount"),
        )

    def _first(self, salt: int) -> int:
        return self.counts["orders"] // 3 + salt * 7_919 % (self.counts["orders"] // 3)

    def measure(self, changes: int, spread: str) -> Iterator[Measured]:
        """Bring every way up to the inputs, each timed."""
        for view in QUERIES:
            plan = self._plan(view)
            for way in WAYS:
                jobs, began = self.jobs(), time.perf_counter()
                report = getattr(self, f"_{way}")(view)
                seconds = round(time.perf_counter() - began, 2)
                yield Measured(
                    self.counts["lines"],
                    view,
                    spread,
                    changes,
                    way,
                    seconds,
                    self.jobs() - jobs,
                    self.megabytes(view),
                    report.rows_out if report else None,
                    plan if way == "view" else "",
                )

    def _plan(self, view: str) -> str:
        context = Context.of(self.project)
        (node,) = nodes_of(self.project.graph.table(view), context.graph)
        plan = plan_batch(node, context.lake, context.graph)
        return "; ".join([plan.reason, *node.batch.remarks(context, plan)])

    def _view(self, view: str) -> Any:
        return self.follow(view)[-1]

    def _overwrite(self, view: str) -> None:
        self._computed(view).write.format("delta").mode("overwrite").save(self.uri(f"{view}_over"))

    def _merge(self, view: str) -> None:
        uri, rows = self.uri(f"{view}_merged"), self._computed(view)
        if not DeltaTable.is_deltatable(uri):
            rows.write.format("delta").option("delta.enableChangeDataFeed", "true").save(uri)
            return
        rows.createOrReplaceTempView("computed")
        key, others = ("order_id", "line"), [c for c in rows.columns if c not in KEYS["lines"]]
        same = " AND ".join(f"s.{c} <=> t.{c}" for c in others)
        self.session.sql(
            f"MERGE INTO delta.`{uri}` t USING computed s "
            f"ON {' AND '.join(f's.{c} = t.{c}' for c in key)} "
            f"WHEN MATCHED AND NOT ({same}) THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * "
            "WHEN NOT MATCHED BY SOURCE THEN DELETE"
        ).collect()

    def _duckdb(self, view: str) -> None:
        tables = {name: self.copied(name) for name in KEYS}
        to = self.folder / f"{view}.parquet"
        with duckdb.connect(config={"memory_limit": self.memory.upper() + "B"}) as connection:
            connection.execute(
                f"COPY ({QUERIES[view].format(**tables)}) TO '{to}' (FORMAT parquet)"
            )

    def _computed(self, view: str) -> DataFrame:
        for name in KEYS:
            self.now(name).createOrReplaceTempView(name)
        return self.session.sql(QUERIES[view].format(**{name: name for name in KEYS}))

    def check(self) -> None:
        """Compare all ways' rows."""
        for view in QUERIES:
            mine = self.now(view)
            others = [self.uri(f"{view}_over"), self.uri(f"{view}_merged")]
            tables = [self.session.read.format("delta").load(uri) for uri in others]
            tables.append(self.session.read.parquet(str(self.folder / f"{view}.parquet")))
            for rows in tables:
                shown = mine.select(rows.columns)
                assert shown.count() == rows.count(), f"{view} has another number of rows"
                assert shown.exceptAll(rows).isEmpty(), f"{view} is not what its query gives"


def _drawn(seed: int, *columns: str) -> Column:
    return F.pmod(F.xxhash64(*columns, F.lit(seed)), F.lit(2**40))
