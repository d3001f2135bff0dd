"""The demo's lines, sent through a topic as Debezium would, end in the tables that files end in.

A second pipeline of the project is the demo's own, but for the source of its lines.
"""

import json
import shutil
from base64 import b64encode
from collections.abc import Iterable, Iterator
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
from tests.support.kafka import Broker, Message
from tests.support.lake import Row, counted, frozen, stored_rows

import landing
import shopping
from sluice.declare.project import Project, load
from sluice.delta.places.lake import layout
from sluice.language.interval import Interval
from sluice.limits import Limits
from sluice.operate.run import run
from sluice.spark.session import Spark

ROOT, TOPIC, DAY = Path(__file__).parents[3], "shop.public.transactions", date(2017, 5, 8)
INTERVAL = Interval(datetime(2017, 5, 8, tzinfo=UTC), datetime(2017, 5, 9, tzinfo=UTC))
FILES = """\
    path: "${SLUICE_LANDING:-landing}/transactions/{interval_start:%Y-%m-%d}/"
    format: parquet
"""
MESSAGES = f"""\
    kafka: {{topic: {TOPIC}, connection: shop_kafka}}
    value: {{format: debezium-json}}
"""
HERE = 100_000_000  # bytes; all that a day brings
KEY = ("basket_id", "product_id")
MONEY = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal"}
SCALE = {"parameters": {"scale": "2", "connect.decimal.precision": "12"}}
TYPES: dict[pa.DataType, Row] = {
    pa.int64(): {"type": "int64"},
    pa.int32(): {"type": "int32"},
    shopping.MONEY: MONEY | SCALE,
    pa.timestamp("us", "UTC"): {"type": "string", "name": "io.debezium.time.ZonedTimestamp"},
}
FIELDS = [{"field": f.name, **TYPES[f.type]} for f in shopping.TRANSACTIONS]
IMAGES = [{"type": "struct", "fields": FIELDS, "field": name} for name in ("before", "after")]
ENVELOPE = {"type": "struct", "fields": [*IMAGES, {"type": "string", "field": "op"}]}
KEYS = {"type": "struct", "fields": [f for f in FIELDS if f["field"] in KEY]}


@pytest.fixture
def project(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The demo's project with a second pipeline, whose lines come by a topic."""
    monkeypatch.setenv(CONNECTION, broker.connection)
    monkeypatch.setenv("SLUICE_LAKE", str(tmp_path / "lake"))
    monkeypatch.setenv("SLUICE_LANDING", str(tmp_path / "landing"))
    shutil.copytree(ROOT / "config", tmp_path / "config")
    of_files = tmp_path / "config/pipelines/retail.yaml"
    text = of_files.read_text("utf-8")
    assert text.count(FILES) == text.count("pipeline: retail") == 1
    other = text.replace(FILES, MESSAGES).replace("pipeline: retail", "pipeline: topical")
    of_files.with_name("topical.yaml").write_text(other, "utf-8")
    limits = replace(Limits(), computed_here_bytes=HERE, read_here_bytes=HERE)
    return load(tmp_path / "config").model_copy(update={"limits": limits})


def test_lines_of_a_topic_end_in_the_same_tables_as_files(
    project: Project, broker: Broker, tmp_path: Path
) -> None:
    broker.topic(TOPIC, 2)
    landing.split(tmp_path / "landing", DAY, date(2017, 5, 9))
    first = deliver(tmp_path, shopping.transactions(DAY).slice(0, 400))
    send(broker, (change("r", row) for row in first.values()))
    check(project)
    corrected = dict(first)
    for key in [*first][5:9]:
        del corrected[key]
    for key in [*first][20:25]:
        corrected[key] = {**first[key], "sales_value": Decimal("99.90")}
    rows = [*corrected.values()]
    deliver(tmp_path, pa.Table.from_pylist(rows, schema=shopping.TRANSACTIONS))
    send(broker, changes(first, corrected))
    check(project)


def deliver(folder: Path, lines: pa.Table) -> dict[tuple[int, int], Row]:
    """Land the day's lines as its file; return them by their keys."""
    pq.write_table(lines, folder / f"landing/transactions/{DAY}/part-0.parquet")
    return {tuple(row[name] for name in KEY): row for row in lines.to_pylist()}  # type: ignore[misc]


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


def changes(old: dict[tuple[int, int], Row], new: dict[tuple[int, int], Row]) -> Iterator[Message]:
    for key, row in old.items():
        if key not in new:
            yield change("d", row)
            yield change("d", row)[0], None  # the tombstone behind it
        elif new[key] != row:
            yield change("u", new[key])


def change(op: str, row: Row) -> Message:
    """Return a change as Debezium's connector of PostgreSQL sends it, with its schema."""
    key = {name: row[name] for name in KEY}
    only_key = {name: row[name] if name in KEY else None for name in row}
    before, after = (captured(only_key), None) if op == "d" else (None, captured(row))
    envelope = {"before": before, "after": after, "op": op, "ts_ms": 1, "transaction": None}
    return tuple(  # type: ignore[return-value]
        json.dumps({"schema": schema, "payload": payload}).encode()
        for schema, payload in ((KEYS, key), (ENVELOPE, envelope))
    )


def captured(row: Row) -> Row:
    return {name: value_of(value) for name, value in row.items()}


def value_of(value: Any) -> Any:
    match value:
        case Decimal():
            return b64encode(int(value * 100).to_bytes(8, "big", signed=True)).decode()
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
    return value


def send(broker: Broker, messages: Iterable[Message]) -> None:
    """Send messages to a partition of their key's."""
    every = list(messages)
    for partition in range(2):
        own = (m for m in every if m[0] and sum(m[0]) % 2 == partition)
        broker.send(TOPIC, own, partition)
