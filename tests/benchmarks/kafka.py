"""Rows per second from a topic to the committed source, memory, and the cost of a poll.

    python -m tests.benchmarks.kafka --rows 1000000 --format json

It starts a broker, fills a topic with messages of 200 bytes, and delivers them in this process.
Memory is the greatest resident size of the process; a small run first fills caches and imports.
"""

import argparse
import json
import os
import resource
import tempfile
import time
from pathlib import Path

from tests.support.kafka import Broker, running

from sluice.declare.project import load
from sluice.engine.advance import Run
from sluice.sources.stream import ingest_stream
from sluice.spark.session import Spark, with_spark

PIPELINE = """\
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  {name}:
    kafka: {{topic: {name}, connection: bench, max_rows: {batch}}}
    value: {{format: {format_}}}
    schema: order_id BIGINT, customer_id BIGINT, amount DECIMAL(12,2), at TIMESTAMP, note STRING
    {key}
"""


def message(n: int, format_: str) -> tuple[bytes, bytes]:
    """Return the nth message, 200 bytes of JSON or a change that holds them."""
    at = f"2024-05-{1 + n % 28:02} 10:00:00"
    row = {"order_id": n, "customer_id": n % 9973, "amount": f"{n % 1000}.25", "at": at}
    row["note"] = "x" * (200 - len(json.dumps({**row, "note": ""})))
    sent = {"op": "c", "before": None, "after": row} if format_ == "debezium-json" else row
    return json.dumps({"order_id": n}).encode(), json.dumps(sent).encode()


def measure(broker: Broker, folder: Path, name: str, rows: int, asked: argparse.Namespace) -> None:
    """Deliver a topic of that many messages, then poll it again; print both."""
    broker.topic(name, 4)
    for p in range(4):
        broker.send(name, (message(n, asked.format) for n in range(p, rows, 4)), p)
    key = "key: [order_id]" if asked.format == "debezium-json" else ""
    (folder / "pipelines").mkdir(parents=True)
    (folder / "sluice.yaml").write_text(f"lake: {folder / 'lake'}\n")
    text = PIPELINE.format(name=name, batch=asked.batch, format_=asked.format, key=key)
    (folder / "pipelines" / "shop.yaml").write_text(text)
    project = load(folder)

    def deliver(spark: Spark) -> None:
        for what in ("delivery", "empty poll"):
            began, cpu = time.perf_counter(), time.process_time()
            reports = ingest_stream(spark, project, project.graph.table(name), Run("bench"))
            took, used = time.perf_counter() - began, time.process_time() - cpu
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            engines = ", ".join(sorted({str(r.engine) for r in reports if r.engine}))
            print(
                f"{name} {asked.format} {what}: {rows:,} rows, {took:.2f} s, {used:.2f} CPU s, "
                f"{rows / took:,.0f} rows/s, {memory} MB, {len(reports)} batches, {engines}"
            )

    with_spark(project.spark, deliver)


def main() -> None:
    """Measure as asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=100_000)
    parser.add_argument("--format", choices=["json", "debezium-json"], default="json")
    asked = parser.parse_args()
    with running() as broker, tempfile.TemporaryDirectory() as folder:
        os.environ["AIRFLOW_CONN_BENCH"] = broker.connection
        measure(broker, Path(folder) / "warm", "warm", 1_000, asked)
        measure(broker, Path(folder) / "full", "full", asked.rows, asked)


if __name__ == "__main__":
    main()
