"""A cogroup of several streams, against the usual ways: seconds, Spark jobs, megabytes.

python -m tests.benchmarks.cogroup [--rows 500000 5000000] [--streams 3]
    [--changes 10000 300000] [--json FILE]

For each number of rows (of a stream; five to a key) there are keyed inputs whose neighbouring rows
have any keys. First every way builds its tables from nothing,
then the inputs change (inserts, updates, a fifth deletes; `--repeat` times each) and every way
follows, in a warm session:

- `cogroup` is this project's view of all streams;
- `apart` is a view of its own for each stream, which leaves the join to the reader;
- `joined` aggregates each stream, joins all, and overwrites its table.

All is done once with few rows before anything is measured: the first way would pay for the start.
`shuffles` are those of the whole query.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table as Printed
from tests.benchmarks.bench_lake import BenchLake, declared
from tests.benchmarks.repeated import measure

from sluice.changes import CHANGE
from sluice.engine import BatchReport
from sluice.engine.plan import nodes_of
from sluice.kinds.cogroup.operator import CogroupState

ROWS_OF_A_KEY = 5
AGGREGATES = {"n_{}": "count(*)", "v_{}": "sum(v)", "mean_{}": "avg(v)"}
SOURCE = """
  {name}:
    path: "{name}/{{interval_start:%Y-%m-%d}}/"
    schema: "id BIGINT, k BIGINT, v DECIMAL(12,2), at TIMESTAMP"
    key: [id]"""
VIEW = "\n  {name}: {{kind: cogroup, key: [k], streams: {{{streams}}}}}"
FILES = 32


@dataclass(frozen=True)
class Measured:
    """One way to follow one change; `changes` 0 is the build."""

    rows: int
    keys: int
    changes: int
    way: str
    seconds: float
    jobs: int
    shuffles: int
    recomputed: int = 0
    megabytes: float = 0.0


class Bench(BenchLake):
    """The inputs, the cogroup, and the tables that it is measured against."""

    def __init__(self, folder: Path, rows: int, given: argparse.Namespace):
        self.rows, self.keys = rows, rows // ROWS_OF_A_KEY
        self.names = [f"s{i}" for i in range(given.streams)]
        streams = {name: self._stream(name) for name in self.names}
        tables = "sources:" + "".join(SOURCE.format(name=name) for name in self.names)
        tables += "\nviews:" + VIEW.format(name="cogroup", streams=", ".join(streams.values()))
        tables += "".join(VIEW.format(name=f"only_{n}", streams=s) for n, s in streams.items())
        super().__init__(declared(folder, tables, given.memory))

    def _stream(self, name: str) -> str:
        listed = (f'{column.format(name)}: "{a}"' for column, a in AGGREGATES.items())
        return f"{name}: {{from: {name}, aggregates: {{{', '.join(listed)}}}}}"

    def land(self) -> None:
        """The inputs."""
        for name in self.names:
            rows = self._rows(name, 0, self.rows)
            laid = rows.repartitionByRange(FILES, "id").sortWithinPartitions("id")
            self.fill(name, laid, ("id",))

    def _rows(self, name: str, start: int, end: int) -> DataFrame:
        def drawn(seed: int, below: int) -> Any:
            return F.pmod(F.xxhash64("id", F.lit(name), F.lit(seed)), F.lit(below))

        ids = self.session.range(start, end, numPartitions=8)
        return ids.select(
            "id",
            drawn(1, self.keys).alias("k"),
            (drawn(2, 100_000) / 100).cast("decimal(12,2)").alias("v"),
            F.timestamp_seconds(1_700_000_000 + F.col("id")).alias("at"),
        )

    def change(self, count: int) -> None:
        """Each input again: a stretch of its ids, as a correction of an interval does."""
        each = count // len(self.names)
        for name in self.names:
            before = self.head(name)
            first = self.rows // 2 + before.version * 1_000_003 % (self.rows // 4)
            known = self.now(name).where(F.col("id").between(first, first + each))
            known = known.limit(each * 4 // 5).persist()
            fate = F.when(F.col("id") % 4 == 0, "delete").otherwise("update")
            moved = known.withColumn("v", F.col("v") + 1).withColumn(CHANGE, fate)
            start = self.rows * 2 + before.version * 10_000_000
            fresh = self._rows(name, start, start + each // 5).withColumn(CHANGE, F.lit("insert"))
            self.commit(name, moved.select(fresh.columns).unionByName(fresh), ("id",))
            known.unpersist()

    def measure(self, changes: int) -> Iterator[Measured]:
        """Every way brought up to the inputs, timed."""
        for way in ("cogroup", "apart", "joined"):
            jobs, began = self.jobs(), time.perf_counter()
            reports = self.brought_up(way)
            seconds, ran = round(time.perf_counter() - began, 2), self.jobs() - jobs
            recomputed = sum(r.recomputed or 0 for r in reports)
            yield Measured(
                *(self.rows, self.keys, changes, way, seconds, ran, self.shuffles(way), recomputed),
                megabytes=round(sum(map(self.megabytes, self._tables(way))), 1),
            )

    def brought_up(self, way: str) -> tuple[BatchReport, ...]:
        """What the batches say."""
        if way == "joined":
            self.joined().write.format("delta").mode("overwrite").save(self.uri(way))
            return ()
        return tuple(report for view in self._views(way) for report in self.follow(view))

    def shuffles(self, way: str) -> int:
        """Of the query."""
        if way == "joined":
            return shuffles_of(self.joined())
        return sum(map(self._shuffles, self._views(way)))

    def _views(self, way: str) -> list[str]:
        return ["cogroup"] if way == "cogroup" else [f"only_{name}" for name in self.names]

    def _shuffles(self, view: str) -> int:
        operator = nodes_of(self.project.graph.table(view), self.project.graph)[0].operator
        assert isinstance(operator, CogroupState)
        inputs = {i: self.now(i.partition(".")[2]) for i in operator.inputs}
        return shuffles_of(operator.query(inputs, {}))

    def joined(self) -> DataFrame:
        """An aggregation of each stream, and joins of all."""

        def aggregated(name: str) -> DataFrame:
            found = {column.format(name): a for column, a in AGGREGATES.items()}
            values = [F.expr(a).alias(column) for column, a in found.items()]
            return self.now(name).groupBy("k").agg(*values)

        return reduce(lambda a, b: a.join(b, "k", "full"), map(aggregated, self.names))

    def check(self) -> None:
        """The view and the joined table hold the same rows."""
        mine = self.now("cogroup")
        rows = self.session.read.format("delta").load(self.uri("joined"))
        counts = {f"n_{n}": F.coalesce(f"n_{n}", F.lit(0)) for n in self.names}
        same = rows.withColumns(counts).select(mine.columns)
        assert mine.exceptAll(same).isEmpty(), "the view is not what its query gives"
        assert mine.count() == rows.count(), "the view lacks rows"

    def _tables(self, way: str) -> list[str]:
        if way == "joined":
            return []
        return [f"{view}{part}" for view in self._views(way) for part in ("", "__state")]


def shuffles_of(rows: DataFrame) -> int:
    """Exchanges by key in Spark's plan."""
    frame: Any = rows
    plan = str(frame._jdf.queryExecution().executedPlan().toString())
    return plan.count("Exchange hashpartitioning")


