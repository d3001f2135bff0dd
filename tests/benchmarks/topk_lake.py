"""A lake for measuring top-k views: one input, views over it, and what they are compared with.

- `auto` and `spark` are this project's view, advanced with either committer;
- `merge` ranks everything and MERGEs the difference, `overwrite` ranks everything and overwrites.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from tests.benchmarks.bench_lake import BenchLake, declared, position

from sluice.changes import CHANGE, diff
from sluice.delta.log.position import head
from sluice.delta.reading.local import to_arrow
from sluice.delta.reading.spark_reads import snapshot
from sluice.delta.writing.commit import commit_arrow
from sluice.delta.writing.merge import changelog_counts
from sluice.engine.advance import Run, advance
from sluice.limits import Limits

K = 10
VIEW = f"{{kind: topk, from: facts, partition_by: [g], order_by: [v desc], limit: {K}}}"
DECLARED = f"""
sources:
  facts:
    path: "facts/{{interval_start:%Y-%m-%d}}/"
    schema: "id BIGINT, g INT, v INT, note STRING"
    key: [id]
views:
  auto: {VIEW}
  spark: {VIEW}
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


class Bench(BenchLake):
    """The input, its views and their rivals."""

    def __init__(self, folder: Path, rows: int, groups: int, memory: str):
        self.rows, self.groups = rows, groups
        super().__init__(declared(folder, DECLARED, memory))

    def prepare(self) -> None:
        """The input, the views and the rival tables, where they are not there yet."""
        if head(self.uri("facts")) is None:
            rows = facts(self.session, self.rows, self.groups)
            self.fill("facts", rows, ("id",))
        for way in VIEWS:
            self.advance(way)
        for way in RIVALS:
            if not DeltaTable.is_deltatable(self.uri(way)):
                self.fill(way, self.ranked(), ("g", "id"))

    def advance(self, way: str) -> Any:
        settings = self.project.spark.model_copy(
            update={"commit": "spark" if way == "spark" else "auto"}
        )
        project = self.project.model_copy(update={"spark": settings})
        return advance(self.spark, project, self.project.graph.table(way), Run("bench"))

    def ranked(self) -> DataFrame:
        """The view's query over the input as it is."""
        rows = self.now("facts")
        over = Window.partitionBy("g").orderBy(F.desc_nulls_last("v"), "id")
        ranked = rows.withColumn("rank", F.row_number().over(over)).where(f"rank <= {K}")
        return ranked.select("g", "id", "v", "note", "rank")

    def merge(self) -> int:
        """Rank everything, MERGE the difference."""
        before = self.head("merge")
        old = snapshot(self.session, self.uri("merge"), before.version, Limits())
        return self.commit("merge", diff(old, self.ranked(), ("g", "id")), ("g", "id"))

    def overwrite(self) -> int:
        """Rank everything, overwrite the table."""
        self.ranked().write.format("delta").mode("overwrite").save(self.uri("overwrite"))
        return self.groups * K

    def change(self, kind: str, count: int) -> int:
        """One commit to the input, as its delivery makes it."""
        changes = self._changes(kind, count).persist()
        counts, before = changelog_counts(changes), self.head("facts")
        began = time.perf_counter()
        if sum(counts.values()) <= self.project.spark.small_changelog:
            commit_arrow(before, to_arrow(changes), ("id",), position(before.next_batch))
        else:
            self.commit("facts", changes, ("id",))
        self.merged_in = time.perf_counter() - began
        changes.unpersist()
        return sum(counts.values())

    def _changes(self, kind: str, count: int) -> DataFrame:
        now = self.now("facts")
        if kind == "append":
            first = now.agg(F.max("id")).collect()[0][0] + 1
            added = facts(self.session, count, self.groups, first)
            return added.withColumn(CHANGE, F.lit("insert"))
        chosen = now.sample(min(1.0, 1.2 * count / self.rows)).limit(count)
        return self._mixed(chosen, count)

    def _mixed(self, chosen: DataFrame, count: int) -> DataFrame:
        """Random new values; 5 % are deleted, half of them leaders."""
        first = self.now("auto").where("rank <= 2")
        dead = first.orderBy(F.rand()).limit(max(1, count // 40))
        dead = dead.select("id", "g", "v", "note").withColumn(CHANGE, F.lit("delete"))
        drawn = F.when(F.rand() < 0.025, "delete").otherwise("update")
        rows = chosen.withColumn("v", (F.rand() * 1_000_000_000).cast("int"))
        rows = rows.withColumn(CHANGE, drawn).join(dead.select("id"), "id", "left_anti")
        return rows.select("id", "g", "v", "note", CHANGE).unionByName(dead)

    def measure(self, kind: str, changes: int) -> Iterator[Measured]:
        """Change the input once, then bring every table up to it."""
        written = self.change(kind, changes)
        point = Measured(self.rows, self.groups, kind, changes, "input", self.merged_in, 0, written)
        yield replace(point, seconds=round(self.merged_in, 3))
        yield from self._views(point)
        for way in RIVALS:
            seconds, jobs, written = self._timed(getattr(self, way))
            yield replace(point, way=way, seconds=seconds, jobs=jobs, written=written)
        self.check()

    def _views(self, point: Measured) -> Iterator[Measured]:
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

    def check(self) -> None:
        """All tables hold the same rows."""
        rows = [self.now(way) for way in (*VIEWS, "merge")]
        count = rows[2].count()
        for one in rows[:2]:
            others = one.select(rows[2].columns).exceptAll(rows[2])
            assert one.count() == count, "a view has more or fewer rows than its query gives"
            assert others.isEmpty(), "a view is not what its query gives"

    def _timed(self, work: Callable[[], Any]) -> tuple[float, int, Any]:
        jobs, began = self.jobs(), time.perf_counter()
        done = work()
        return round(time.perf_counter() - began, 3), self.jobs() - jobs, done


def facts(session: SparkSession, count: int, groups: int, first: int = 0) -> DataFrame:
    """Rows that follow from their ids."""
    ids = session.range(first, first + count)
    return ids.select(
        "id",
        F.pmod(F.xxhash64("id", F.lit(1)), F.lit(groups)).cast("int").alias("g"),
        F.pmod(F.xxhash64("id", F.lit(2)), F.lit(1_000_000_000)).cast("int").alias("v"),
        F.concat(F.lit("note "), F.col("id") % 1000).alias("note"),
    )
