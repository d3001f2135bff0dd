"""A deployment's database and executor, natively: PostgreSQL and LocalExecutor.

The cluster of a deployment, and the loss of a worker, are tested in `stores/test_cluster`.
"""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemons import Daemons
from postgres import Postgres, programs
from sluice.read.lake import Lake
from stack import ROOT, Ports, Stack

from .live.corner import CALM, CORNER, DAYS, SALES, await_run, log_of, sell, states

SETTINGS = """
lake: ${SLUICE_LAKE:-lake}
spark: {engine: submit}
"""
pytestmark = [
    pytest.mark.timeout(600),
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
def daemons(home: Path) -> Iterator[Daemons]:
    daemons = Daemons(home / "postgresql")
    try:
        yield daemons
    finally:
        daemons.stop()


@pytest.fixture
def database(home: Path, daemons: Daemons) -> Postgres:
    folder = programs()
    assert folder is not None
    postgres = Postgres(home / "postgres", folder)
    postgres.start(daemons)
    return postgres


@pytest.fixture
def stack(home: Path, database: Postgres) -> Iterator[Stack]:
    for name in ("dags", "jobs"):
        shutil.copytree(ROOT / name, home / name)
    (home / "config/pipelines").mkdir(parents=True)
    (home / "config/sluice.yaml").write_text(SETTINGS, "utf-8")
    pipeline = CORNER[: CORNER.index("  best:")]
    pipeline = pipeline.replace("catchup: true", "catchup: false")
    pipeline = pipeline.replace("deadline: 1 second, ", "")
    (home / "config/pipelines/corner.yaml").write_text(pipeline, "utf-8")
    for day in DAYS[:2]:
        sell(home / "landing", day, SALES[day])
    variables = {
        "SLUICE_LANDING": str(home / "landing"),
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database.address,
        **CALM,
    }
    stack = Stack(home / "airflow", "submit", Ports.free(), root=home, variables=variables)
    with stack.running():
        yield stack


def test_a_run_by_local_executor_and_postgresql_ends_with_the_right_tables(stack: Stack) -> None:
    client = stack.airflow.client()
    client.await_dag("corner")
    client.unpause("corner")
    run = client.trigger("corner", start=DAYS[0], end=DAYS[2])
    ended = await_run(client, "corner", run, patience=400)
    failed = [task for task, state in states(client, "corner", run).items() if state == "failed"]
    assert ended == "success", log_of(client, "corner", run, failed[0])
    paid: Counter[str] = Counter()
    for _, item, price, _ in latest().values():
        paid[item] += price
    rows = Lake(stack.project).table("items").read()
    assert {row["item"]: row["paid"] for row in rows} == dict(paid)


def latest() -> dict[int, tuple[int, str, int, int]]:
    """The sale of each number that was said last in the two days."""
    said = (sale for day in DAYS[:2] for sale in SALES[day])
    return {sale[0]: sale for sale in sorted(said, key=lambda sale: sale[3])}
