"""A developer's own Airflow with `SLUICE_ENV`: its runs change the environment, not the lake."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.java import LEAN

from airflow_local import AIRFLOW
from sluice.declare.project import load
from sluice.read.lake import Lake
from stack import ROOT, Ports, Stack

from .live.corner import CORNER, DAYS, SALES, contents, sell, sluice

# `dags test` of Airflow 3.3 fails after a DAG with a deadline.
PLAIN = CORNER.replace(', deadline: 1 second, webhook: "${SLUICE_WEBHOOK:-}"', "")
pytestmark = pytest.mark.usefixtures("long")


@pytest.fixture
def dev(tmp_path: Path) -> Stack:
    """A lake with two days, its environment, and an Airflow of another definition for that."""
    shutil.copytree(ROOT / "dags", tmp_path / "dags")
    pipelines = tmp_path / "config" / "pipelines"
    pipelines.mkdir(parents=True)
    (pipelines.parent / "sluice.yaml").write_text("lake: lake\n", "utf-8")
    (pipelines / "corner.yaml").write_text(PLAIN, "utf-8")
    for day in DAYS[:3]:
        sell(tmp_path / "landing", day, SALES[day])
    variables = LEAN | {"SLUICE_LANDING": str(tmp_path / "landing"), "SLUICE_ENV": "dev"}
    stack = Stack(tmp_path / "airflow", "submit", Ports.free(), root=tmp_path, variables=variables)
    plain = {"SLUICE_ENV": "", "SPARK_REMOTE": ""}
    sluice(stack, "run", "corner", "--start", DAYS[0], "--end", DAYS[2], **plain)
    sluice(stack, "env", "create", "dev", **plain)
    (pipelines / "corner.yaml").write_text(PLAIN.replace("limit: 2", "limit: 1"), "utf-8")
    stack.airflow.prepare()
    return stack


def test_a_dag_rebuilds_and_delivers_in_the_environment_alone(dev: Stack) -> None:
    base = Lake(load(dev.root / "config", environ={}))
    before = contents(base)
    environ = {**dev.airflow.environ(), "SPARK_REMOTE": ""}
    command = [*AIRFLOW, "dags", "test", "corner", DAYS[3]]
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert contents(base) == before
    there = Lake(dev.project)
    assert [row["rank"] for row in there.table("best").read()] == [1]
    assert there.table("sales").get(5)["paid"] == 5  # type: ignore[index]
    assert base.table("sales").get(5) is None
