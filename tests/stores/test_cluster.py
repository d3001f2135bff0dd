"""A cluster that shares no disk with the driver: lake and landing folder lie in a store only.

Workers are processes behind a wall: the project, its modules, Sluice itself, all jars and the
driver's temporary files are empty folders to them. They read the store by what the driver sends.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest
from tests.stores.retail import delivered, project_here
from tests.support.java import LEAN
from tests.support.stores import Store, using

import landing
from daemons import Daemons
from ports import free_port
from sluice.declare.project import Project, load
from sluice.read.lake import Lake
from spark_cluster import Cluster, walled
from spark_connect import server
from stack import ROOT

FIRST, END = date(2017, 5, 8), date(2017, 5, 9)
SPARK = """
  small_batches: spark
  conf:
    spark.driver.host: 127.0.0.1
    spark.driver.bindAddress: 127.0.0.1
    spark.executor.memory: 512m
    spark.sql.shuffle.partitions: "2"
modules: [shop.sums]
"""
OWN = """
pipeline: own
schedule: assets
views:
  squares:
    kind: cogroup
    key: [department]
    streams:
      lines: {from: retail.invoices, aggregates: {n: "shop.sums:Squares(quantity)"}}
"""
SQUARES = """
from shop import powers
from shop.powers import square

class Squares:
    state = "BIGINT"
    type = "BIGINT"

    def initialize(self):
        return 0

    def add(self, state, values):
        return state + sum(square(value) * powers.square(1) for value in values.to_pylist())

    def merge(self, a, b):
        return a + b

    def result(self, state):
        return state
"""
NO_KEYS = {"AWS_ACCESS_KEY_ID": "unknown", "AWS_SECRET_ACCESS_KEY": "unknown"}
HIDDEN = [ROOT / name for name in ("libs", "config", "tests", "tools", ".cache/jars")]


def can_hide() -> bool:
    done = subprocess.run(
        [*walled(), "/", "true"], env={"HIDDEN": "/mnt"}, capture_output=True, check=False
    )
    return done.returncode == 0


pytestmark = [
    pytest.mark.skipif(not can_hide(), reason="this user may not hide folders from a process")
]


@dataclass
class Driver:
    """The only machine that has the project; its lake is at a place in the store."""

    folder: Path
    cluster: Cluster
    store: Store
    place: str

    @property
    def environ(self) -> dict[str, str]:
        return {
            **os.environ,
            **LEAN,
            "SLUICE_CONFIG": str(self.folder / "config"),
            "SLUICE_LAKE": f"s3://{self.place}/lake",
            "SLUICE_LANDING": f"s3://{self.place}/landing",
            "SLUICE_MASTER": self.cluster.url,
            "PYTHONPATH": f"{self.folder / 'modules'}",
            "TMPDIR": str(self.folder / "tmp"),
        }

    @property
    def project(self) -> Project:
        with using(self.environ):
            return load(self.folder / "config")

    def command(self, *words: str, **variables: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "sluice.cli.main", *words],
            env={**self.environ, **variables},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="sluice-cluster-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def driver(home: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    for name, value in LEAN.items():
        monkeypatch.setenv(name, value)
    folder = home / "driver"
    for name in ("tmp", "modules/shop"):
        (folder / name).mkdir(parents=True)
    shutil.copytree(ROOT / "config", folder / "config")
    settings = folder / "config" / "sluice.yaml"
    settings.write_text(settings.read_text() + SPARK)
    (folder / "config/pipelines/own.yaml").write_text(OWN)
    (folder / "modules/shop/sums.py").write_text(SQUARES)
    (folder / "modules/shop/powers.py").write_text("def square(n):\n    return n * n\n")
    daemons = Daemons(home / "cluster")
    cluster = Cluster(daemons, extra=NO_KEYS, hidden=[*HIDDEN, folder])
    driver = Driver(folder, cluster, store, store.place())
    landing.split(home / "landing", FIRST, END)
    store.copy(home / "landing", f"{driver.place}/landing")
    try:
        cluster.start(workers=2)
        yield driver
    finally:
        daemons.stop()


def test_clusters_on_a_store_keep_the_tables_of_one_machine(driver: Driver, home: Path) -> None:
    """By Connect, where a worker is lost and another one comes; then by submit."""
    daemons, cluster = driver.cluster.daemons, driver.cluster
    check_wall(cluster)
    port = free_port()
    connect = server(driver.project, port, driver.environ)
    daemons.start(connect)
    daemons.wait(connect)
    words = ("run", "retail", f"--start={FIRST}", f"--end={END}")
    run = driver.command(*words, SPARK_REMOTE=f"sc://127.0.0.1:{port}")
    await_commit(driver, "transactions", run)
    cluster.kill_worker(0)
    cluster.add_workers([2])
    succeed(run)
    assert list(cluster.folder(2).glob("app-*/*")), "the added worker had nothing to do"
    server_ = daemons.running()["spark-connect"]
    server_.terminate()  # it holds all cores of the cluster
    server_.wait()
    succeed(driver.command("run", "own"))
    check_tables(driver, home)


def check_wall(cluster: Cluster) -> None:
    """What is hidden is there, and the workers don't see it."""
    root = f"/proc/{cluster.daemons.running()['spark-worker-0'].pid}/root"
    for hidden in cluster.hidden:
        assert list(hidden.iterdir())
        assert not list(Path(f"{root}{hidden}").iterdir())


def await_commit(driver: Driver, table: str, run: "subprocess.Popen[str]") -> None:
    """Return when a table has rows."""
    log = f"{driver.place}/lake/retail/{table}/_delta_log"
    while sum(name.endswith(".json") for name in driver.store.names(log)) < 2:
        assert run.poll() is None, run.communicate()[0]
        time.sleep(0.2)


def succeed(run: "subprocess.Popen[str]") -> None:
    said, _ = run.communicate()
    assert run.returncode == 0, said


def check_tables(driver: Driver, home: Path) -> None:
    """All tables equal those that this process has computed on a disk."""
    folders = {"SLUICE_LAKE": str(home / "lake"), "SLUICE_LANDING": str(home / "landing")}
    with using({**driver.store.environ(), **folders}):
        one = project_here()
        delivered(one, FIRST, END)
    there = driver.project
    names = [t.id for t in one.graph.tables.values() if t.is_stored]
    assert len(names) > 15
    for name in names:
        assert rows(there, name) == rows(one, name), name
    squares: Counter[str] = Counter()
    for row in Lake(one).table("retail.invoices").read():
        squares[row["department"]] += row["quantity"] ** 2
    found = Lake(there).table("own.squares").read()
    assert {row["department"]: row["n"] for row in found} == squares


def rows(project: Project, name: str) -> Counter[str]:
    return Counter(str(sorted(row.items())) for row in Lake(project).table(name).read())
