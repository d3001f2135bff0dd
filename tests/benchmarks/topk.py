"""Top-k, batch by batch, against computing everything anew: seconds, Spark jobs, rows written.

python -m tests.benchmarks.topk [--rows 1000000] [--groups 1000] [--changes 1000 100000]
    [--kinds append raise mixed] [--lake FOLDER] [--layout id|group] [--json FILE]

One input, keyed; each batch changes it by a MERGE of Spark, and then in one warm session

- `auto` and `spark` are this project's view, advanced with either committer;
- `merge` ranks everything and MERGEs the difference, `overwrite` ranks everything and overwrites.

Ratios are against `merge`, which does the same service: a table with a minimal change feed. A lake
that is kept (`--lake`) is used again as it is.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table as Printed

from sluice.changelog.diff import CHANGE, diff
from sluice.runtime.batch import Run, advance
from sluice.runtime.session import Spark
from sluice.specs.project import load
from sluice.storage.commit import changelog_counts, commit_spark
from sluice.storage.lake import layout
from sluice.storage.position import Head, Position, head
from sluice.storage.table import create, snapshot

K = 10
VIEW = "{{kind: topk, from: facts, partition_by: [g], order_by: [v desc], limit: {k}{more}}}"
DECLARED = """
pipeline: bench
schedule: "@daily"
start_date: 2024-01-01
sources:
  facts:
    path: "facts/{{interval_start:%Y-%m-%d}}/"
    schema: "id BIGINT, g INT, v INT, note STRING"
    key: [id]
views:
  auto: {auto}
  spark: {spark}
