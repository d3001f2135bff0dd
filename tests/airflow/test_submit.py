"""A job in a process of its own, which starts Spark only if it needs it."""

import json
from pathlib import Path

import pytest
from tests.support.java import LEAN
from tests.support.lake import CONF
from tests.support.tasks import context

from sluice.airflow.blueprint import Task, TaskKind
from sluice.airflow.exceptions import AirflowFailException
from sluice.airflow.scheduling import asset
from sluice.airflow.tasks import SeparateJob
from sluice.language.interval import Interval, parse_time
from sluice.read.lake import open_lake
from sluice.read.snapshot import NotBuilt

from .conftest import SHOP, Configured

LANDED = {
    "sales/2024-01-01/a.json": [{"id": 1, "item": 7, "paid": 3}, {"id": 2, "item": 8, "paid": 4}],
    "items/a.json": [{"item": 7, "maker": 1}],
    "makers/a.json": [{"maker": 1, "name": "Ada"}],
}
FROM_OUTSIDE = ("shop.sales", "shop.items", "shop.makers")
pytestmark = pytest.mark.usefixtures("own_spark")


@pytest.fixture(params=["auto", "spark"])
def config(
    request: pytest.FixtureRequest,
    configured: Configured,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    for name, value in LEAN.items():
        monkeypatch.setenv(name, value)
    for name, rows in LANDED.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    conf = json.dumps({**CONF, "spark.driver.memory": "1g"})
    settings = f"small_batches: {request.param}, conf: {conf}"
    master = f"{{spark: {{engine: submit, master: 'local[2]', {settings}}}}}"
    if request.param == "auto":
        monkeypatch.setenv("JAVA_HOME", "/nowhere")  # nothing here needs it
    return configured(master, shop=SHOP)


def task_of(config: Path) -> SeparateJob:
    work = Task("ingest", TaskKind.INGEST, "shop", FROM_OUTSIDE)
    return SeparateJob(task_id="ingest", work=work, config=config)


def test_an_application_does_the_work_and_hands_back_what_it_did(config: Path) -> None:
    task, given = task_of(config), context(Interval.parse("2024-01-01", "2024-01-02"))
    reports = {report["table"]: report for report in task.execute(given)}
    assert reports["shop.sales"]["inserted"] == 2
    assert {row["id"] for row in open_lake(config).table("sales").read()} == {1, 2}
    assert {outlet.name for outlet in task.outlets} == set(FROM_OUTSIDE)
    assert given["outlet_events"][asset("shop.items")].extra["rows_out"] == 1


def test_an_applications_failure_comes_back_with_its_reason(config: Path) -> None:
    (config.parent / "makers/a.json").unlink()
    off_the_grid = Interval(parse_time("2024-01-01"), parse_time("2024-01-01T05:00"))
    with pytest.raises(AirflowFailException, match=r"05:00.*not a bound.*\nhint: the nearest are"):
        task_of(config).execute(context(off_the_grid))
    with pytest.raises(NotBuilt):
        open_lake(config).table("items")


def test_a_python_that_is_not_there_is_named(config: Path) -> None:
    task = task_of(config)
    task.python = "/venvs/none/bin/python"
    with pytest.raises(AirflowFailException, match=r"/venvs/none.*can't be started.*\nhint: `air"):
        task.execute(context(Interval.parse("2024-01-01", "2024-01-02")))
