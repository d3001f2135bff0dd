"""`make demo ARGS=--kafka`: a week's lines through a topic, and the same week as files.

It starts a broker on loopback and a second pipeline, `topical`, which equals the demo's except for
the source of its lines. These arrive as Debezium would send them: a snapshot, then the correction
of a day as updates and deletes. Both pipelines run by `sluice run`, without Airflow; then all their
tables are compared row by row. The broker is always stopped.
"""

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder

import debezium
import landing
import story
from broker import Broker, running
from sluice.declare.project import Project, load
from sluice.declare.table import Table
from sluice.delta.places.lake_layout import layout
from stack import ROOT

HOME = ROOT / ".cache" / "demo_kafka"
DAYS = ("--start", str(landing.DEMO_START), "--end", str(landing.DEMO_END))


def demo() -> int:
    """Run it; return 0 if every table is equal."""
    folder = HOME / "landing"
    shutil.rmtree(HOME, ignore_errors=True)
    shutil.copytree(ROOT / "config", HOME / "config")
    of_files = HOME / "config/pipelines/retail.yaml"
    of_files.with_name("topical.yaml").write_text(debezium.with_topic(of_files.read_text("utf-8")))
    with story.doing("delivering a week, starting a broker"):
        landing.split(folder)
    with running() as broker:
        os.environ |= {
            "SLUICE_CONFIG": str(HOME / "config"),
            "SLUICE_LAKE": str(HOME / "lake"),
            "SLUICE_LANDING": str(folder),
            "AIRFLOW_CONN_SHOP_KAFKA": broker.connection,
        }
        return _tell(broker, folder)


def _tell(broker: Broker, folder: Path) -> int:
    broker.topic(debezium.TOPIC, debezium.PARTITIONS)
    first = _week(folder)
    story.chapter(f"{len(first):,} lines as a snapshot in {debezium.TOPIC}")
    with story.doing("sending them"):
        debezium.send(broker, debezium.snapshot(first))
    _run()
    story.chapter(f"A past day is corrected: {landing.CORRECTED_DAY}")
    story.correction(landing.correct(folder))
    debezium.send(broker, debezium.changes(first, _week(folder)))
    _run()
    story.chapter("Every table of the topic's pipeline, compared with that of the files'")
    found = _compared(load(HOME / "config"))
    story.show("topical beside retail", found)
    story.say(f"The pipelines are in {HOME / 'config/pipelines'}.")
    return 0 if all(row["equal"] for row in found) else 1


def _week(folder: Path) -> debezium.Lines:
    files = sorted((folder / "transactions").rglob("*.parquet"))
    return debezium.lines(pa.concat_tables(pq.read_table(file) for file in files))


def _run() -> None:
    for pipeline in ("retail", "topical"):
        command = [str(Path(sys.executable).with_name("sluice")), "run", pipeline, *DAYS]
        subprocess.run(command, check=True, cwd=HOME)


def _compared(project: Project) -> list[dict[str, Any]]:
    found = []
    for table in project.graph.pipeline("topical"):
        if table.is_stored:
            rows = _rows(project, table)
            same = rows == _rows(project, project.graph.table(f"retail.{table.name}"))
            found.append({"table": table.name, "rows": sum(rows.values()), "equal": same})
    return found


def _rows(project: Project, table: Table) -> Counter[str]:
    """Return a table's visible rows with their counts."""
    stored = DeltaTable(layout(project).uri(table.id))
    shown = ", ".join(f'"{name}"' for name in table.columns)
    read = QueryBuilder().register("t", stored).execute(f"SELECT {shown} FROM t")
    return Counter(map(repr, pa.table(read.read_all()).to_pylist()))
