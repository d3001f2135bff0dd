"""The page's routes: each user sees their own pipelines, and nothing of the others."""

import datetime as dt
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.types import DagRunType
from fastapi.testclient import TestClient
from sqlalchemy import create_engine, insert
from sqlalchemy.orm import Session
from tests.airflow.conftest import SHOP, SHOPS_NEWS, Configured

from sluice.airflow import page_app as page
from sluice.airflow.blueprint import airflows_config, pipeline_files, project, site
from sluice.airflow.page_app import why
from sluice.report.publish import report_folder

BROKEN = "pipeline: payroll\nschedule: '@daily'\nstart_date: 2024-01-01\nwages: {secret: 1}\n"
UNREADABLE = "pipeline: payroll\nsources: {wages: [secret\n"
COSTS = """pipeline: costs
schedule: assets
views:
  most: {kind: topk, from: payroll.wages, order_by: [paid], limit: 3}
"""
BEST = """pipeline: best
schedule: assets
views:
  buyers: {kind: sql, sql: SELECT name FROM shop.sums ORDER BY paid DESC LIMIT 3}
"""
RUNS = {"shop.sales": "success", "shop.sums": "failed", "shop.best": "queued"}
Visitor = Callable[..., TestClient]


@pytest.fixture
def visitor(
    configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., TestClient]]:
    """Logs a user in who may see these pipelines of a project."""

    def log_in(*pipelines: str, settings: str = "", **files: str) -> TestClient:
        files = {"shop": SHOP, "news": SHOPS_NEWS} | files
        monkeypatch.setenv("SLUICE_CONFIG", str(configured(settings, **files)))

        def allows(details: Any, **_: Any) -> bool:
            return details.id in pipelines

        monkeypatch.setattr(
            page, "get_auth_manager", lambda: SimpleNamespace(is_authorized_dag=allows)
        )
        monkeypatch.setattr(page, "_has_run", lambda *_: False)
        monkeypatch.setattr(page, "_runs", lambda names: {} if "news" in names else RUNS)
        page.app.dependency_overrides[page.get_user] = lambda: "ann"
        return TestClient(page.app)

    yield log_in
    page.app.dependency_overrides.clear()


@pytest.mark.parametrize("broken", [BROKEN, UNREADABLE])
def test_mistakes_are_shown_to_readers_of_a_pipeline(visitor: Visitor, broken: str) -> None:
    said = visitor("news", "shop", payroll=broken).get("/").text
    assert "payroll" not in said
    assert "secret" not in said
    assert "shop" in said
    own = visitor("payroll", payroll=broken).get("/").text
    assert "payroll.yaml:" in own
    assert "payroll is left out until" in own


def test_readers_of_a_broken_pipeline_see_their_own_alone(visitor: Visitor) -> None:
    said = visitor("costs", payroll=BROKEN, costs=COSTS).get("/").text
    assert "costs is left out until" in said
    assert "secret" not in said
    assert "payroll.yaml" not in said


def test_a_mistake_suggests_nothing_of_other_pipelines(visitor: Visitor) -> None:
    broken = BEST.replace("paid", "paidd").replace("shop.sums", "shop.summs")
    seen = [visitor("best", *more, best=broken).get("/").text for more in ((), ("shop", "news"))]
    assert ["best.yaml:" in said for said in seen] == [True, True]
    assert ["shop.summs" in said for said in seen] == [False, True]
    assert ["shop.sums" in said.partition("left out")[0] for said in seen] == [False, True]


def test_a_query_is_of_the_kind_that_its_user_wrote(visitor: Visitor) -> None:
    client = visitor("best", best=BEST)
    for path in ("/", "/tables/best.buyers"):
        said = client.get(path).text
        assert ("sql" in re.findall(r"[a-z]+(?=<)", said), "topk" in said) == (True, False)


@pytest.mark.parametrize("path", ["/", "/pipelines/shop", "/tables/shop.sales", "/report/x.html"])
def test_mistakes_that_stop_all_are_for_those_who_see_all(visitor: Visitor, path: str) -> None:
    some = visitor("shop", settings="lakee: s3://secret").get(path)
    assert some.status_code == 500
    assert "lakee" not in some.text
    assert "not of your pipelines" in some.text
    assert "lakee" in visitor("shop", "news", settings="lakee: s3://secret").get(path).text


