"""Rows per second from a topic to the committed source, memory, and the cost of a poll.

    PYTHONPATH=tools python -m tests.benchmarks.kafka --rows 1000000 --format json --format avro

It starts a broker and fills topics with messages of 200 bytes. Each is delivered by a process of
its own, which then polls it again. CPU seconds are those of all of its threads; memory is its
greatest resident size. The broker's work is not counted.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.kafka_messages import COLUMNS, FORMATS, REGISTERED, message
from tests.support.registry import registry

from broker import Broker, running
from sluice.declare.project import load
from sluice.engine.advance import Run
from sluice.operate import run as runs
from sluice.sources import MessageFormat
from sluice.spark.session import Spark, with_spark

PARTITIONS = 4
PIPELINE = """\
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  orders:
    kafka: {{topic: {topic}, connection: bench{bounds}}}
    value: {value}
    schema: {schema}
    {key}
"""


def declare(
    folder: Path, topic: str, format_: MessageFormat, bounds: str, *, is_keyed: bool
) -> None:
    """Write the configuration of one source."""
    value = {"format": format_} | ({"registry": "bench_registry"} if "avro" in format_ else {})
    text = PIPELINE.format(
        topic=topic,
        bounds=f", {bounds}" if bounds else "",
        value=json.dumps(value),
        schema=", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items()),
        key="key: [order_id]" if is_keyed else "",
    )
    (folder / "pipelines").mkdir(parents=True)
    (folder / "sluice.yaml").write_text(f"lake: {folder / 'lake'}\n")
    (folder / "pipelines" / "shop.yaml").write_text(text)


def fill(broker: Broker, topic: str, format_: MessageFormat, rows: int) -> None:
    """Send that many messages to the partitions of a new topic."""
    broker.topic(topic, PARTITIONS)
    for p in range(PARTITIONS):
        broker.send(topic, (message(n, format_) for n in range(p, rows, PARTITIONS)), p)


def deliver(folder: Path) -> None:
    """Deliver what a topic has, and poll it again; print what both cost."""
    project = load(folder)

    def work(spark: Spark) -> None:
        for what in ("delivery", "empty poll"):
            began, cpu = time.perf_counter(), time.process_time()
            table = project.graph.table("orders")
            reports = list(runs.deliver(spark, project, table, Run("bench"), ()))
            took, used = time.perf_counter() - began, time.process_time() - cpu
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            engines = ", ".join(sorted({str(r.engine) for r in reports if r.engine}))
            rows = sum(r.rows_in or 0 for r in reports if r.kind == "source")
            print(
                f"  {what}: {rows:,} rows, {took:.2f} s, {used:.2f} CPU s, "
                f"{rows / took:,.0f} rows/s, {memory} MB, {len(reports)} batches, {engines}",
                flush=True,
            )

    with_spark(project.spark, work)


def main() -> None:
    """Measure as asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--format", choices=FORMATS[:4], action="append")
    parser.add_argument("--bounds", default="", help="settings of the topic, as 'max_rows: 50000'")
    parser.add_argument("--key", action="store_true", help="keep the last row of each key")
    parser.add_argument("--spark", action="store_true", help="JSON by Spark's own reader, too")
    parser.add_argument("--deliver", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.deliver:
        deliver(asked.deliver)
        return
    with running() as broker, registry(REGISTERED) as address, tempfile.TemporaryDirectory() as at:
        os.environ["AIRFLOW_CONN_BENCH"] = broker.connection
        os.environ["AIRFLOW_CONN_BENCH_REGISTRY"] = address
        for format_ in asked.format or FORMATS[:4]:
            fill(broker, format_, format_, asked.rows)
            declare(Path(at, format_), format_, format_, asked.bounds, is_keyed=asked.key)
            print(format_, flush=True)
            own = [sys.executable, "-m", "tests.benchmarks.kafka", "--deliver", f"{at}/{format_}"]
            subprocess.run(own, check=True)
        if asked.spark:
            fill(broker, "spark", "json", asked.rows)
            other = ("tests.benchmarks.kafka_spark", broker.servers, "spark", f"{at}/spark")
            subprocess.run([sys.executable, "-m", *other], check=True)


if __name__ == "__main__":
    main()
