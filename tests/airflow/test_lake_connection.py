"""A lake in a store, whose key is in a connection of Airflow and nowhere else."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from airflow.sdk import Connection
from tests.support.stores import Store, running, using
from tests.support.tasks import context

from sluice.airflow.blueprint import site
from sluice.airflow.connections import environ, lent, variables
from sluice.airflow.dag_factory import QualityTask
from sluice.airflow.jobs import JobRefused
from sluice.airflow.tasks import SeparateJob
from sluice.declare.project import load
from sluice.delta.places.lake_layout import layout
from sluice.delta.places.overlay import create
from sluice.errors import UsageError
from sluice.language.interval import Interval
from sluice.read.lake import Lake, open_lake

from .conftest import Configured

DAY = Interval.parse("2024-01-01", "2024-01-02")
NOW = datetime(2024, 1, 1, tzinfo=UTC)
SHOP = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  sales: {path: "sales/{interval_start:%Y-%m-%d}/", format: json, schema: "id INT, paid INT"}
"""


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with running() as found:
        yield found


@pytest.fixture
def config(configured: Configured, store: Store, tmp_path: Path) -> Iterator[Path]:
    """A project of which only Airflow knows the key."""
    (tmp_path / "sales/2024-01-01").mkdir(parents=True)
    (tmp_path / "sales/2024-01-01/a.json").write_text('{"id": 1, "paid": 3}\n')
    user, secret = store.key
    extra = {"endpoint_url": store.endpoint, "region_name": "us-east-1"}
    known = {"conn_type": "aws", "login": user, "password": secret, "extra": extra}
    settings = f"lake: {store.uri(store.place())}/lake\nlake_connection: my_lake\n"
    with using({"AIRFLOW_CONN_MY_LAKE": json.dumps(known)}):
        yield configured(settings, shop=SHOP)


def test_a_tasks_job_reaches_the_lake(config: Path, store: Store) -> None:
    (work, *_) = site(config).pipelines[0].graph.tasks
    (report,) = SeparateJob(task_id=work.id, work=work, config=config).execute(
        {**context(DAY), "params": {}}
    )
    assert (report["table"], report["inserted"]) == ("shop.sales", 1)
    with using(store.environ()):
        assert open_lake(config).table("sales").count == 1


def test_environments_by_connection(
    config: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work, *_) = site(config).pipelines[0].graph.tasks
    task = SeparateJob(task_id=work.id, work=work, config=config)
    with using(store.environ()):
        create(layout(load(config)), "dev", NOW, NOW + timedelta(days=7))
    monkeypatch.setenv("SLUICE_ENV", "dev")
    assert site(config).pipelines  # DAGs need no lake
    (report,) = task.execute({**context(DAY), "params": {}})
    assert report["inserted"] == 1
    monkeypatch.delenv("SLUICE_ENV")
    with using(store.environ()):
        base = open_lake(config)
        assert Lake(base.project.within("dev")).table("sales").count == 1
        with pytest.raises(UsageError, match="sales"):
            base.table("sales")


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("SLUICE_ENV", "deev", "has no environment 'deev'"),
        ("AIRFLOW_CONN_MY_LAKE", "postgres://u:p@host/db", "my_lake is of type 'postgres'"),
    ],
)
def test_tasks_name_what_they_cannot_use(
    config: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    monkeypatch.setenv(variable, value)
    work, *_, last = site(config).pipelines[0].graph.tasks
    report = QualityTask(task_id="quality", work=last, config=config)
    monkeypatch.setattr(report, "_states", lambda _: {"sales": "success"})
    for task in (SeparateJob(task_id=work.id, work=work, config=config), report):
        with pytest.raises(JobRefused, match=said):
            task.execute({**context(DAY), "params": {}})


def test_a_process_that_goes_on_has_the_key_only_for_a_while(config: Path, store: Store) -> None:
    project = load(config)
    with lent(project, []):
        assert os.environ["AWS_SECRET_ACCESS_KEY"] == store.key[1]
    assert "AWS_SECRET_ACCESS_KEY" not in os.environ
    assert environ(project)["AWS_ENDPOINT_URL"] == store.endpoint


def test_a_connection_to_azure_is_a_key_a_token_or_a_principal() -> None:
    def of(**fields: str) -> dict[str, str]:
        return variables(Connection(conn_id="c", conn_type="wasb", **fields))

    assert of(login="shops", password="k") == {
        "AZURE_STORAGE_ACCOUNT_NAME": "shops",
        "AZURE_STORAGE_ACCOUNT_KEY": "k",
    }
    assert of(extra='{"sas_token": "t"}') == {"AZURE_STORAGE_SAS_TOKEN": "t"}
    assert of(login="app", password="p", extra='{"tenant_id": "ours"}') == {
        "AZURE_CLIENT_ID": "app",
        "AZURE_CLIENT_SECRET": "p",
        "AZURE_TENANT_ID": "ours",
    }


def test_a_connection_to_google_names_the_file_of_a_key() -> None:
    extra = '{"key_path": "/keys/lake.json", "project": "shops"}'
    connection = Connection(conn_id="c", conn_type="google_cloud_platform", extra=extra)
    assert variables(connection) == {"GOOGLE_APPLICATION_CREDENTIALS": "/keys/lake.json"}
    assert variables(Connection(conn_id="c", conn_type="google_cloud_platform")) == {}


@pytest.mark.parametrize(
    ("kind", "extra", "said"),
    [
        ("postgres", "", "is of type 'postgres'"),
        ("aws", '{"role_arn": "r"}', "has `role_arn`"),
        ("google_cloud_platform", '{"keyfile_dict": "{}"}', "has `keyfile_dict`"),
    ],
)
def test_what_no_variable_stands_for_is_refused(kind: str, extra: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        variables(Connection(conn_id="c", conn_type=kind, extra=extra or None))