"""
RIVALS = ("merge", "overwrite")
VIEWS = ("auto", "spark")


@dataclass(frozen=True)
class Measured:
    """One batch by one way."""

    rows: int
    groups: int
    kind: str
    changes: int
    way: str
    seconds: float
    jobs: int
    written: int
    refills: int = 0
    strategy: str = ""


class Bench:
    """One lake, one session."""

    def __init__(self, folder: Path, given: argparse.Namespace):
        self.rows, self.groups, self.by = given.rows, given.groups, given.layout
        more = "" if given.headroom is None else f", headroom: {given.headroom}"
        view = VIEW.format(k=K, more=more)
        path = folder / "config" / "pipelines" / "bench.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(DECLARED.format(auto=view, spark=view), encoding="utf-8")
        settings = "spark: {conf: {spark.driver.memory: 8g}}"
        (folder / "config" / "sluice.yaml").write_text(f"lake: lake\n{settings}\n")
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

    def prepare(self) -> None:
        """The input, the views and the rival tables, where they are not there yet."""
        if head(self.uri("facts")) is None:
            self._fill(facts(self.session, self.rows, self.groups))
        for way in VIEWS:
            self.advance(way)
        for way in RIVALS:
            if head(self.uri(way)) is None:
                ranked = self.ranked().persist()
                create(self.uri(way), ranked.schema, _position(0))
                counts = {"insert": ranked.count()}
                rows = ranked.withColumn(CHANGE, F.lit("insert"))
                commit_spark(self.session, self.head(way), rows, counts, ("g", "id"), _position(1))

    def advance(self, way: str) -> Any:
        settings = self.project.spark.model_copy(
            update={"commit": "spark" if way == "spark" else "auto"}
        )
        project = self.project.model_copy(update={"spark": settings})
        return advance(self.spark, project, self.project.graph.table(way), Run("bench"))

    def ranked(self) -> DataFrame:
        """The view's query over the input as it is."""
        over = Window.partitionBy("g").orderBy(F.desc_nulls_last("v"), "id")
        rows = snapshot(self.session, self.uri("facts"), self.head("facts").version)
        ranked = rows.withColumn("rank", F.row_number().over(over)).where(f"rank <= {K}")
        return ranked.select("g", "id", "v", "note", "rank")

    def merge(self) -> int:
        """Rank everything, MERGE the difference."""
        before = self.head("merge")
        old = snapshot(self.session, self.uri("merge"), before.version)
        changelog = diff(old, self.ranked(), ("g", "id")).persist()
        counts = changelog_counts(changelog)
        position = _position(before.next_batch)
        done = commit_spark(self.session, before, changelog, counts, ("g", "id"), position)
        changelog.unpersist()
        return done.changed

    def overwrite(self) -> int:
        """Rank everything, overwrite the table."""
        self.ranked().write.format("delta").mode("overwrite").save(self.uri("overwrite"))
        return self.groups * K

    def change(self, kind: str, count: int) -> int:
        """One MERGE into the input."""
        changes = self._changes(kind, count).persist()
        counts, before = changelog_counts(changes), self.head("facts")
        began = time.perf_counter()
        position = _position(before.next_batch)
        commit_spark(self.session, before, changes, counts, ("id",), position)
        self.merged_in = time.perf_counter() - began
        changes.unpersist()
        return sum(counts.values())

    def _changes(self, kind: str, count: int) -> DataFrame:
        now = snapshot(self.session, self.uri("facts"), self.head("facts").version)
        if kind == "append":
            first = now.agg(F.max("id")).collect()[0][0] + 1
            added = facts(self.session, count, self.groups, first)
            return added.withColumn(CHANGE, F.lit("insert"))
        chosen = now.sample(min(1.0, 1.2 * count / self.rows)).limit(count)
        if kind == "raise":
            raised = chosen.withColumn("v", (F.col("v") + F.rand() * 1_000_000).cast("int"))
            return raised.withColumn(CHANGE, F.lit("update"))
        return self._mixed(chosen, count)

    def _mixed(self, chosen: DataFrame, count: int) -> DataFrame:
        """Random new values; 5 % are deleted, half of them leaders."""
        leaders = snapshot(self.session, self.uri("auto"), self.head("auto").version)
        dead = leaders.where("rank <= 2").orderBy(F.rand()).limit(max(1, count // 40))
        dead = dead.select("id", "g", "v", "note").withColumn(CHANGE, F.lit("delete"))
        drawn = F.when(F.rand() < 0.025, "delete").otherwise("update")
        rows = chosen.withColumn("v", (F.rand() * 1_000_000_000).cast("int"))
        rows = rows.withColumn(CHANGE, drawn).join(dead.select("id"), "id", "left_anti")
        return rows.select("id", "g", "v", "note", CHANGE).unionByName(dead)

    def _fill(self, rows: DataFrame) -> None:
        before = create(self.uri("facts"), rows.schema, _position(0))
        laid = rows.repartitionByRange(64, self.by).sortWithinPartitions(self.by)
        laid = (
            laid if self.by == "id" else rows.repartitionByRange(64, "g").sortWithinPartitions("g")
        )
        changelog = laid.withColumn(CHANGE, F.lit("insert"))
        commit_spark(self.session, before, changelog, {"insert": self.rows}, ("id",), _position(1))

    def measure(self, kind: str, changes: int) -> Iterator[Measured]:
        """Change the input once, then bring every table up to it."""
        written = self.change(kind, changes)
        point = Measured(self.rows, self.groups, kind, changes, "input", self.merged_in, 0, written)
        yield replace(point, seconds=round(self.merged_in, 3))
        for way in VIEWS:
            seconds, jobs, reports = self._timed(lambda way=way: self.advance(way))  # type: ignore[misc]
            state, view = reports
            yield replace(
                point,
                way=way,
                seconds=seconds,
                jobs=jobs,
                written=state.rows_out + view.rows_out,
                refills=state.refills,
                strategy=state.strategy,
            )
        for way in RIVALS:
            seconds, jobs, written = self._timed(getattr(self, way))
            yield replace(point, way=way, seconds=seconds, jobs=jobs, written=written)
        self.check()

    def check(self) -> None:
        """All tables hold the same rows."""
        rows = [
            snapshot(self.session, self.uri(w), self.head(w).version) for w in (*VIEWS, "merge")
        ]
        for one in rows[:2]:
            both = one.select(rows[2].columns).exceptAll(rows[2])
            assert both.isEmpty(), "a view is not what its query gives"

    def _timed(self, work: Callable[[], Any]) -> tuple[float, int, Any]:
        jobs, began = self._jobs(), time.perf_counter()
        done = work()
        return round(time.perf_counter() - began, 3), self._jobs() - jobs, done

    def _jobs(self) -> int:
        context: Any = self.session.sparkContext
        return int(context._jsc.sc().dagScheduler().numTotalJobs())


def facts(session: SparkSession, count: int, groups: int, first: int = 0) -> DataFrame:
    """Rows that follow from their ids."""
    ids = session.range(first, first + count)
    return ids.select(
        "id",
        F.pmod(F.xxhash64("id", F.lit(1)), F.lit(groups)).cast("int").alias("g"),
        F.pmod(F.xxhash64("id", F.lit(2)), F.lit(1_000_000_000)).cast("int").alias("v"),
        F.concat(F.lit("note "), F.col("id") % 1000).alias("note"),
    )


def _position(batch: int) -> Position:
    return Position(batch, uuid.uuid4().hex, "ingest")


def show(found: list[Measured]) -> None:
    """A table: seconds of each way, and how many times faster than `merge`."""
    ways = ("input", *VIEWS, *RIVALS)
    printed = Printed(
        *("rows", "groups", "kind", "changes"), *ways, "auto x", "spark x", "strategy"
    )
    points: dict[tuple[Any, ...], dict[str, Measured]] = {}
    for one in found:
        at = (f"{one.rows:,}", f"{one.groups:,}", one.kind, f"{one.changes:,}")
        points.setdefault(at, {})[one.way] = one
    for at, by_way in points.items():
        cells = [f"{by_way[w].seconds:.2f} / {by_way[w].jobs}" for w in ways]
        faster = [f"{by_way['merge'].seconds / by_way[w].seconds:.1f}" for w in VIEWS]
        auto = by_way["auto"]
        printed.add_row(*at, *cells, *faster, f"{auto.strategy}, {auto.refills} refills")
    Console(width=160).print(printed)


def main(argv: list[str]) -> None:
    """Prints a table, and the same as a line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--changes", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--kinds", nargs="+", default=["append", "raise", "mixed"])
    parser.add_argument("--headroom", type=int)
    parser.add_argument("--layout", choices=("id", "group"), default="id")
    parser.add_argument("--lake", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(given.lake or Path(folder), given)
        try:
            bench.prepare()
            list(bench.measure("mixed", 1_000))  # warms up
            points = [(k, c) for k in given.kinds for c in given.changes]
            found = [one for kind, count in points for one in bench.measure(kind, count)]
        finally:
            bench.spark.stop()
    show(found)
    told = {"load_average": os.getloadavg()[0], "measured": [asdict(one) for one in found]}
    print(json.dumps(told))
    if given.json:
        given.json.write_text(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1:])
