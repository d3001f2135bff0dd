"""One Spark session a process, started only when a batch has something to do.

The same jobs run in a Spark of their own (local, standalone, YARN, Kubernetes by `master`) and
through Spark Connect; what they need of either is set here.
"""

import os
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sluice.runtime.jars import classpath
from sluice.runtime.java import environment
from sluice.specs.project import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
LOGGING = Path(__file__).with_name("log4j2.properties")
RUNTIME_CONF: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
STATIC_CONF: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
SMALL: Mapping[str, str] = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
}
LARGE: Mapping[str, str] = {
    "spark.sql.shuffle.partitions": "64",
    "spark.sql.adaptive.enabled": "true",
}


class Spark:
    """A session that starts at its first use."""

    def __init__(self, settings: SparkSettings):
        self.settings = settings

    @cached_property
    def session(self) -> "SparkSession":
        """The session; the process's own if there is one."""
        session = open_session(self.settings)
        for name, value in RUNTIME_CONF.items():
            session.conf.set(name, value)
        return session

    @property
    def is_started(self) -> bool:
        """Whether anything has needed it yet."""
        return "session" in self.__dict__

    def tune(self, *, small: bool) -> "SparkSession":
        """The session, set up for a small batch (few jobs) or a large one (many tasks)."""
        for name, value in (SMALL if small else LARGE).items():
            if name not in self.settings.conf:
                self.session.conf.set(name, value)
        return self.session

    def stop(self) -> None:
        """End it, if it was started."""
        if self.is_started:
            self.session.stop()


def with_spark(settings: SparkSettings, work: Callable[["Spark"], T]) -> T:
    """What `work` returns; the session, if one was needed, is stopped afterwards."""
    spark = Spark(settings)
    try:
        return work(spark)
    finally:
        spark.stop()


def open_session(settings: SparkSettings) -> "SparkSession":
    """A session by the project's settings, or by SPARK_REMOTE, or that of spark-submit."""
    from pyspark.sql import SparkSession

    remote = os.environ.get("SPARK_REMOTE")
    if remote or settings.engine == "connect":
        return SparkSession.Builder().remote(remote or settings.remote).getOrCreate()
    if active := SparkSession.getActiveSession():
        return active
    os.environ.update(environment())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.Builder().appName("sluice")
    for name, value in local_conf(settings).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def local_conf(settings: SparkSettings) -> dict[str, str]:
    """The whole configuration of a Spark that a process starts for itself."""
    jars = os.pathsep.join(str(path) for path in classpath())
    return {
        "spark.master": settings.master,
        "spark.driver.extraClassPath": jars,
        "spark.executor.extraClassPath": jars,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
        **STATIC_CONF,
        **RUNTIME_CONF,
        **settings.conf,
    }
