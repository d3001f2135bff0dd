"""A run that is a preview: its first task shows what the run would do; nothing is committed."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.java import LEAN
from tests.support.tasks import context

from sluice.airflow.blueprint import site
from sluice.airflow.dag_factory import QualityTask
from sluice.airflow.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from sluice.airflow.scheduling import alert_of_failure
from sluice.airflow.tasks import SeparateJob
from sluice.language.interval import Interval
from sluice.read.lake import open_lake

from .conftest import SHOP, Configured

DAY = Interval.parse("2024-01-01", "2024-01-02")
SALES = [{"id": 1, "item": 7, "paid": 3}, {"id": 2, "item": 7, "paid": 4}]
OTHERS = [{"id": 1, "item": 7, "paid": 5}, {"id": 3, "item": 7, "paid": 1}]
SETTINGS = "spark: {engine: submit, conf: {spark.driver.memory: 1g}}"
COUNTS = ("inserted", "updated", "deleted")


@pytest.fixture
def config(configured: Configured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in {**LEAN, "JAVA_HOME": "/nowhere"}.items():
        monkeypatch.setenv(name, value)
    land(tmp_path, "sales/2024-01-01", SALES)
    land(tmp_path, "items", [{"item": 7, "maker": 1}])
    land(tmp_path, "makers", [{"maker": 1, "name": "Ada"}])
    return configured(SETTINGS, shop=SHOP)


def land(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "a.json").write_text("\n".join(map(json.dumps, rows)), "utf-8")


def asked(**answers: Any) -> dict[str, Any]:
    return {**context(DAY), "params": answers, "dag": type("Dag", (), {"dag_id": "shop"})}


def tasks(config: Path) -> tuple[SeparateJob, SeparateJob]:
    """The task of what is delivered, and that of the views."""
    work = site(config).pipelines[0].graph.tasks
    first, second = (SeparateJob(task_id=w.id, work=w, config=config) for w in work[:2])
    return first, second


def changes(reports: list[dict[str, Any]]) -> dict[str, tuple[int, ...]]:
    """What happened to each table, without the internal ones."""
    done = (r for r in reports if r["outcome"] == "committed" and "__" not in r["table"])
    return {r["table"]: tuple(r[name] for name in COUNTS) for r in done}


@pytest.mark.usefixtures("long")
def test_the_first_task_shows_what_the_whole_run_then_does(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    delivered, views = tasks(config)
    for task in (delivered, views):
        task.execute(asked())
    land(tmp_path, "sales/2024-01-01", OTHERS)
    versions = {name: open_lake(config).table(name).version for name in ("sales", "sums")}
    told = delivered.execute(asked(preview=True))
    assert json.loads(json.dumps(told)) == told
    log = capsys.readouterr().out
    assert "preview: nothing was committed" in log
    assert "shop.sums: committed, +0 ~1 -0" in log
    assert '  + {"name": "Ada", "paid": 6}' in log
    assert delivered.outlets == []
    with pytest.raises(AirflowSkipException, match="its first task shows"):
        views.execute(asked(preview=True))
    assert {name: open_lake(config).table(name).version for name in versions} == versions
    assert not list((tmp_path / "lake" / "__preview").iterdir())
    ran = [report for task in (delivered, views) for report in task.execute(asked())]
    assert changes(told) == changes(ran)
    assert changes(told)["shop.sales"] == (1, 1, 1)


def test_previews_are_about_chosen_tables_and_days(config: Path, tmp_path: Path) -> None:
    land(tmp_path, "sales/2024-01-02", OTHERS[1:])
    days = {"start": "2024-01-02", "end": "2024-01-03"}
    (told,) = tasks(config)[0].execute(asked(preview=True, only=["sales"], **days))
    assert (told["table"], told["inserted"]) == ("shop.sales", 1)


def test_what_would_fail_fails_the_preview_and_alerts_nobody(
    config: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    pipeline = config / "pipelines" / "shop.yaml"
    pipeline.write_text(SHOP.replace("items/", "gone/"), "utf-8")
    delivered, _ = tasks(config)
    with pytest.raises(AirflowException, match="gone") as refused:
        delivered.execute(asked(preview=True))
    assert "__preview" not in capsys.readouterr().out + str(refused.value)
    caplog.clear()
    alert_of_failure({**asked(preview=True), "exception": refused.value, "task": delivered})
    assert not caplog.records


@pytest.mark.parametrize(
    ("state", "ended"), [("success", AirflowSkipException), ("failed", AirflowFailException)]
)
def test_the_last_task_publishes_no_report_of_a_preview_and_ends_as_it_did(
    config: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    ended: type[Exception],
) -> None:
    work = site(config).pipelines[0].graph.tasks[-1]
    quality = QualityTask(task_id=work.id, work=work, config=config)
    states = {"ingest": state, "advance": "skipped"}
    monkeypatch.setattr(quality, "_states", lambda _: states)
    with pytest.raises(ended, match="is a preview"):
        quality.execute(asked(preview=True))
    assert not (tmp_path / "lake" / "__quality").exists()
