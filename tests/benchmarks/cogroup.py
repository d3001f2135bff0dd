"""A cogroup of several streams, against the usual ways: seconds, Spark jobs, megabytes written.

python -m tests.benchmarks.cogroup [--rows 5000000] [--keys 1000000] [--streams 3]
    [--changes 10000 300000] [--lake FOLDER] [--commit auto|spark] [--json FILE]

Keyed inputs whose rows of one time have any keys. First every way builds its tables from nothing,
then the inputs change (inserts, updates, a fifth deletes) and every way follows, in a warm session:

- `cogroup` is this project's view of all streams;
- `apart` is a view of its own for each stream, which leaves the join to the reader;
- `joined` aggregates each stream, joins all, and overwrites its table.

A lake that is kept (`--lake`) is used again as it is: then only the changes are measured.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table as Printed

from sluice.changelog.diff import CHANGE
from sluice.operators.cogroup import CogroupState
from sluice.runtime.batch import Run, advance
from sluice.runtime.nodes import nodes_of
from sluice.runtime.session import Spark
from sluice.specs.project import load
from sluice.storage.commit import commit_spark
from sluice.storage.feed_size import table_size
from sluice.storage.lake import layout
from sluice.storage.position import Head, Position, head
from sluice.storage.table import create, snapshot

STREAM = (
    "{{from: {name}, aggregates: {{n_{name}: count(*), v_{name}: sum(v), at_{name}: max(at)}}}}"
)
SOURCE = """
  {name}:
    path: "{name}/{{interval_start:%Y-%m-%d}}/"
    schema: "id BIGINT, k BIGINT, v DECIMAL(12,2), at TIMESTAMP"
    key: [id]"""
HEAD = 'pipeline: bench\nschedule: "@daily"\nstart_date: 2024-01-01\nsources:'
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


class Bench:
    """One lake, one session."""

    def __init__(self, folder: Path, given: argparse.Namespace):
        self.rows, self.keys = given.rows, given.keys
        self.names = [f"s{i}" for i in range(given.streams)]
        streams = {name: f"{name}: {STREAM.format(name=name)}" for name in self.names}
        declared = HEAD + "".join(SOURCE.format(name=name) for name in self.names) + "\nviews:"
        declared += VIEW.format(name="cogroup", streams=", ".join(streams.values()))
        declared += "".join(VIEW.format(name=f"only_{n}", streams=s) for n, s in streams.items())
        path = folder / "config" / "pipelines" / "bench.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(declared, encoding="utf-8")
        settings = f"{{commit: {given.commit}, conf: {{spark.driver.memory: 8g}}}}"
        (folder / "config" / "sluice.yaml").write_text(f"lake: lake\nspark: {settings}\n")
        self.project = load(folder / "config")
        self.spark = Spark(self.project.spark)

    @property
    def session(self) -> SparkSession:
        return self.spark.tune(small=False)

    def uri(self, name: str) -> str:
        return layout(self.project).uri(f"bench.{name}")

    def head(self, name: str) -> Head:
        found = head(self.uri(name))
        assert found is not None
        return found

    def source(self, name: str) -> DataFrame:
        return snapshot(self.session, self.uri(name), self.head(name).version)

    def fill(self) -> bool:
        """The inputs, where they are not there yet."""
        missing = [name for name in self.names if head(self.uri(name)) is None]
        for name in missing:
            rows = self._rows(name, 0, self.rows)
            before = create(self.uri(name), rows.schema, _position(0))
            laid = rows.repartitionByRange(FILES, "id").sortWithinPartitions("id")
            inserts = laid.withColumn(CHANGE, F.lit("insert"))
            counts = {"insert": self.rows}
            commit_spark(self.session, before, inserts, counts, ("id",), _position(1))
        return bool(missing)

    def _rows(self, name: str, start: int, end: int, salt: int = 0) -> DataFrame:
        def drawn(seed: int, below: int) -> Any:
            mixed = F.xxhash64("id", F.lit(name), F.lit(seed), F.lit(salt))
            return F.pmod(mixed, F.lit(below))

        return self.session.range(start, end, numPartitions=8).select(
            "id",
            drawn(1, self.keys).alias("k"),
            (drawn(2, 100_000) / 100).cast("decimal(12,2)").alias("v"),
            F.timestamp_seconds(1_700_000_000 + F.col("id")).alias("at"),
        )

    def change(self, count: int) -> None:
        """Each input anew: a stretch of its ids, as a correction of an interval does."""
        each = count // len(self.names)
        for name in self.names:
            before = self.head(name)
            first = self.rows // 2 + before.version * 1_000_003 % (self.rows // 4)
            known = self.source(name).where(F.col("id").between(first, first + each))
            known = known.limit(each * 4 // 5).persist()
            fate = F.when(F.col("id") % 4 == 0, "delete").otherwise("update")
            moved = known.withColumn("v", F.col("v") + 1).withColumn(CHANGE, fate)
            start = self.rows * 2 + before.version * 10_000_000
            fresh = self._rows(name, start, start + each // 5).withColumn(CHANGE, F.lit("insert"))
            changes = moved.select(fresh.columns).unionByName(fresh).persist()
            counts = {r[CHANGE]: r["count"] for r in changes.groupBy(CHANGE).count().collect()}
            position = _position(before.next_batch)
            commit_spark(self.session, before, changes, counts, ("id",), position)
            changes.unpersist()
            known.unpersist()

    def measure(self, changes: int) -> Iterator[Measured]:
        """Every way brought up to the inputs, timed."""
        ways: dict[str, Callable[[], tuple[int, int]]] = {
            "cogroup": lambda: self.advance("cogroup"),
            "apart": lambda: _added(self.advance(f"only_{name}") for name in self.names),
            "joined": self.joined,
        }
        for way, work in ways.items():
            jobs, began = self._jobs(), time.perf_counter()
            shuffles, recomputed = work()
            seconds, ran = round(time.perf_counter() - began, 2), self._jobs() - jobs
            point = (self.rows, self.keys, changes, way, seconds, ran, shuffles, recomputed)
            yield Measured(*point, megabytes=self._megabytes(way))

    def advance(self, view: str) -> tuple[int, int]:
        """Shuffles of the whole query, groups recomputed by the batch."""
        table = self.project.graph.table(view)
        state, _ = advance(self.spark, self.project, table, Run("bench"))
        operator = nodes_of(table, self.project.graph)[0].operator
        assert isinstance(operator, CogroupState)
        query = operator.query({i: self.source(i.partition(".")[2]) for i in operator.inputs}, {})
        return shuffles_of(query), state.recomputed or 0

    def joined(self) -> tuple[int, int]:
        """An aggregation of each stream, and joins of all."""

        def aggregated(name: str) -> DataFrame:
            return (
                self.source(name)
                .groupBy("k")
                .agg(
                    F.count(F.lit(1)).alias(f"n_{name}"),
                    F.sum("v").alias(f"v_{name}"),
                    F.max("at").alias(f"at_{name}"),
                )
            )

        rows = reduce(lambda a, b: a.join(b, "k", "full"), map(aggregated, self.names))
        rows.write.format("delta").mode("overwrite").save(self.uri("joined"))
        return shuffles_of(rows), 0

    def check(self) -> None:
        """The view and the joined table hold the same rows."""
        mine = snapshot(self.session, self.uri("cogroup"), self.head("cogroup").version)
        rows = self.session.read.format("delta").load(self.uri("joined"))
        counts = {f"n_{n}": F.coalesce(f"n_{n}", F.lit(0)) for n in self.names}
        same = rows.withColumns(counts).select(mine.columns)
        assert mine.exceptAll(same).isEmpty(), "the view is not what its query gives"
        assert mine.count() == rows.count(), "the view lacks rows"

    def _megabytes(self, way: str) -> float:
        tables = {
            "cogroup": ["cogroup", "cogroup__state"],
            "apart": [f"only_{n}{s}" for n in self.names for s in ("", "__state")],
        }.get(way, [])
        sizes = (table_size(self.uri(t), self.head(t).version).bytes for t in tables)
        return round(sum(sizes) / 1e6, 1)

    def _jobs(self) -> int:
        context: Any = self.session.sparkContext
        return int(context._jsc.sc().dagScheduler().numTotalJobs())


def shuffles_of(rows: DataFrame) -> int:
    """Exchanges by key in Spark's plan."""
    frame: Any = rows
    plan = str(frame._jdf.queryExecution().executedPlan().toString())
    return plan.count("Exchange hashpartitioning")


