"""Spark Structured Streaming's reader of the topic that `tests.benchmarks.kafka` has filled.

Its connector is fetched into the cache by the same resolver as Delta's jars. It reads all that is
there once (`availableNow`), parses JSON by the declared columns, and appends to a Delta table, in
batches of as many messages as Sluice's.
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import psutil
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.benchmarks.kafka_messages import COLUMNS

from sluice.cache import cache_folder
from sluice.spark import jars
from sluice.spark.jars import classpath
from sluice.spark.java import java_home

SPARK, KAFKA = "org.apache.spark", "org.apache.kafka"
CONNECTOR = (
    (SPARK, "spark-sql-kafka-0-10_2.13", "4.2.0"),
    (SPARK, "spark-token-provider-kafka-0-10_2.13", "4.2.0"),
    (KAFKA, "kafka-clients", "4.2.1"),
    ("org.apache.commons", "commons-pool2", "2.12.1"),
)
BATCH = 50_000  # messages


def connector() -> list[Path]:
    """Return the connector's jars, fetching missing ones first."""
    folder = cache_folder(os.environ) / "spark_kafka"
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}-{version}.jar" for _, name, version in CONNECTOR]
    missing = [each for each, path in zip(CONNECTOR, paths, strict=True) if not path.exists()]
    if missing:
        jars.retrieve(missing, folder)
    return paths


def session() -> SparkSession:
    """Start a Spark with Delta and the connector."""
    os.environ["JAVA_HOME"] = str(java_home(os.environ))
    path = os.pathsep.join(map(str, [*classpath(os.environ), *connector()]))
    settings = {
        "spark.driver.extraClassPath": path,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def deliver(servers: str, topic: str, folder: Path) -> None:
    """Deliver what the topic has, and print what that cost, with Spark's start and without."""
    began = time.perf_counter()
    spark = session()
    ready = time.perf_counter()
    rows = spark.readStream.format("kafka").options(**_options(servers, topic)).load()
    columns = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
    value = F.from_json(F.col("value").cast("string"), columns)
    rows = rows.select(value.alias("v"), "partition", "offset", "timestamp").select("v.*", "*")
    writing = rows.drop("v").writeStream.format("delta").trigger(availableNow=True)
    writing = writing.option("checkpointLocation", str(folder / "checkpoint"))
    query = writing.start(str(folder / "table"))
    query.awaitTermination()
    took = time.perf_counter() - ready
    count = sum(json.loads(each.json)["numInputRows"] for each in query.recentProgress)
    memory, used = _of_processes()
    print(
        f"  Spark: {count:,} rows, {took:.2f} s after {ready - began:.1f} s of start, "
        f"{used:.1f} CPU s with it, {count / took:,.0f} rows/s, {memory} MB",
        flush=True,
    )
    spark.stop()


def _options(servers: str, topic: str) -> Mapping[str, str]:
    return {
        "kafka.bootstrap.servers": servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(BATCH),
    }


def _of_processes() -> tuple[int, float]:
    """Return MB and CPU seconds of this process and its JVM."""
    every = [psutil.Process(), *psutil.Process().children(recursive=True)]
    memory = sum(each.memory_info().rss for each in every) // 2**20
    return memory, sum(sum(each.cpu_times()[:2]) for each in every)


if __name__ == "__main__":
    deliver(*sys.argv[1:3], Path(sys.argv[3]))
