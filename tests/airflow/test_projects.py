"""The configuration as DAG files see it."""

import os
from pathlib import Path

import pytest

from sluice.airflow import blueprint
from sluice.airflow.blueprint import check, config_folder, project, site
from sluice.errors import ConfigError

from .conftest import SHOP, SHOPS_NEWS, Configured

FOUND = """
pipeline: found
schedule: assets
views:
  found: {kind: sql, sql: {file: found.sql}}
"""
BROKEN = "pipeline: bad\nschedule: '@daily'\nstart_date: 2024-01-01\nviews:\n  x: {kind: topkk}\n"


def test_what_did_not_change_is_not_read_again(configured: Configured) -> None:
    config = configured()
    assert project(config) is project(config)


def test_a_change_of_a_file_is_seen(configured: Configured) -> None:
    config = configured()
    before = project(config)
    file = config / "pipelines" / "news.yaml"
    file.write_text(SHOPS_NEWS.replace("limit: 3", "limit: 30"), "utf-8")
    assert project(config) is not before


def test_a_change_of_a_querys_file_is_seen(configured: Configured) -> None:
    config = configured(shop=SHOP, found=FOUND)
    query, before = config / "pipelines" / "found.sql", []
    for table in ("sales", "best"):
        query.write_text(f"SELECT paid FROM shop.{table}", "utf-8")
        graphs = {pipeline.name: pipeline.graph for pipeline in site(config).pipelines}
        assert graphs["found"].triggers == (f"shop.{table}",)
        before.append(project(config))
    assert before[0] is not before[1]


def test_a_mistake_in_one_pipeline_leaves_the_others_running(configured: Configured) -> None:
    config = configured(bad=BROKEN, shop=SHOP)
    assert set(project(config).pipelines) == {"shop"}


def test_a_mistake_is_raised_with_its_file_and_line(configured: Configured) -> None:
    config = configured(bad=BROKEN, shop=SHOP)
    with pytest.raises(ConfigError, match=r"pipelines/bad\.yaml:5: .*'topkk'.*\nhint: .*bad\.yaml"):
        check(config)


def test_nothing_is_raised_where_nothing_is_wrong(configured: Configured) -> None:
    check(configured())


def test_a_deadline_is_named_where_airflow_has_none(
    configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = f"{SHOP}airflow: {{deadline: 2 hours}}\n"
    monkeypatch.setattr(blueprint, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"shop: `airflow: .deadline.*\n.*Airflow 3\.2 or newer"):
        check(configured(shop=shop))
    monkeypatch.setattr(blueprint, "find_spec", lambda name: name)
    check(configured(shop=shop))


def test_the_configuration_lies_beside_the_folder_of_dag_files_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLUICE_CONFIG", raising=False)
    assert config_folder(str(tmp_path / "dags/pipelines.py")) == tmp_path / "config"
    monkeypatch.setenv("SLUICE_CONFIG", os.fspath(tmp_path / "elsewhere"))
    assert config_folder("/opt/dags/pipelines.py") == tmp_path / "elsewhere"