def test_tables_of_other_pipelines_are_not_there(visitor: Visitor) -> None:
    client = visitor("news")
    for path in ("/tables/shop.sales", "/tables/shop.sales/why?key=1", "/tables/shop.nothing"):
        answer = client.get(path)
        assert (answer.status_code, "shop.sales" in answer.text) == (404, "shop.sales" in path)
    assert client.get("/tables/news.worst").status_code == 200
    assert "paid" not in client.get("/pipelines/shop").text


def test_reports_are_for_those_who_may_see_all(visitor: Visitor) -> None:
    every = visitor("shop", "news", "payroll", payroll=BROKEN)
    folder = report_folder(project(airflows_config()))
    folder.mkdir(parents=True)
    for file in ("index.html", "shop.sales.html", "removed.pay.html"):
        (folder / file).write_text(file)
    assert every.get("/report/index.html").text == "index.html"
    assert every.get("/report/shop.sales.html").status_code == 200
    assert every.get("/report/removed.pay.html").status_code == 404, "its pipeline was removed"
    assert "/report/" in every.get("/").text
    some = visitor("shop", "news", payroll=BROKEN)
    assert some.get("/report/index.html").status_code == 404
    assert "/report/" not in some.get("/").text


def test_explanations_repeat_no_others_mistakes(visitor: Visitor, configured: Configured) -> None:
    visitor("shop", payroll=BROKEN)
    config = airflows_config()
    trouble = why(project(config), config, ["--", "shop.sales", "1"])["trouble"]
    assert "sluice run shop" in trouble, "its own table is read, which no run has built yet"
    assert not {"secret", "payroll"} & {*re.findall(r"\w+", trouble)}


def test_a_run_is_airflows_if_its_database_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    database = create_engine("sqlite://")
    for name in ("log_template", "dag_run"):
        DagRun.metadata.tables[name].create(database)
    monkeypatch.setattr(page, "create_session", partial(Session, database))
    day = "scheduled__2024-01-01T00:00:00+00:00"
    with Session(database) as session:
        session.add(DagRun(dag_id="shop", run_id=day, run_type=DagRunType.SCHEDULED))
        session.commit()
    asked = [("shop", day), ("news", day), ("shop", "promote-20240101T000000-c0ffee")]
    assert [page._has_run(*one) for one in asked] == [True, False, False]


def test_the_graph_is_coloured_by_the_last_run(visitor: Visitor) -> None:
    for path in ("/", "/pipelines/shop"):
        said = visitor("shop").get(path).text
        looks = dict(re.findall(r'<title>shop\.(\w+): .*?</title><rect class="(\w+)"', said))
        assert {looks[name] for name in ("sales", "sums", "best")} == {"passed", "stopped", "none"}
        assert "failed in the last run" in said
        assert looks["lines"] == "none", "no run had it, and it is not built"


def test_states_of_tables_are_those_of_tasks_in_the_last_run(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = page._runs
    visitor("shop")
    database = create_engine("sqlite://")
    DagRun.metadata.create_all(database)
    monkeypatch.setattr(page, "create_session", partial(Session, database))
    (shop,) = [one for one in site(airflows_config()).pipelines if one.name == "shop"]
    tables = [task for task in shop.graph.tasks if task.tables]
    with Session(database) as session:
        for day, state in ((1, "failed"), (2, "success")):
            at = dt.datetime(2024, 1, day, tzinfo=dt.UTC)
            run = DagRun("shop", f"r{day}", run_type=DagRunType.MANUAL, run_after=at)
            session.add(run)
            session.flush()
            for number, task in enumerate(tables):
                new = {"task_id": task.id, "dag_id": "shop", "run_id": f"r{day}", "map_index": -1}
                new |= {"id": uuid4(), "state": state if number else "skipped", "pool": "default"}
                new |= {"try_number": 1, "max_tries": 0, "pool_slots": 1, "executor_config": {}}
                session.execute(insert(TaskInstance.__table__).values(new))
        session.commit()
    expected = {table: "success" for task in tables[1:] for table in task.tables}
    assert runs(["shop"]) == dict.fromkeys(tables[0].tables, "skipped") | expected
    assert runs(["news"]) == {}


def test_the_pipeline_of_a_file_is_known_also_if_the_file_is_broken(tmp_path: Path) -> None:
    (tmp_path / "pipelines").mkdir()
    for name, text in (
        ("a", "pipeline: one\n"),
        ("b", UNREADABLE),
        ("c", "{x"),
        ("d", "pipeline:\nx:"),
    ):
        (tmp_path / "pipelines" / f"{name}.yaml").write_text(text)
    found = {Path(file).stem: name for file, name in pipeline_files(tmp_path).items()}
    assert found == {"a": "one", "b": "payroll", "c": "", "d": ""}
