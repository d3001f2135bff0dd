"""The wheel alone, in an empty environment: small tables need neither Spark nor Airflow there."""

import json
from pathlib import Path

import pytest
from tests.support.tasks import context
from tests.support.wheel import run, virtualenv

from sluice.airflow.blueprint import Task, TaskKind
from sluice.airflow.tasks import SeparateJob
from sluice.language.interval import Interval
from sluice.read.lake import open_lake

from .conftest import SHOP, Configured

SALES = "id,at,item\n1,2024-01-01 10:00:00,tea\n2,2024-01-02 11:00:00,rye\n"
MORE = "3,2024-01-02 12:00:00,oat\nx,2024-01-02 13:00:00,ham\n4,2024-01-02 14:00:00\n"
EXPECTED = """\
    expect:
      - {type: expect_column_values_to_not_be_null, column: item}
"""


@pytest.fixture(scope="module")
def sluice(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The command, installed with its own requirements and nothing else."""
    return str(virtualenv(tmp_path_factory.mktemp("home")) / "sluice")


@pytest.mark.usefixtures("long")
def test_small_projects_run_and_name_what_to_install(tmp_path: Path, sluice: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sales.csv").write_text(SALES, "utf-8")
    run(sluice, "init", "--from", "data/*.csv", cwd=tmp_path)
    (pipeline,) = (tmp_path / "config" / "pipelines").glob("*.yaml")
    for command in ("validate", "plan", "status", "doctor"):
        run(sluice, command, cwd=tmp_path)
    run(sluice, "run", pipeline.stem, cwd=tmp_path)
    assert "rye" in run(sluice, "read", "newest_sales", cwd=tmp_path)
    run(sluice, "verify", cwd=tmp_path)
    with pipeline.open("a", encoding="utf-8") as file:
        file.write(EXPECTED)
    (warning,) = run(sluice, "validate", cwd=tmp_path).splitlines()[1:]
    assert warning == (
        f"warning: the expectations of {pipeline.stem}.newest_sales were not checked, and a run "
        "stops at these tables: Great Expectations is not installed; "
        "run: pip install 'sluice-views[quality]'"
    )
    (tmp_path / "data" / "sales.csv").write_text(SALES + MORE, "utf-8")
    said = run(sluice, "run", pipeline.stem, "--changed", cwd=tmp_path, code=2)
    assert "pip install 'sluice-views[quality]'" in said
    assert "oat" in run(sluice, "read", "sales", cwd=tmp_path)
    broken = run(sluice, "read", "sales__quarantine", "--format", "csv", cwd=tmp_path)
    assert "column id: x is not a valid BIGINT" in broken
    assert "does not parse as 3 values" in broken


@pytest.mark.usefixtures("long")
def test_a_task_of_airflow_runs_its_job_in_an_environment_without_airflow(
    tmp_path: Path, sluice: str, configured: Configured
) -> None:
    python = str(Path(sluice).with_name("python"))
    run(python, "-c", "import airflow", cwd=tmp_path, code=1)
    config, folder = configured(shop=SHOP), tmp_path / "sales" / "2024-01-01"
    folder.mkdir(parents=True)
    (folder / "a.json").write_text(json.dumps({"id": 1, "item": 7, "paid": 3}), "utf-8")
    work = Task("ingest", TaskKind.INGEST, "shop", ("shop.sales",))
    task = SeparateJob(task_id="ingest", work=work, config=config, python=python)
    (report,) = (
        r
        for r in task.execute(context(Interval.parse("2024-01-01", "2024-01-02")))
        if r["table"] == "shop.sales"
    )
    assert (report["inserted"], report["engine"]) == (1, "process")
    assert [row["id"] for row in open_lake(config).table("sales").read()] == [1]
