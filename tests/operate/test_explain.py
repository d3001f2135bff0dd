"""What `sluice plan` says of tables, without Spark."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from tests.read.tables import position, project_at, write_table

from sluice.declare.project import Project, load
from sluice.delta.intervals import Note, record
from sluice.delta.places.lake_layout import layout
from sluice.language.interval import Interval
from sluice.limits import Limits
from sluice.operate.explain import explain

SALES = pa.table({"basket_id": pa.array([1], pa.int64()), "product_id": pa.array([2], pa.int32())})
DAY = Interval(datetime(2017, 1, 1, tzinfo=UTC), datetime(2017, 1, 2, tzinfo=UTC))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return project_at(tmp_path)


def steps(project: Project, name: str) -> list[tuple[str, str, str]]:
    told = explain(project, project.graph.table(name), DAY.end)
    return [(step.table, step.next, step.reason) for step in told]


def deliver(project: Project, name: str) -> None:
    uri = layout(project).uri(f"shop.{name}", "intervals")
    record(uri, Note(DAY, "files", 1, 1, 0, 1))


def test_a_source_that_was_never_delivered_is_one_step(project: Project) -> None:
    assert steps(project, "sales") == [
        ("shop.sales", "ingest", "0 delivered; due: [2017-01-01, 2017-01-02) (1 interval)")
    ]


def test_intervals_are_shown_in_the_pipelines_own_time(tmp_path: Path) -> None:
    pipeline = tmp_path / "config" / "pipelines" / "p.yaml"
    pipeline.parent.mkdir(parents=True)
    (tmp_path / "config" / "sluice.yaml").write_text("lake: lake\n")
    pipeline.write_text(
        "pipeline: p\nschedule: '@daily'\ntimezone: Europe/Berlin\nstart_date: 2024-01-01\n"
        "end_date: 2024-01-04\nsources: {s: {path: 'l/{interval_start:%Y-%m-%d}/', format: json, "
        "schema: id INT}}\n"
    )
    project = load(tmp_path / "config")
    (step,) = explain(project, project.graph.table("s"))
    bounds = "[2024-01-01T00:00:00+01:00, 2024-01-04T00:00:00+01:00)"
    assert step.reason == f"0 delivered; due: {bounds} (3 intervals)"


def test_of_every_large_table_it_says_how_many_changed_rows_are_marked(project: Project) -> None:
    """Of those that only wait or are to be delivered, too."""
    place = pa.table({"_sluice_interval": [DAY.start], "_sluice_id": ["a"]})
    write_table(project, "sales", SALES, position(1))
    write_table(project, "sales__deliveries", place, position(1))
    write_table(project, "products", pa.table({"product_id": pa.array([1], pa.int32())}))
    deliver(project, "sales")
    large = project.model_copy(update={"limits": Limits(merged_bytes=-1, marked_share=1_000)})
    said = "; up to 1,000 changed rows are marked; more, or rows in few files, rewrite these files"
    for name in ("sales", "products"):
        plain = [(table, way, reason + said) for table, way, reason in steps(project, name)]
        assert steps(large, name) == plain


def test_a_source_with_a_key_keeps_its_deliveries_and_the_latest_of_each(project: Project) -> None:
    write_table(project, "sales", SALES, position(1))
    deliver(project, "sales")
    deliver(project, "events")
    gone = "without files now: [2017-01-01, 2017-01-02) (1 interval)"  # there never were any
    delivered = f"1 delivered, the last one of 2017-01-01; {gone}"
    assert [step[:2] for step in steps(project, "sales")] == [
        ("shop.sales__deliveries", "ingest"),
        ("shop.sales", "wait"),
    ]
    assert steps(project, "sales")[0][2] == delivered
    assert steps(project, "events") == [("shop.events", "ingest", delivered)]
