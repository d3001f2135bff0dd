"""The services of a deployment, natively: PostgreSQL, LocalExecutor, a cluster of two workers.

One of the workers is lost while a run is under way.
"""

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.java import LEAN

from airflow_client import AirflowClient
from daemons import Daemons
from postgres import Postgres, programs
from sluice.read.lake import Lake
from spark_cluster import Cluster
from stack import ROOT, Ports, Stack

from .live.corner import CORNER, DAYS, SALES, await_run, log_of, sell, states

SETTINGS = """
lake: ${SLUICE_LAKE:-lake}
spark:
  engine: submit
  master: ${SLUICE_MASTER}
  commit: spark
  conf:
    spark.driver.host: 127.0.0.1
    spark.driver.bindAddress: 127.0.0.1
    spark.driver.memory: 1g
    spark.executor.memory: 512m
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(programs() is None, reason="there is no PostgreSQL on this machine"),
]


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that PostgreSQL's user may enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-topology-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def cluster(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    for name, value in LEAN.items():  # its executors live as briefly as their applications
        monkeypatch.setenv(name, value)
    daemons = Daemons(home / "cluster")
    try:
        cluster = Cluster(daemons)
        cluster.start(workers=2)
        yield cluster
    finally:
        daemons.stop()


@pytest.fixture
def database(home: Path, cluster: Cluster) -> Postgres:
    folder = programs()
    assert folder is not None
    postgres = Postgres(home / "postgres", folder)
    postgres.start(cluster.daemons)
    return postgres


@pytest.fixture
def stack(home: Path, cluster: Cluster, database: Postgres) -> Iterator[Stack]:
    for name in ("dags", "jobs"):
        shutil.copytree(ROOT / name, home / name)
    (home / "config/pipelines").mkdir(parents=True)
    (home / "config/sluice.yaml").write_text(SETTINGS, "utf-8")
    pipeline = CORNER[: CORNER.index("  best:")]  # what is lost is lost from a view like any other
    pipeline = pipeline.replace("catchup: true", "catchup: false")
    pipeline = pipeline.replace("deadline: 1 second, ", "")
    (home / "config/pipelines/corner.yaml").write_text(pipeline, "utf-8")
    for day in DAYS[:2]:
        sell(home / "landing", day, SALES[day])
    variables = {
        "SLUICE_MASTER": cluster.url,
        "SLUICE_LANDING": str(home / "landing"),
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database.address,
        **LEAN,
    }
    stack = Stack(home / "airflow", "submit", Ports.free(), root=home, variables=variables)
    with stack.running():
        yield stack


def test_a_run_that_loses_a_worker_ends_with_the_same_tables(
    stack: Stack, cluster: Cluster
) -> None:
    client = stack.airflow.client()
    client.await_dag("corner")
    client.unpause("corner")
    run = client.trigger("corner", start=DAYS[0], end=DAYS[2])
    await_executors(cluster, client, run)
    cluster.kill_worker(0)
    ended = await_run(client, "corner", run, patience=900)
    failed = [task for task, state in states(client, "corner", run).items() if state == "failed"]
    assert ended == "success", log_of(client, "corner", run, failed[0])
    assert "spark-worker-0" not in cluster.daemons.running()
    paid: Counter[str] = Counter()
    for _, item, price, _ in latest().values():
        paid[item] += price
    rows = Lake(stack.project).table("items").read()
    assert {row["item"]: row["paid"] for row in rows} == dict(paid)


def await_executors(cluster: Cluster, client: AirflowClient, run: str) -> None:
    """Returns when both workers run an executor of the run's first application."""
    folders = [cluster.daemons.folder / f"spark-worker-{nth}" for nth in (0, 1)]
    deadline = time.monotonic() + 300
    while not all(list(folder.glob("app-*/*")) for folder in folders):
        assert time.monotonic() < deadline, states(client, "corner", run)
        time.sleep(0.1)


def latest() -> dict[int, tuple[int, str, int, int]]:
    """The sale of each number that was said last in the two days."""
    said = (sale for day in DAYS[:2] for sale in SALES[day])
    return {sale[0]: sale for sale in sorted(said, key=lambda sale: sale[3])}
