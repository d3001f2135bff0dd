"""From how many rows on Spark computes a batch sooner than this process, its start included.

PYTHONPATH=tools python -m tests.benchmarks.engines [--rows 200000 2000000] [--views filter sums]

Each point is a process of its own, which computes a view for the first time over so many rows of
seven columns. `MB` is the most memory that it held, with its Java. `bytes a row`: by how much that
grows from the fewest rows to the most. `crossing`: the rows at which two lines through the first
and the last point cross, by CPU seconds; none if Spark never becomes cheaper.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from rich.console import Console
from rich.table import Table
from tests.benchmarks.bench_lake import cpu_seconds, declared

from daemons import tree
from gauge import Gauge
from sluice.changes import CHANGE
from sluice.declare.project import Project
from sluice.delta.log.position import Position
from sluice.delta.places.lake_layout import layout
from sluice.delta.writing.commit import commit_arrow, create
from sluice.engine import BatchReport
from sluice.engine.advance import Run, advance
from sluice.limits import Limits
from sluice.spark.engine import PROCESS, SPARK
from sluice.spark.session import Spark, with_spark

GROUPS, PRODUCTS = 50_000, 20_000
SALES = "id BIGINT, g BIGINT, p BIGINT, v BIGINT, d DOUBLE, w STRING, at TIMESTAMP"
TABLES = f"""
sources:
  sales: {{path: "sales/{{interval_start:%Y-%m-%d}}/", key: [id], schema: "{SALES}"}}
  products:
    path: "products/{{interval_start:%Y-%m-%d}}/"
    key: [p]
    schema: p BIGINT, name STRING
dimensions:
  names: {{path: names/, schema: "p BIGINT, name STRING", key: [p]}}
views:
  filter:
    kind: select
    from: sales
    where: v % 3 = 0
    select: {{id: id, w: upper(w), x: d * v}}
  sums:
    kind: cogroup
    key: [g]
    streams:
      s: {{from: sales, aggregates: {{n: count(*), s: sum(v), most: max(d), least: min(w)}}}}
  joined:
    kind: join
    left: sales
    right: {{table: products, as: p}}
    on: sales.p = p.p
    select: {{id: sales.id, name: p.name, v: sales.v}}
  best: {{kind: topk, from: sales, partition_by: [g], order_by: [v desc, id], limit: 5}}
  so_far:
    kind: over
    from: sales
    partition_by: [g]
    order_by: [id]
    select: {{id: id, g: g, total: sum(v) OVER (w ROWS UNBOUNDED PRECEDING), last: lag(v) OVER w}}
  distinct:
    kind: select
    from: sales
    select: {{g: g, w: w}}
    distinct: true
  lists:
    kind: cogroup
    key: [g]
    streams:
      s: {{from: sales, aggregates: {{ids: collect_set(id), ps: count(DISTINCT p)}}}}
  named:
    kind: lookup
    from: sales
    join: [{{dimension: names, on: p = names.p, type: left}}]
    select: {{id: id, v: v, name: names.name}}
  both:
    kind: union
    from: [{{table: sales}}, {{table: sales, as: again}}]
    tag: input
  steps:
    kind: window_store
    from: sales
    key: [g]
    time: at
    select: {{v: v, w: w}}
  chain:
    kind: sql
    sql: |
      SELECT p.name, count(*) AS n, sum(s.v) AS total FROM sales s JOIN products p ON s.p = p.p
      WHERE s.v % 3 = 0 GROUP BY p.name HAVING sum(s.v) > 100
