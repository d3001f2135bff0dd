"""Pending work, found from files and logs."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from sluice.airflow.blueprint import Task, TaskKind
from sluice.airflow.jobs import PipelineRun
from sluice.airflow.pending import Pending, pending_of
from sluice.declare.meaning import definition
from sluice.declare.project import Project, load
from sluice.delta import intervals
from sluice.delta.log.position import Position
from sluice.delta.places.lake_layout import layout
from sluice.delta.reading import landing
from sluice.language.interval import Interval

from .conftest import Configured

DAY = Interval.parse("2024-01-01", "2024-01-02")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ALWAYS = Interval(EPOCH, datetime(1970, 1, 2, tzinfo=UTC))
WITHOUT_KEY = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  sales: {path: "sales/{interval_start:%Y-%m-%d}/", format: json, schema: "id INT, paid INT"}
dimensions:
  items: {path: items/, format: json, schema: item INT, key: [item]}
views:
  sums: {kind: cogroup, key: [id], streams: {sales: {from: sales, aggregates: {paid: sum(paid)}}}}
  best: {kind: topk, from: sums, order_by: [paid desc], limit: 3}
"""
Ask = Callable[..., Pending]


@pytest.fixture
def project(configured: Configured, tmp_path: Path) -> Project:
    project = load(configured(shop=WITHOUT_KEY))
    for file in ("sales/2024-01-01/a.json", "items/a.json"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text("{}\n", "utf-8")
    return project


@pytest.fixture
def ask(project: Project) -> Ask:
    def ask(kind: TaskKind, *tables: str, interval: Interval | None = DAY) -> Pending:
        return pending_of(project, Task("t", kind, "shop", tables), PipelineRun("r1", interval))

    return ask


def deliver(project: Project, name: str, path: str, interval: Interval) -> None:
    """Leaves what an ingestion of the files at `path` leaves."""
    table, lake = project.graph.tables[name], layout(project)
    files = landing.list_files(project.resolve(path))
    print_ = landing.fingerprint(files, definition(table))
    intervals.record(lake.uri(name, "intervals"), intervals.Note(interval, print_, 1, 1, 0))
    position = Position(batch=1, attempt="a", kind="ingest", definition=definition(table), run="r0")
    said = CommitProperties(custom_metadata={"userMetadata": position.to_json()})
    write_deltalake(lake.uri(name), pa.table({"id": [1]}), commit_properties=said)


def test_notes_of_a_restored_table_are_left_to_the_job(ask: Ask, project: Project) -> None:
    for name, path, interval in (
        ("shop.sales", "sales/2024-01-01/", DAY),
        ("shop.items", "items/", ALWAYS),
    ):
        deliver(project, name, path, interval)
        (noted,) = intervals.deliveries(layout(project).uri(name, "intervals"))
        later = replace(noted, interval=interval, batch=2)
        intervals.record(layout(project).uri(name, "intervals"), later)
    assert ask(TaskKind.INGEST, "shop.sales", "shop.items").tables == ("shop.sales", "shop.items")


def test_files_are_pending_until_delivered(ask: Ask, project: Project, tmp_path: Path) -> None:
    assert ask(TaskKind.INGEST, "shop.sales").tables == ("shop.sales",)
    deliver(project, "shop.sales", "sales/2024-01-01/", DAY)
    delivered = ask(TaskKind.INGEST, "shop.sales")
    assert (delivered.tables, delivered.reason) == (
        (),
        "shop.sales holds [2024-01-01, 2024-01-02) already, and its files are the same",
    )
    next_day = Interval.parse("2024-01-02", "2024-01-03")
    assert ask(TaskKind.INGEST, "shop.sales", interval=next_day).tables, "another interval"
    (tmp_path / "sales/2024-01-01/a.json").write_text('{"id": 2}\n', "utf-8")
    assert ask(TaskKind.INGEST, "shop.sales").tables, "a corrected file"


def test_a_run_without_an_interval_ingests_nothing_and_says_why(ask: Ask) -> None:
    pending = ask(TaskKind.INGEST, "shop.sales", interval=None)
    assert pending.tables == ()
    assert pending.reason == "this run has no data interval, so there is nothing to ingest"


def test_a_dimension_is_pending_until_its_files_are_loaded(ask: Ask, project: Project) -> None:
    assert ask(TaskKind.LOAD, "shop.items").tables
    deliver(project, "shop.items", "items/", ALWAYS)
    assert ask(TaskKind.LOAD, "shop.items").reason == (
        "shop.items is loaded, and its files are the same"
    )
    assert ask(TaskKind.INGEST, "shop.sales", "shop.items").tables == ("shop.sales",)


def test_views_are_pending_with_those_they_follow(ask: Ask, project: Project) -> None:
    assert ask(TaskKind.ADVANCE, "shop.sums").tables == (), "its input is not there"
    deliver(project, "shop.sales", "sales/2024-01-01/", DAY)
    assert ask(TaskKind.ADVANCE, "shop.sums", "shop.best").tables == ("shop.sums", "shop.best")


def test_what_can_not_be_known_is_left_to_the_job(ask: Ask, project: Project) -> None:
    rows = pa.table({"id": [1]})
    write_deltalake(layout(project).uri("shop.sales"), rows)  # a commit that nobody knows
    assert ask(TaskKind.ADVANCE, "shop.sums").tables == ("shop.sums",)


def test_runs_of_what_changed_look_everywhere(configured: Configured, tmp_path: Path) -> None:
    ended = WITHOUT_KEY.replace(
        "start_date: 2024-01-01", "start_date: 2024-01-01\nend_date: 2024-01-02"
    )
    project = load(configured(shop=ended))
    file = tmp_path / "sales/2024-01-01/a.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}\n", "utf-8")

    def found() -> Pending:
        task = Task("t", TaskKind.INGEST, "shop", ("shop.sales",))
        return pending_of(project, task, PipelineRun("r1", is_about_news=True))

    assert found().tables == ("shop.sales",)
    deliver(project, "shop.sales", "sales/2024-01-01/", DAY)
    assert found() == Pending(
        (), "no interval of shop.sales is due, and the files of none have changed"
    )
    file.write_text('{"id": 2}\n', "utf-8")
    assert found().tables == ("shop.sales",)
