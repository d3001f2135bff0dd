"""Many rows that are ranked in one batch, top 5: what a view takes for its first batch.

The rows lie in Delta tables and are only added; beside the ranking alone, rows summed by key and
then ranked by their sums. Times are of a warm session, from the plan to the commit of every table.
"""

import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.bench_lake import declared
from tests.benchmarks.topk_lake import Measured, Options, facts, filled

from sluice.declare.project import Project
from sluice.engine.advance import Run, advance
from sluice.spark.session import Spark

DECLARED = """
sources:
  facts:
    path: "facts/{interval_start:%Y-%m-%d}/"
    schema: "id BIGINT, g INT, v INT, note STRING"
    key: [id]
views:
  warm: &ranked {kind: topk, from: facts, partition_by: [g], order_by: [v desc], limit: 5}
  ranked: *ranked
  sums:
    kind: cogroup
    key: [g, item]
    streams:
      rows: {from: facts, key: [g, id % 1000], aggregates: {total: sum(v)}}
  ranked_sums: {kind: topk, from: sums, partition_by: [g], order_by: [total desc], limit: 5}
"""
TIMED = {"ranked": ("ranked",), "summed, then ranked": ("sums", "ranked_sums")}


def ranked_at_once(folder: Path, rows: int, groups: int, options: Options) -> Iterator[Measured]:
    """The ranking of so many rows, and that of their sums."""
    project = declared(folder / f"backlog-{rows}-{groups}", DECLARED, options.memory)
    spark = Spark(project.spark)
    try:
        session = spark.tune(small=False)
        filled(session, project, facts(session, rows, groups), rows, ("id",))
        _advance(spark, project, "warm")
        for kind, views in TIMED.items():
            began = time.perf_counter()
            written = sum(_advance(spark, project, view) for view in views)
            seconds = round(time.perf_counter() - began, 3)
            yield Measured(rows, groups, f"backlog, {kind}", rows, "auto", seconds, 0, written)
    finally:
        spark.stop()


def _advance(spark: Spark, project: Project, name: str) -> int:
    reports = advance(spark, project, project.graph.table(name), Run("bench"))
    return reports[-1].rows_out
