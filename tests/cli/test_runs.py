"""Commands that do work refuse what can't be meant, before they start Spark."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.trips import Here, invoked

from sluice.cli.job import Job
from sluice.cli.main import main
from sluice.engine.advance import Run
from sluice.errors import UsageError

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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("verify", "there is nothing to verify"),
        ("run shop --start 2023-12-31 --end 2024-01-01", "starts at 2024-01-01, after 2023-12-31"),
        ("run shop --start 2024-01-02 --end 2024-01-04", "ends at 2024-01-03, before 2024-01-04"),
        ("run shop --start 2024-01-01T06:00 --end 2024-01-02", "2024-01-01"),
        ("run shop --start 2024-01-01", "give both --start and --end"),
    ],
)
def test_what_can_not_be_meant_is_refused(config, words, told):
    pipeline = Path(config) / "pipelines" / "shop.yaml"
    pipeline.write_text(pipeline.read_text() + "end_date: 2024-01-03\n")
    assert told in refused(*words.split(), "--config", config)


def test_so_are_an_ingest_and_a_job_outside_the_pipelines_dates(config):
    pipeline = Path(config) / "pipelines" / "shop.yaml"
    pipeline.write_text(pipeline.read_text() + "end_date: 2024-01-03\n")
    for bounds, told in (
        (("2024-01-02", "2024-01-04"), "shop ends at 2024-01-03, before 2024-01-04"),
        (("2023-12-31", "2024-01-02"), "shop starts at 2024-01-01, after 2023-12-31"),
    ):
        start, end = bounds
        said = refused("ingest", "sales", "--start", start, "--end", end, "--config", config)
        assert told in said
        job = Job(["shop.sales"], Path(config), Run(""), *bounds, is_backfill=True)
        with pytest.raises(UsageError, match=told):
            _ = job.asked
        within = replace(job, is_backfill=False)
        assert within.asked["shop.sales"], "a manual run within the first one"


def test_bounds_are_local_and_shown_with_their_offset(config):
    pipeline = Path(config) / "pipelines" / "shop.yaml"
    pipeline.write_text(pipeline.read_text() + "timezone: America/New_York\n")
    bounds = ("--end", "2024-01-02", "--config", config)
    said = refused("run", "shop", "--start", "2023-12-31", *bounds)
    assert "shop starts at 2024-01-01T00:00:00-05:00, after 2023-12-31T00:00:00-05:00" in said
    said = refused("ingest", "sales", "--start", "2024-01-01T00:00Z", *bounds)
    assert "2023-12-31T19:00:00-05:00 is not a bound of the schedule '@daily'" in said
    assert "nearest are 2023-12-31T00:00:00-05:00 and 2024-01-01T00:00:00-05:00" in said


def test_a_job_over_pipelines_of_several_zones_takes_each_ones_own_days(config):
    folder = Path(config) / "pipelines"
    text = (folder / "shop.yaml").read_text()
    tokyo = f"{text.replace('pipeline: shop', 'pipeline: tokyo', 1)}timezone: Asia/Tokyo\n"
    (folder / "tokyo.yaml").write_text(tokyo)
    job = Job(["shop.sales", "tokyo.sales"], Path(config), Run(""), "2024-01-01", "2024-01-02")
    found = {name.partition(".")[0]: str(spans[0]) for name, spans in job.asked.items()}
    assert found == {
        "shop": "[2024-01-01, 2024-01-02)",
        "tokyo": "[2023-12-31T15:00:00+00:00, 2024-01-01T15:00:00+00:00)",
    }


def test_a_table_that_no_report_can_show_does_not_hide_why_a_run_failed(config):
    pipeline = Path(config) / "pipelines" / "shop.yaml"
    pipeline.write_text(pipeline.read_text().replace("format: json", "format: json, missing: fail"))
    log = Path(config).parent / "lake" / "shop" / "total" / "_delta_log"
    log.mkdir(parents=True)
    (log / "00000000000000000000.json").write_text("{")
    bounds = ("--start", "2024-01-01", "--end", "2024-01-02")
    code, said = run(config, *bounds)
    assert code == 3
    assert "error: shop.sales: nothing was delivered at" in said


def run(config: str, *more: str) -> tuple[int, str]:
    """Deliver the first three days of 2024, or what was asked; the exit code and the output."""
    bounds = more or ("--start", "2024-01-01", "--end", "2024-01-04")
    result = CliRunner().invoke(main, ["run", "shop", *bounds, "--config", config])
    return result.exit_code, result.output


def said_of(config: str) -> str:
    return CliRunner().invoke(main, ["status", "--config", config]).output


def land(config: str, *days: int, text: str = '{"id": 1, "paid": 2}\n') -> None:
    for day in days:
        folder = Path(config).parent / f"landing/2024-01-0{day}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "a.json").write_text(text)


def test_days_without_files_are_shown_until_files_come_even_without_rows(config):
    land(config, 1)
    code, said = run(config)
    assert code == 0
    assert "nothing was delivered for [2024-01-02, 2024-01-04) (2 intervals)" in said
    shown = said_of(config)
    assert "no files: shop.sales [2024-01-02, 2024-01-04) (2 intervals)" in shown
    assert "`sluice run shop --start 2024-01-02 --end 2024-01-04`" in shown
    land(config, 2)
    land(config, 3, text="")
    assert run(config)[0] == 0
    assert "no files" not in said_of(config)


def test_days_that_several_sources_lack_have_one_hint(config):
    pipeline = Path(config) / "pipelines" / "shop.yaml"
    (sales,) = (line for line in PIPELINE.splitlines() if "sales:" in line)
    returns = sales.replace("sales", "returns")
    pipeline.write_text(PIPELINE.replace(sales, f"{sales}\n{returns}"))
    land(config, 1)
    run(config)
    lines = said_of(config).splitlines()
    at = next(nth for nth, line in enumerate(lines) if line.startswith("no files:"))
    shown = {line.partition(" [")[0] for line in lines[at : at + 2]}
    assert shown == {"no files: shop.returns", "no files: shop.sales"}
    assert [line for line in lines if line.startswith("hint:")] == [lines[at + 2]]


def test_where_missing_files_are_a_failure_a_day_stops_until_its_files_come(config):
    pipeline = Path(config) / "pipelines" / "shop.yaml"
    pipeline.write_text(pipeline.read_text().replace("format: json", "format: json, missing: fail"))
    land(config, 1, 3)
    code, said = run(config)
    assert code == 3, "the files may come, so Airflow tries again"
    assert "not delivered: shop.sales [2024-01-02, 2024-01-04) (2 intervals)" in said
    assert "failed: shop.sales" in said_of(config)
    third = ("--start", "2024-01-03", "--end", "2024-01-04")
    assert run(config, *third)[0] == 0, "runs of other days deliver them"
    shown = said_of(config)
    assert "missing: shop.sales [2024-01-02, 2024-01-03) (1 interval)" in shown
    assert "failed" not in shown
    land(config, 2)
    assert run(config)[0] == 0
    assert "missing" not in said_of(config)


STREAMED = """
pipeline: trips
schedule: "@daily"
start_date: 2024-01-01
sources:
  bids: {delivery: stream, path: landing/bids/, format: json, schema: "id INT, price INT"}
views:
  best: {kind: topk, from: bids, order_by: [price desc], limit: 1}
"""


def test_files_of_a_stream_are_delivered_and_replayed_without_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice.extras.is_installed", lambda extra: extra != "spark")
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    project = Here(tmp_path)
    project.declare(STREAMED)
    config = ["--config", str(tmp_path / "config")]
    landing = tmp_path / "landing" / "bids"
    landing.mkdir(parents=True)
    for nth, price in enumerate(("7", '"dear"')):
        (landing / f"{nth}.json").write_text(f'{{"id": {nth}, "price": {price}}}\n')
        ran = invoked(["run", "trips", "--json", *config])
        assert ran.code == 0, ran.err
        (bids,) = (r for r in ran.records if r["table"] == "trips.bids")
        assert (bids["engine"], bids["rows_in"]) == ("process", 1)
    (landing / "1.json").write_text('{"id": 1, "price": 9}\n')
    replayed = invoked(["replay", "bids", "--json", *config])
    assert replayed.code == 0, replayed.err
    assert invoked(["run", "trips", *config]).code == 0
    (best,) = invoked(["read", "best", "--json", *config]).records
    assert best["price"] == 9
