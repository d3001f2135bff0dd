"""What computes in a test: a session in this process, or Spark itself."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.java import BRIEF

from ports import free_port
from sluice.declare.settings import Driver
from sluice.spark import session
from sluice.spark.jars import HADOOP, classpath, hadoop_of_spark
from sluice.spark.java import environment
from sluice.spark.session import (
    CODE_CACHE,
    LOOPBACK,
    SMALL,
    STATIC_CONF,
    keep_classes,
)
from sluice.spark.starting import hush, is_older

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOMY = "-Xms1g -Xmn400m -XX:MetaspaceSize=256m"  # a small heap is collected all the time
PORT = "spark.connect.grpc.binding.port"
DRIVERS: tuple[Driver, ...] = (
    ("postgresql", "s3") if hadoop_of_spark() == HADOOP else ("postgresql",)
)
CONF = {
    **STATIC_CONF,
    **session.conf(),
    **LOOPBACK,
    **SMALL,
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.driver.extraJavaOptions": f"{CODE_CACHE} {BRIEF} {ROOMY}",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
}
IN_THIS_PROCESS = "SPARK_CONNECT_MODE_ENABLED"  # PySpark's switch to columns without a JVM


SETS = ("array_distinct", "array_except", "array_intersect", "array_union", "arrays_overlap")
DIFFERENT = ("is_valid_variant", "collect_set", *SETS)  # with Spark 4.1: see decision 0061


def differs(sql: str) -> bool:
    """True if the installed Spark is older than the recorded one, and may answer otherwise."""
    is_old = is_older(version("pyspark-client"), "4.2")
    return is_old and any(name in sql for name in DIFFERENT)


@contextmanager
def running_spark(folder: Path) -> Iterator["SparkSession"]:
    """Spark with Delta on two cores, its warehouse in `folder`; others reach it at `address_of`."""
    from pyspark.sql import SparkSession

    hush()
    # It would say at the very end, where nobody listens any more, that it closes its connections.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    os.environ.update(environment())
    _end_java()
    jars = os.pathsep.join(map(str, classpath(drivers=DRIVERS)))
    conf = {
        **CONF,
        PORT: str(free_port()),
        "spark.driver.extraClassPath": jars,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
    }
    builder = SparkSession.Builder().master("local[2]").appName("sluice-tests")
    for name, value in conf.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    keep_classes(session.sparkContext._jvm)
    try:
        yield session
    finally:
        session.stop()


def _end_java() -> None:
    """End the Java of an earlier Spark of this process, which would keep its class path."""
    from pyspark import SparkContext

    if (gateway := SparkContext._gateway) and SparkContext._active_spark_context is None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(60)
        SparkContext._gateway = SparkContext._jvm = None


def address_of(session: "SparkSession") -> str:
    """The address at which other processes use that Spark."""
    return f"sc://127.0.0.1:{session.conf.get(PORT)}"


def session_in_this_process() -> "SparkSession":
    """A session without a JVM."""
    from sluice.interpreter.local_session import Session

    return Session()


def switch(session: "SparkSession | None") -> None:
    """Have PySpark and Sluice use that session in this process, or Spark if there is none."""
    from pyspark.sql.connect.session import SparkSession as Client

    if session is None:
        os.environ.pop(IN_THIS_PROCESS, None)
    else:
        os.environ[IN_THIS_PROCESS] = "1"
    Client._default_session = Client._active_session.session = session  # type: ignore[assignment]
