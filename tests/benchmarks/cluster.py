"""A Spark cluster of a master and two workers that has its lake and its deliveries in a store only.

PYTHONPATH=tools python -m tests.benchmarks.cluster [--days 31] [--rows 20000000]
    [--groups 100000] [--batch 2000000] [--json FILE]

Workers are processes with a core, memory and scratch folders of their own; the store is SeaweedFS.
First the demo's month: its deliveries, then its views, each in one batch. As soon as both workers
are in a batch one of them is killed, and another one comes. Digests of all tables are compared with
those of one process on a disk. Then so many rows are delivered to a source, of which a cogroup and
a top-k are built, and another batch follows. Both views are compared with DuckDB's answers from the
same files. With `--days 0` or `--rows 0` that part is left out.

Printed for each step: its seconds, the sums of Spark's tasks (see `event_log`), and the requests
that the store has answered.
"""

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch
from urllib.request import urlopen

import duckdb
import pyarrow.dataset as ds
from rich.console import Console
from rich.table import Table as Printed
from tests.benchmarks import event_log
from tests.benchmarks.event_log import Tasks
from tests.benchmarks.topk_lake import facts
from tests.support.stores import METRICS, Store, running, using

import landing
from daemons import Daemons
from sluice.declare.filesystems import locate
from sluice.declare.project import Project, load
from sluice.engine.advance import Run, advance
from sluice.language.interval import Interval, parse_time
from sluice.limits import Limits
from sluice.operate import run as rounds
from sluice.operate.run import deliver, run
from sluice.read.lake import Lake
from sluice.spark.session import Spark
from spark_cluster import Cluster
from stack import ROOT

FIRST = date(2017, 5, 1)
MONTH = replace(Limits(), computed_here_bytes=1_000_000, few_tasks_bytes=250_000)
NO_KEYS = {"AWS_ACCESS_KEY_ID": "unknown", "AWS_SECRET_ACCESS_KEY": "unknown"}
MEMORY = {"spark.executor.memory": "2g", "spark.driver.memory": "2g"}
ADDRESS = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
BENCH = """
pipeline: bench
schedule: "@daily"
start_date: 2024-01-01
sources:
  facts:
    path: "{place}/facts/{{interval_start:%Y-%m-%d}}/"
    format: parquet
    schema: "id BIGINT, g INT, v INT, note STRING"
views:
  totals:
    kind: cogroup
    key: [g]
    streams: {{facts: {{from: facts, aggregates: {{n: count(*), v: sum(v), mean: avg(v)}}}}}}
  best: {{kind: topk, from: facts, partition_by: [g], order_by: [v desc, id], limit: 10}}
"""
DAYS = [Interval.parse(f"2024-01-0{day}", f"2024-01-0{day + 1}") for day in (1, 2)]
CHECKED = {
    "totals": "SELECT count(*), sum(n), sum(v) FROM {}",
    "best": "SELECT count(*), sum(id), sum(v) FROM {}",
}
ASKED = {
    "totals": "SELECT g, count(*) AS n, sum(v) AS v FROM facts GROUP BY g",
    "best": "SELECT * FROM facts "
    "QUALIFY row_number() OVER (PARTITION BY g ORDER BY v DESC, id) <= 10",
}


@dataclass(frozen=True)
class Measured:
    """One step on the cluster."""

    step: str
    seconds: float
    requests: int
    tasks: Tasks