def run(rows: int, given: argparse.Namespace) -> Iterator[Measured]:
    """All that is measured of inputs of that size."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), rows, given)
        try:
            bench.land()
            yield from bench.measure(0)
            for count in given.changes:
                for _ in range(given.repeat):
                    bench.change(count)
                    yield from bench.measure(count)
            bench.check()
        finally:
            bench.spark.stop()


def show(found: list[Measured]) -> None:
    """A table, and what a batch costs in builds."""
    built = {(m.rows, m.way): m.seconds for m in found if not m.changes}
    columns = "rows", "keys", "changes", "way", "s", "builds", "jobs", "shuffles", "recomputed"
    printed = Printed(*columns, "MB")
    for one in found:
        changes = f"{one.changes:,}" if one.changes else "build"
        share = f"1/{built[one.rows, one.way] / one.seconds:.1f}" if one.changes else ""
        printed.add_row(
            *(f"{one.rows:,}", f"{one.keys:,}", changes, one.way, f"{one.seconds:.2f}", share),
            *map(str, (one.jobs, one.shuffles, one.recomputed, one.megabytes)),
        )
    Console(width=130).print(printed)


def main(argv: list[str]) -> None:
    """Prints a table, and all measurements as a line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="*", default=[500_000, 5_000_000])
    parser.add_argument("--streams", type=int, default=3)
    parser.add_argument("--changes", type=int, nargs="*", default=[10_000, 300_000])
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--memory", default="4g")
    parser.add_argument("--json", type=Path)
    measure(run, parser.parse_args(argv), show, lambda m: (m.rows, m.changes, m.way))


if __name__ == "__main__":
    main(sys.argv[1:])
