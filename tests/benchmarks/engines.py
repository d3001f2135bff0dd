"""From how many rows on Spark computes a batch sooner than this process, its start included.

PYTHONPATH=tools python -m tests.benchmarks.engines [--rows 200000 2000000] [--views filter sums]

Each point is a process of its own, which computes a view for the first time over so many rows of
six columns. `MB` is the most memory that it held, with its Java.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from rich.console import Console
from rich.table import Table
from tests.benchmarks.bench_lake import declared

from daemons import tree
from gauge import Gauge
from sluice.changes.diff import CHANGE
from sluice.declare.project import Project
from sluice.delta.log.position import Position
from sluice.delta.places.lake_layout import layout
from sluice.delta.reading.spark_reads import create
from sluice.delta.writing.commit import commit_arrow
from sluice.engine.advance import Run, advance
from sluice.limits import Limits
from sluice.spark.session import with_spark

GROUPS, PRODUCTS = 50_000, 20_000
SALES = "id BIGINT, g BIGINT, p BIGINT, v BIGINT, d DOUBLE, w STRING"
TABLES = f"""
sources:
  sales: {{path: "sales/{{interval_start:%Y-%m-%d}}/", key: [id], schema: "{SALES}"}}
  products:
    path: "products/{{interval_start:%Y-%m-%d}}/"
    key: [p]
    schema: p BIGINT, name STRING
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
"""
VIEWS = ("filter", "sums", "joined", "best", "so_far")
ENDLESS = 2**60
HERE = replace(
    Limits(), computed_here_bytes=ENDLESS, interpreted_rows=ENDLESS, narrowed_bytes=ENDLESS
)
BY_SPARK = replace(Limits(), computed_here_bytes=-1)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000, 1_000_000, 2_000_000])
    parser.add_argument("--views", nargs="+", default=VIEWS, choices=VIEWS)
    parser.add_argument("--engines", nargs="+", default=["here", "spark"])
    asked = parser.parse_args()
    table = Table("view", "rows", "engine", "seconds", "MB")
    for rows in asked.rows:
        with tempfile.TemporaryDirectory() as folder:
            land(Path(folder), rows)
            for view in asked.views:
                for engine in asked.engines:
                    table.add_row(view, f"{rows:,}", engine, *measure(folder, view, engine))
    Console().print(table)


def project_in(folder: Path, limits: Limits) -> Project:
    return declared(folder, TABLES, "2g").model_copy(update={"limits": limits})


def land(folder: Path, count: int) -> None:
    """Write both sources, by a generator with a fixed seed."""
    chance, project = np.random.default_rng(7), project_in(folder, Limits())
    values = chance.integers(0, 1_000_000, count)
    sales = pa.table(
        {
            "id": np.arange(count),
            "g": chance.integers(0, GROUPS, count),
            "p": chance.integers(0, PRODUCTS, count),
            "v": values,
            "d": chance.random(count),
            "w": np.char.add("w", (values % 1_000).astype(str)),
        }
    )
    names = np.char.add("product ", np.arange(PRODUCTS).astype(str))
    products = pa.table({"p": np.arange(PRODUCTS), "name": names})
    for name, rows in (("sales", sales), ("products", products)):
        uri, schema = layout(project).uri(f"bench.{name}"), from_arrow_schema(rows.schema)
        before = create(uri, schema, Position(0, uuid.uuid4().hex, "ingest"))
        changes = rows.append_column(CHANGE, pa.array(["insert"] * rows.num_rows))
        commit_arrow(before, changes, ["id"], Position(1, uuid.uuid4().hex, "ingest"))


def measure(folder: str, view: str, engine: str) -> tuple[str, str]:
    """Compute a view in a process of its own; return its seconds and MB."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [
        sys.executable,
        "-c",
        f"import tests.benchmarks.engines as b; b.compute({view!r}, {engine!r})",
    ]
    process = subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.PIPE)
    with Gauge(partial(tree, psutil.Process(process.pid)), pause=0.05) as gauge:
        said, _ = process.communicate()
    if process.returncode:
        return "failed", ""
    return said.decode().splitlines()[-1], f"{sum(gauge.peaks.values()) / 1e6:,.0f}"


def compute(view: str, engine: str) -> None:
    """Compute a view of the project in this folder as if it were new, and print the seconds."""
    project = project_in(Path.cwd(), HERE if engine == "here" else BY_SPARK)
    for kept in Path(project.lake, "bench").glob(f"{view}*"):
        shutil.rmtree(kept)
    began = time.monotonic()

    def work(spark: object) -> None:
        advance(spark, project, project.graph.table(f"bench.{view}"), Run("bench"))  # type: ignore[arg-type]

    with_spark(project.spark, work)
    print(f"{time.monotonic() - began:.1f}")


if __name__ == "__main__":
    main()