@dataclass(frozen=True)
class Bench:
    """The cluster and the store, and an empty place in it."""

    folder: Path
    store: Store
    cluster: Cluster
    place: str

    @property
    def uri(self) -> str:
        return self.store.uri(self.place)

    @property
    def events(self) -> Path:
        return self.folder / "events"

    @contextmanager
    def spark(self, project: Project) -> Iterator[Spark]:
        """The project's Spark, whose driver is this process."""
        with using({**os.environ, **self.store.environ()}):
            found = Spark(project.spark)
            try:
                yield found
            finally:
                found.stop()

    def project(self, config: Path, **fields: Any) -> Project:
        """A project with its lake in the store and its batches on the cluster."""
        places = {name: f"{self.uri}/{name}" for name in ("lake", "landing")}
        chosen = {f"SLUICE_{name.upper()}": place for name, place in places.items()}
        chosen |= {"SLUICE_MASTER": self.cluster.url, "SLUICE_REPORTS": str(self.folder / "pages")}
        with using({**os.environ, **self.store.environ(), **chosen}):
            project = load(config)
        conf = {**MEMORY, **ADDRESS, **event_log.conf(self.events)}
        spark = project.spark.model_copy(update={"conf": conf})
        return project.model_copy(update={"spark": spark, **fields})

    def measured(self, step: str, work: Callable[[], object]) -> Measured:
        asked, began = self.requests(), time.time()
        work()
        ended = time.time()
        time.sleep(2)  # the log is written behind
        tasks = event_log.between(self.events, began, ended)
        return Measured(step, round(ended - began, 1), self.requests() - asked, tasks)

    def requests(self) -> int:
        """Requests that the store has answered so far."""
        with urlopen(f"http://127.0.0.1:{self.store.ports[METRICS]}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        counted = (line for line in lines if line.startswith("SeaweedFS_s3_request_total{"))
        return sum(int(float(line.rpartition(" ")[2])) for line in counted)


@contextmanager
def begun(folder: Path) -> Iterator[Bench]:
    """Start the store, the master and two workers."""
    daemons = Daemons(folder / "cluster")
    cluster = Cluster(daemons, memory="2g", extra=NO_KEYS)
    with running() as store:
        try:
            cluster.start(workers=2)
            yield Bench(folder, store, cluster, store.place())
        finally:
            daemons.stop()


def month(bench: Bench, days: int) -> Iterator[Measured]:
    """Bring the demo's days up on the cluster, which loses a worker, and compare the tables."""
    end = FIRST + timedelta(days=days)
    landing.split(bench.folder / "landing", FIRST, end)
    bench.store.copy(bench.folder / "landing", f"{bench.place}/landing")
    edges = [parse_time(str(day), "UTC") for day in landing.days(FIRST, end + timedelta(days=1))]
    intervals = [Interval(*pair) for pair in pairwise(edges)]
    names = ("lake", "landing")
    with using({f"SLUICE_{name.upper()}": str(bench.folder / name) for name in names}):
        one = load(ROOT / "config")
    run(Spark(one.spark), one, one.pipelines["retail"], intervals)
    there = bench.project(ROOT / "config", limits=MONTH)
    # Views follow once, with all of it, on the cluster; days are delivered without Spark.
    with patch.object(rounds, "ROUND_INTERVALS", days), bench.spark(there) as spark:
        loss = Loss(bench.cluster, spark)
        yield bench.measured(
            f"the demo's {days} days",
            lambda: run(spark, there, there.pipelines["retail"], intervals),
        )
        loss.check()
        tables = [table.id for table in one.graph.tables.values() if table.is_stored]
        for name in tables:
            assert digest(there, name) == digest(one, name), f"{name} differs"
    print(f"{len(tables)} tables equal those of one process on a disk")


class Loss:
    """Kills a worker while both are in one batch, and adds another one."""

    def __init__(self, cluster: Cluster, spark: Spark):
        self.cluster = cluster
        self.tracker = spark.session.sparkContext.statusTracker()
        self.thread = Thread(target=self._replace, daemon=True)
        self.thread.start()

    def check(self) -> None:
        """A worker was lost, and the one that came had work."""
        assert not self.thread.is_alive(), "no batch was large enough to lose a worker in"
        assert list(self.cluster.folder(2).glob("app-*/*")), "the added worker had nothing to do"

    def _replace(self) -> None:
        while not any(map(self._is_shared, self.tracker.getActiveStageIds())):
            time.sleep(0.05)
        self.cluster.kill_worker(0)
        self.cluster.add_workers([2])

    def _is_shared(self, stage: int) -> bool:
        info = self.tracker.getStageInfo(stage)
        return bool(info and info.numActiveTasks > 1)


def digest(project: Project, table: str) -> str:
    """Return a text that stands for all rows of a table, in any order."""
    rows = sorted(str(sorted(row.items())) for row in Lake(project).table(table).read())
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def many(bench: Bench, given: argparse.Namespace) -> Iterator[Measured]:
    """Deliver rows, build both views, and bring them up to another delivery."""
    pipelines = bench.folder / "config" / "pipelines"
    pipelines.mkdir(parents=True)
    (pipelines / "bench.yaml").write_text(BENCH.format(place=bench.uri))
    shutil.copy(ROOT / "config" / "sluice.yaml", pipelines.parent)
    project = bench.project(pipelines.parent)
    tables = project.graph.tables
    with bench.spark(project) as spark:
        first = 0
        for day, count in zip(DAYS, (given.rows, given.batch), strict=True):
            rows = facts(spark.tune(small=False), count, given.groups, first)
            rows.write.parquet(f"{bench.uri}/facts/{day.start:%Y-%m-%d}")
            first += count
            what = f"{count:,} rows"
            yield bench.measured(
                f"delivery of {what}",
                lambda day=day: tuple(
                    deliver(spark, project, tables["bench.facts"], Run("bench"), [day])
                ),
            )
            for name in ASKED:
                yield bench.measured(
                    f"{name} after {what}",
                    lambda name=name: advance(spark, project, tables[f"bench.{name}"], Run("b")),
                )
        check(bench, project)


def check(bench: Bench, project: Project) -> None:
    """Compare both views with DuckDB's answers."""
    files, path = locate(f"{bench.uri}/facts")
    landed = ds.dataset(path, filesystem=files)  # noqa: F841 - DuckDB finds it by its name
    with duckdb.connect() as database:
        database.execute("CREATE TABLE facts AS SELECT id, g, v FROM landed")
        for name, summed in CHECKED.items():
            found = Lake(project).table(f"bench.{name}").read().to_arrow()  # noqa: F841
            expected = database.sql(summed.format(f"({ASKED[name]})")).fetchall()
            assert database.sql(summed.format("found")).fetchall() == expected, name


def parts(bench: Bench, given: argparse.Namespace) -> Iterator[Measured]:
    """Measure what was asked for."""
    if given.days:
        yield from month(bench, given.days)
    if given.rows:
        yield from many(bench, given)


def show(found: list[Measured]) -> None:
    """Print a table."""
    names = ("step", "s", "requests", "tasks", "failed", "CPU s", "to the driver MB")
    printed = Printed(*names, "at most of a stage", "shuffled MB", "spilled MB", "skew")
    for one in found:
        cells = (one.step, one.seconds, one.requests, *asdict(one.tasks).values())
        printed.add_row(*map(str, cells))
    Console(width=160).print(printed)


def main(argv: list[str]) -> None:
    """Prints a table, and the same as a line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--days", type=int, default=31)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=2_000_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(argv)
    found = list[Measured]()
    with tempfile.TemporaryDirectory() as folder, begun(Path(folder)) as bench:
        for one in parts(bench, given):
            print(json.dumps(asdict(one)), flush=True)
            found.append(one)
    show(found)
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in found]))


if __name__ == "__main__":
    main(sys.argv[1:])
