"""What tests of several packages start: one small Spark for the whole run, a browser for a file.

Spark has two cores, Delta's jars and the drivers, and nothing that tests don't need. Tests that
share an Airflow go to one process. With `--engine here` operators are computed by the interpreter.
"""

import gc
import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from tests.support.servers import SERVERS
from xdist.scheduler import LoadFileScheduling

from ports import free_port
from sluice.declare.settings import Driver
from sluice.spark import s3a
from sluice.spark.jars import classpath
from sluice.spark.java import environment
from sluice.spark.looked_up import keep_classes
from sluice.spark.session import CODE_CACHE, LOOPBACK, OPTIMISED_LATER, SMALL, STATIC_CONF
from sluice.spark.starting import hush

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pyspark.sql import SparkSession

LIVE = "tests/airflow/live/"
SMALL_FILES = ("tests/declare/", "tests/language/", "tests/read/")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

settings.register_profile("unhurried", deadline=None)  # a busy machine is not a defect
settings.load_profile("unhurried")

PORT = "spark.connect.grpc.binding.port"

CONF = {
    **STATIC_CONF,
    **s3a.conf(),
    **LOOPBACK,
    **SMALL,
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.driver.extraJavaOptions": f"{CODE_CACHE} {OPTIMISED_LATER} -XX:+UseSerialGC",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
}

DRIVERS: tuple[Driver, ...] = ("postgresql", "s3")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--engine`: what computes. `--store`: the server of the tests of stores."""
    parser.addoption("--engine", choices=["spark", "here"], default="spark")
    parser.addoption("--store", choices=[*SERVERS], default="seaweedfs")


@pytest.fixture(scope="session")
def spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator["SparkSession"]:
    """The session of the whole run, on the engine that was asked for."""
    is_here = request.config.getoption("engine") == "here"
    yield from _here() if is_here else _on_spark(tmp_path_factory)


@pytest.fixture(scope="session")
def remote(spark: "SparkSession") -> str:
    """The address at which other processes use that Spark: they start no JVM of their own."""
    return f"sc://127.0.0.1:{spark.conf.get(PORT)}"


def _here() -> Iterator["SparkSession"]:
    """A session that computes in this process."""
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    from sluice.interpreter.local_session import Session

    session = Session()
    Session._set_default_and_active_session(session)
    yield session


def _on_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """A Spark with Delta, its warehouse in a folder of its own."""
    from pyspark.sql import SparkSession

    hush()
    os.environ.update(environment())
    folder: Path = tmp_path_factory.mktemp("spark")
    builder = SparkSession.Builder().master("local[2]").appName("sluice-tests")
    for name, value in CONF.items():
        builder = builder.config(name, value)
    builder = builder.config(PORT, str(free_port()))
    session = (
        builder.config(
            "spark.driver.extraClassPath", os.pathsep.join(map(str, classpath(drivers=DRIVERS)))
        )
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "local"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    keep_classes(session.sparkContext._jvm)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """The machine's own Chromium; tests are skipped where there is none."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium on the path")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end: Python need not look for waste in it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that use Spark come first, small files in the middle, those of Airflow last."""
    on_spark = {item.path for item in items if "spark" in getattr(item, "fixturenames", ())}
    items.sort(key=lambda item: _place(item.nodeid, is_on_spark=item.path in on_spark))


def _place(nodeid: str, *, is_on_spark: bool) -> int:
    if is_on_spark:
        return 0
    if nodeid.startswith(SMALL_FILES):
        return 1
    return 3 if nodeid.startswith(LIVE) else 2


class ByService(LoadFileScheduling):
    """File by file, as xdist's own, but files that share an Airflow go to one process together.

    Half of the processes (one of three) take files from the end, and so need no Spark at first.
    """

    def _split_scope(self, nodeid: str) -> str:
        return LIVE if nodeid.startswith(LIVE) else str(super()._split_scope(nodeid))

    def _assign_work_unit(self, node: Any) -> None:
        if self.nodes.index(node) >= (len(self.nodes) + 1) // 2:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByService | None:
    """How `--dist loadfile` shares out the tests."""
    return ByService(config, log) if config.getvalue("dist") == "loadfile" else None
