"""DAGs from YAML, without a running Airflow."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from airflow.sdk import DAG, TriggerRule
from airflow.timetables.interval import CronDataIntervalTimetable
from tests.support.airflow_versions import DagSerialization

from sluice.airflow.dag_factory import dags, maintenance, verification

from .conftest import SHOP, Configured

CONNECT = "spark: {engine: connect, remote: 'sc://spark:15002'}"


def dags_of(config: Path) -> dict[str, DAG]:
    return {dag.dag_id: dag for dag in dags(config)}


CRM = """
pipeline: crm
schedule: assets
sources:
  orders: {delta: {path: theirs/orders}, schema: "id BIGINT, paid BIGINT", key: [id]}
dimensions:
  names: {path: "s3://lake/names/", format: delta, schema: "id BIGINT, name STRING", key: [id]}
"""


@pytest.fixture
def shop(configured: Configured) -> DAG:
    return dags_of(configured(CONNECT))["shop"]


def test_a_cron_schedule_gives_runs_a_data_interval(shop: DAG) -> None:
    assert isinstance(shop.timetable, CronDataIntervalTimetable)
    day = shop.timetable.infer_manual_data_interval(run_after=datetime(2024, 1, 9, 5, tzinfo=UTC))
    assert (day.start, day.end) == (
        datetime(2024, 1, 8, tzinfo=UTC),
        datetime(2024, 1, 9, tzinfo=UTC),
    )


def test_the_schedule_is_cut_in_the_pipelines_own_zone(configured: Configured) -> None:
    text = SHOP.replace("start_date", "timezone: Europe/Berlin\nstart_date", 1)
    dag = dags_of(configured(CONNECT, shop=text))["shop"]
    day = dag.timetable.infer_manual_data_interval(run_after=datetime(2024, 7, 9, 5, tzinfo=UTC))
    assert day.end == datetime(2024, 7, 8, 22, tzinfo=UTC)


def test_no_interval_is_due_after_the_end_date(shop: DAG) -> None:
    assert shop.end_date is not None
    assert datetime(2024, 1, 31, tzinfo=UTC) <= shop.end_date < datetime(2024, 2, 1, tzinfo=UTC)


def test_tasks_follow_each_other_as_the_graph_has_it(shop: DAG) -> None:
    assert shop.get_task("advance.sums").upstream_task_ids == {"advance.lines"}
    assert shop.get_task("quality").upstream_task_ids == {"advance.best"}


def test_a_table_is_written_once_at_a_time_over_all_runs(shop: DAG) -> None:
    writers = [task for task in shop.tasks if task.outlets]
    assert len(writers) == 6
    assert all(task.max_active_tis_per_dag == 1 for task in writers)


def test_a_skipped_task_lets_the_rest_go_on(shop: DAG) -> None:
    rules = {task.task_id: task.trigger_rule for task in shop.tasks}
    assert rules.pop("quality") == TriggerRule.ALL_DONE
    assert set(rules.values()) == {TriggerRule.NONE_FAILED}


def test_each_table_is_an_asset(shop: DAG) -> None:
    (outlet,) = shop.get_task("advance.best").outlets
    assert (outlet.name, outlet.uri) == ("shop.best", "sluice://shop/best")


def test_assets_run_a_pipeline_when_its_input_changes(configured: Configured) -> None:
    news = dags_of(configured(CONNECT))["news"]
    assert [asset.name for asset in news.timetable.asset_condition.objects] == ["shop.sums"]


def test_assets_run_a_pipeline_when_owners_announce_news(configured: Configured) -> None:
    folder = configured(CONNECT, crm=CRM)
    made = dags_of(folder)["crm"].timetable.asset_condition.objects
    orders = f"file://{folder.parent}/theirs/orders"
    assert [(asset.name, asset.uri) for asset in made] == [
        (orders, orders),
        ("s3://lake/names", "s3://lake/names"),
    ]


def test_failures_are_retried_as_the_settings_say(configured: Configured) -> None:
    settings = f"{CONNECT}\nairflow: {{retries: 5, retry_delay: 10 seconds, owner: shops}}"
    task = dags_of(configured(settings))["shop"].get_task("advance.sums")
    assert (task.retries, task.retry_delay.total_seconds(), task.owner) == (5, 10, "shops")
    doubled = task.retry_exponential_backoff
    assert doubled is True or doubled == 2  # a flag in Airflow 3.1


def test_one_setting_chooses_the_engine(configured: Configured) -> None:
    connect = dags_of(configured(CONNECT))["shop"].get_task("advance.sums")
    assert (type(connect).__name__, connect.remote) == ("ConnectedJob", "sc://spark:15002")
    submit = "{spark: {engine: submit, master: yarn}, airflow: {tasks: table}}"
    task = dags_of(configured(submit))["shop"].get_task("advance.sums")
    assert (type(task).__name__, task.remote, task.python) == ("SeparateJob", "", "")


def test_one_setting_chooses_the_environment_of_the_jobs(configured: Configured) -> None:
    python = "/venvs/sluice/bin/python"
    given = configured(f"{CONNECT}\nairflow: {{python: {python}}}")
    task = dags_of(given)["shop"].get_task("advance.sums")
    assert (task.python, task.remote) == (python, "sc://spark:15002")
    upkeep = maintenance(given).get_task("maintain.shop")
    assert upkeep.python == python


def test_every_view_is_compared_with_a_recompute_each_week(configured: Configured) -> None:
    weekly = verification(configured(CONNECT))
    (shop,) = (task for task in weekly.tasks if task.task_id == "verify.shop")
    assert shop.work.tables == ("shop.lines", "shop.sums", "shop.best")
    assert not shop.outlets


@pytest.mark.parametrize("settings", [CONNECT, "spark: {engine: submit}"])
def test_airflow_can_store_every_dag(configured: Configured, settings: str) -> None:
    for dag in dags_of(configured(settings)).values():
        stored = DagSerialization.to_dict(dag)
        assert set(DagSerialization.from_dict(stored).task_dict) == set(dag.task_dict)


def test_links_lead_below_airflow(configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = configured(CONNECT)
    assert "[quality report](/sluice/report/index.html)" in (dags_of(folder)["shop"].doc_md or "")
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://example.org/flows/")
    page = dags_of(folder)["shop"].doc_md or ""
    assert "[quality report](/flows/sluice/report/index.html)" in page


def test_upkeep_looks_at_whole_tables_with_expectations(configured: Configured) -> None:
    rule = "expect: [{type: expect_table_row_count_to_be_between, min_value: 1, over: table}]"
    text = SHOP.replace("    key:", f"    {rule}\n    key:", 1)
    assert text != SHOP
    asked, silent = maintenance(configured(CONNECT, shop=text)), maintenance(configured(CONNECT))
    assert set(asked.task_ids) - set(silent.task_ids) == {"sweep.shop"}
    task = asked.get_task("sweep.shop")
    assert (task.outlets, len(task.work.tables)) == ([], 1)
    DagSerialization.to_dict(asked)
