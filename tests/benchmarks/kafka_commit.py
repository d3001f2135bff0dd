"""CPU seconds and memory from messages at hand to the committed source, without a broker.

PYTHONPATH=tools python -m tests.benchmarks.kafka_commit --rows 1000000 --format json

Messages are made as a batch asks for them, so memory is what Sluice holds; the client of Kafka
would hold 32 MB more.
"""

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

from tests.benchmarks.kafka import declare
from tests.benchmarks.kafka_messages import FORMATS, REGISTERED, message
from tests.support.registry import registry

from sluice.declare.project import load
from sluice.engine.advance import Run
from sluice.operate.run import deliver
from sluice.sources.kafka.client import Brokers, PolledMessages
from sluice.sources.kafka.message import Message, arrange_messages, bytes_of
from sluice.sources.kafka.offsets import Offsets, TopicDescription
from sluice.sources.spec import MessageFormat
from sluice.spark.session import Spark, with_spark

CONNECTION = '{"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}}'
making = 0.0


def stand_in(format_: MessageFormat, rows: int) -> None:
    """Let brokers be asked for that many messages of one partition."""
    some = [message(n, format_) for n in range(200)]

    def read(brokers: Brokers, start: Offsets, end: Offsets) -> Generator[PolledMessages]:
        global making  # noqa: PLW0603
        for first in range(start[0], end[0], brokers.topic.max_rows):
            began = time.thread_time()
            following = min(first + brokers.topic.max_rows, end[0])
            offsets = range(first, following)
            sent = arrange_messages(
                Message(0, n, 1_714_557_600_000, *some[n % 200]) for n in offsets
            )
            making += time.thread_time() - began
            parts = sent.to_batches()
            yield PolledMessages({0: following}, parts, sum(map(bytes_of, parts)))

    Brokers.read = read  # type: ignore[assignment, method-assign]
    Brokers.describe = lambda _: TopicDescription("c", "t", "i", {0: 0}, {0: rows})  # type: ignore[assignment, method-assign]


def main() -> None:
    """Measure one format."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--format", choices=FORMATS[:4], default="json")
    parser.add_argument("--bounds", default="", help="settings of the topic, as 'max_rows: 50000'")
    asked = parser.parse_args()
    stand_in(asked.format, asked.rows)
    os.environ["AIRFLOW_CONN_BENCH"] = CONNECTION
    with registry(REGISTERED) as address, tempfile.TemporaryDirectory() as at:
        os.environ["AIRFLOW_CONN_BENCH_REGISTRY"] = address
        declare(Path(at, "config"), "t", asked.format, asked.bounds, is_keyed=False)
        project = load(Path(at, "config"))

        def work(spark: Spark) -> None:
            began = time.process_time()
            reports = list(deliver(spark, project, project.graph.table("orders"), Run("bench"), ()))
            used = time.process_time() - began - making
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(
                f"{asked.format}: {asked.rows:,} rows, {used:.2f} CPU s, {memory} MB, "
                f"{len(reports)} batches"
            )

        with_spark(project.spark, work)


if __name__ == "__main__":
    main()
