"""The demo's lines, sent through a topic as Debezium would, end in the tables that files end in.

A second pipeline of the project is the demo's own, but for the source of its lines.
"""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.sources.kafka.conftest import CONNECTION
from tests.support.lake import counted, frozen, stored_rows

import debezium
import landing
import shopping
from broker import Broker
from sluice.declare.project import Project, load
from sluice.delta.places.lake_layout import layout
from sluice.language.interval import Interval
from sluice.limits import Limits
from sluice.operate.run import run
from sluice.spark.session import Spark

ROOT, DAY = Path(__file__).parents[3], date(2017, 5, 8)
INTERVAL = Interval(datetime(2017, 5, 8, tzinfo=UTC), datetime(2017, 5, 9, tzinfo=UTC))
HERE = 100_000_000  # bytes; all that a day brings


@pytest.fixture
def project(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The demo's project with a second pipeline, whose lines come by a topic."""
    monkeypatch.setenv(CONNECTION, broker.connection)
    monkeypatch.setenv("SLUICE_LAKE", str(tmp_path / "lake"))
    monkeypatch.setenv("SLUICE_LANDING", str(tmp_path / "landing"))
    shutil.copytree(ROOT / "config", tmp_path / "config")
    of_files = tmp_path / "config/pipelines/retail.yaml"
    other = debezium.with_topic(of_files.read_text("utf-8"))
    of_files.with_name("topical.yaml").write_text(other, "utf-8")
    limits = replace(Limits(), read_here_bytes=HERE)
    return load(tmp_path / "config").model_copy(update={"limits": limits})


def test_topics_end_in_the_tables_of_files(
    project: Project, broker: Broker, tmp_path: Path
) -> None:
    broker.topic(debezium.TOPIC, debezium.PARTITIONS)
    landing.split(tmp_path / "landing", DAY, date(2017, 5, 9))
    first = deliver(tmp_path, shopping.transactions(DAY).slice(0, 400))
    debezium.send(broker, debezium.snapshot(first))
    check(project)
    corrected = dict(first)
    for key in [*first][5:9]:
        del corrected[key]
    for key in [*first][20:25]:
        corrected[key] = {**first[key], "sales_value": Decimal("99.90")}
    rows = [*corrected.values()]
    deliver(tmp_path, pa.Table.from_pylist(rows, schema=shopping.TRANSACTIONS))
    debezium.send(broker, debezium.changes(first, corrected))
    check(project)


def deliver(folder: Path, lines: pa.Table) -> debezium.Lines:
    """Land the day's lines as its file; return them by their keys."""
    pq.write_table(lines, folder / f"landing/transactions/{DAY}/part-0.parquet")
    return debezium.lines(lines)


def check(project: Project) -> None:
    """Run both pipelines, that of the topic twice, and compare every table row by row."""
    for name in ("retail", "topical", "topical"):
        run(Spark(project.spark), project, project.pipelines[name], [INTERVAL])
    found = {name: dict(tables(project, name)) for name in ("retail", "topical")}
    assert found["topical"] == found["retail"]
    assert all(found["retail"][name] for name in ("transactions", "top_products", "basket_steps"))


def tables(project: Project, pipeline: str) -> Iterator[tuple[str, Any]]:
    """Yield the rows of each table as its readers see them, counted."""
    for table in project.graph.pipeline(pipeline):
        if table.is_stored:
            rows = stored_rows(DeltaTable(layout(project).uri(table.id)))
            seen = (frozen({c: row[c] for c in table.columns}) for row in rows)
            yield table.name, counted(seen)