def _added(found: Iterator[tuple[int, int]]) -> tuple[int, int]:
    shuffles, recomputed = zip(*found, strict=True)
    return sum(shuffles), sum(recomputed)


def _position(batch: int) -> Position:
    return Position(batch, uuid.uuid4().hex, "ingest")


def show(found: list[Measured]) -> None:
    """A table of seconds, jobs and shuffles."""
    printed = Printed("rows", "keys", "changes", "way", "s", "jobs", "shuffles", "recomputed", "MB")
    for one in found:
        changes = f"{one.changes:,}" if one.changes else "build"
        printed.add_row(
            *(f"{one.rows:,}", f"{one.keys:,}", changes, one.way, f"{one.seconds:.2f}"),
            *map(str, (one.jobs, one.shuffles, one.recomputed, one.megabytes)),
        )
    Console(width=120).print(printed)


def main(argv: list[str]) -> None:
    """Prints a table, and the same as a line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--streams", type=int, default=3)
    parser.add_argument("--changes", type=int, nargs="*", default=[10_000, 300_000])
    parser.add_argument("--commit", choices=("auto", "spark", "delta-rs"), default="auto")
    parser.add_argument("--lake", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(given.lake or Path(folder), given)
        try:
            found = list(bench.measure(0)) if bench.fill() else []
            for count in given.changes:
                bench.change(count)
                found += bench.measure(count)
            bench.check()
        finally:
            bench.spark.stop()
    show(found)
    told = {"load_average": os.getloadavg()[0], "measured": [asdict(one) for one in found]}
    print(json.dumps(told))
    if given.json:
        given.json.write_text(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1:])