"""
VIEWS = (
    *("filter", "distinct", "sums", "lists", "joined", "named", "both", "best", "so_far"),
    *("steps", "chain"),
)
ENDLESS = 2**60
HERE = replace(Limits(), computed_here_bytes=ENDLESS, held_bytes=ENDLESS)
BY_SPARK = replace(Limits(), computed_here_bytes=-1)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000, 1_000_000, 2_000_000])
    parser.add_argument("--views", nargs="+", default=VIEWS, choices=VIEWS)
    parser.add_argument("--engines", nargs="+", default=["here", "spark"])
    asked = parser.parse_args()
    points: dict[tuple[str, str], list[Point]] = {}
    table = Table("view", "rows", "engine", "seconds", "CPU s", "MB")
    for rows in sorted(asked.rows):
        with tempfile.TemporaryDirectory() as folder:
            land(project_in(Path(folder), Limits()), rows)
            for view, engine in product(asked.views, asked.engines):
                point = measure(folder, view, engine, rows)
                points.setdefault((view, engine), []).append(point)
                table.add_row(view, f"{rows:,}", engine, *point.shown)
                print(view, rows, engine, *point.shown, flush=True)
    Console().print(table, crossings(points))


@dataclass(frozen=True)
class Point:
    """What a view of so many rows took; nothing if it failed."""

    rows: int
    seconds: float
    cpu: float
    bytes: float

    @property
    def shown(self) -> tuple[str, str, str]:
        return f"{self.seconds:.1f}", f"{self.cpu:.1f}", f"{self.bytes / 1e6:,.0f}"


def crossings(points: Mapping[tuple[str, str], Sequence[Point]]) -> Table:
    """Return the memory of a row by either engine, and where their lines of CPU seconds cross."""
    table = Table("view", "bytes a row here", "by Spark", "crossing")
    for view in dict.fromkeys(view for view, _ in points):
        here, spark = (points.get((view, engine), []) for engine in ("here", "spark"))
        lines = [slope(line, "cpu") for line in (here, spark)]
        crossing = ""
        if here and spark:
            ahead = (spark[0].cpu - here[0].cpu) + here[0].rows * (lines[0] - lines[1])
            crossing = f"{ahead / (lines[0] - lines[1]):,.0f}" if lines[0] > lines[1] else "none"
        memory = [f"{slope(line, 'bytes'):,.0f}" for line in (here, spark)]
        table.add_row(view, *memory, crossing)
    return table


def slope(line: Sequence[Point], what: str) -> float:
    """Return by how much a row more raises a figure, from the first point to the last."""
    rows = line[-1].rows - line[0].rows if line else 0
    return (getattr(line[-1], what) - getattr(line[0], what)) / rows if rows else 0.0


def project_in(folder: Path, limits: Limits) -> Project:
    """Declare the sources, the dimension and the views."""
    return declared(folder, TABLES, "2g").model_copy(update={"limits": limits})


def land(project: Project, count: int) -> None:
    """Write so many sales, and the products, by a generator with a fixed seed."""
    chance = np.random.default_rng(7)
    values = chance.integers(0, 1_000_000, count)
    sales = pa.table(
        {
            "id": np.arange(count),
            "g": chance.integers(0, GROUPS, count),
            "p": chance.integers(0, PRODUCTS, count),
            "v": values,
            "d": chance.random(count),
            "w": np.char.add("w", (values % 1_000).astype(str)),
            "at": pa.array(1_700_000_000_000_000 + 1_000_000 * np.arange(count)).cast(
                pa.timestamp("us", "UTC")
            ),
        }
    )
    names = np.char.add("product ", np.arange(PRODUCTS).astype(str))
    products = pa.table({"p": np.arange(PRODUCTS), "name": names})
    for name, rows in (("sales", sales), ("products", products), ("names", products)):
        uri, schema = layout(project).uri(f"bench.{name}"), from_arrow_schema(rows.schema)
        before = create(uri, schema, Position(0, uuid.uuid4().hex, "ingest"))
        changes = rows.append_column(CHANGE, pa.array(["insert"] * rows.num_rows))
        commit_arrow(before, changes, ["id"], Position(1, uuid.uuid4().hex, "ingest"))


def measure(folder: str, view: str, engine: str, rows: int) -> Point:
    """Compute a view in a process of its own."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [
        sys.executable,
        "-c",
        f"import tests.benchmarks.engines as b; b.compute({view!r}, {engine!r})",
    ]
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.PIPE)
    with Gauge(partial(tree, psutil.Process(process.pid)), pause=0.05) as gauge:
        said, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{view} of {rows:,} rows failed: {engine}")
    taken = time.monotonic() - began
    return Point(rows, taken, float(said.decode().splitlines()[-1]), sum(gauge.peaks.values()))


def compute(view: str, engine: str) -> None:
    """Compute a view of the project in this folder as if it were new, and print the CPU seconds."""
    project = project_in(Path.cwd(), HERE if engine == "here" else BY_SPARK)
    for kept in Path(project.lake, "bench").glob(f"{view}*"):
        shutil.rmtree(kept)

    def work(spark: Spark) -> float:
        expected = PROCESS if engine == "here" else SPARK
        assert {report.engine.partition(":")[0] for report in build(spark, project, view)} == {
            expected
        }
        return cpu_seconds()

    print(f"{with_spark(project.spark, work):.2f}")


def build(spark: Spark, project: Project, view: str) -> list[BatchReport]:
    """Bring a view, and those that it is made of, up to their inputs."""
    names = (name for name in project.graph.tables if name.partition("__")[0] == f"bench.{view}")
    tables = [project.graph.table(name) for name in names]
    return [report for table in tables for report in advance(spark, project, table, Run("bench"))]


if __name__ == "__main__":
    main()
