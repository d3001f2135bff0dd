"""Commands that do work refuse what can't be meant, before they start Spark."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from sluice.cli.main import main

PIPELINE = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  sales: {path: "landing/{interval_start:%Y-%m-%d}/", format: json, schema: "id BIGINT, paid INT"}
views:
  total: {kind: cogroup, key: [id], streams: {s: {from: sales, aggregates: {paid: sum(paid)}}}}
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    (tmp_path / "config" / "pipelines").mkdir(parents=True)
    (tmp_path / "config" / "sluice.yaml").write_text("lake: lake\n")
    (tmp_path / "config" / "pipelines" / "shop.yaml").write_text(PIPELINE)
    return str(tmp_path / "config")


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 2
    return result.output


def test_verifying_a_lake_without_views_is_no_success(config):
    assert "there is nothing to verify" in refused("verify", "--config", config)


def test_a_run_before_the_pipelines_start_is_refused(config):
    said = refused(
        "run", "shop", "--start", "2023-12-31", "--end", "2024-01-01", "--config", config
    )
    assert "shop starts at 2024-01-01 00:00" in said


def test_bounds_off_the_grid_are_refused_with_the_nearest(config):
    bounds = ("--start", "2024-01-01T06:00", "--end", "2024-01-02")
    assert "2024-01-01" in refused("run", "shop", *bounds, "--config", config)


def test_a_table_that_no_report_can_tell_of_does_not_hide_why_a_run_failed(config):
    pipeline = Path(config) / "pipelines" / "shop.yaml"
    pipeline.write_text(pipeline.read_text().replace("format: json", "format: json, missing: fail"))
    log = Path(config).parent / "lake" / "shop" / "total" / "_delta_log"
    log.mkdir(parents=True)
    (log / "00000000000000000000.json").write_text("{")
    bounds = ("--start", "2024-01-01", "--end", "2024-01-02")
    said = refused("run", "shop", *bounds, "--config", config)
    assert "error: shop.sales: nothing was delivered at" in said


def test_half_a_bound_is_refused(config):
    said = refused("run", "shop", "--start", "2024-01-01", "--config", config)
    assert "give both --start and --end" in said
