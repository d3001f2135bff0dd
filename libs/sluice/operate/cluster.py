"""Requirements of a cluster's Spark, checked against one that runs: `doctor --spark`.

docs/cluster.md has the same table. Nothing is written. A cluster that is older than the client is
found before anything else is asked of it, because other answers would mislead.
"""

import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from sluice.declare.project import Project
from sluice.declare.stores import store_of, takes_spark
from sluice.delta.places.lake_layout import layout, stored_tables
from sluice.errors import SluiceError
from sluice.spark.session import RUNTIME_CONF, STATIC_CONF, remote_of
from sluice.spark.starting import is_older, lasting, minor, run_or_install

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

DELTA = ("spark.sql.extensions", "spark.sql.catalog.spark_catalog")
FETCH = "put the jars that `python -m sluice.spark.jars` prints on its class path"
MOUNT = "mount the lake there at the same path, or see docs/object_stores.md"
RESTART = "restart it with `--conf {}={}`, or by `sluice connect start`"
NO_DELTA = ("DATA_SOURCE_NOT_FOUND", "ClassNotFound", "NoClassDef", "NoSuchMethod")
RAISED = re.compile(r"Traceback \(.*\n(?:[ \t].*\n|\n)*([\w.]+: .+)")  # by Python
LONGEST = 200  # letters of a fault
PATIENCE = 60.0  # seconds for a cluster to start an executor
UNCHECKED = "other items were not checked"
FREE = (
    "start a worker with free cores and memory, or lower `spark.executor.memory` and "
    "`spark.executor.cores` in sluice.yaml"
)


@dataclass(frozen=True)
class Requirement:
    """One thing that a cluster must have; `repair` is empty if it has it."""

    item: str
    needs: str
    found: str
    repair: str = ""


def examine_cluster(project: Project, session: "SparkSession") -> Iterator[Requirement]:
    """Yield each requirement of the project's Spark, with what it has."""
    client = version("pyspark-client")
    if remote := remote_of(project.spark):
        yield _version(remote, session.version, client)
        is_other = is_older(session.version, client)
    else:
        yield (executors := _version_of_executors(session, client))
        is_other = executors.repair != ""
    if is_other:
        return
    for name in DELTA:
        yield _setting(session, name, STATIC_CONF[name])
    yield _delta(session)
    for name, value in RUNTIME_CONF.items():
        yield _changeable(session, name, value)
    lake = layout(project)
    if store := store_of(lake.root):
        for name, value in store.conf.items():
            yield _setting(session, name, value)
    yield _lake(session, lake.root, lambda: next(stored_tables(lake), None))
    yield from _executors(session)


def _version(place: str, found: str, client: str) -> Requirement:
    repair = ""
    if is_older(found, client):
        repair = f"{run_or_install(client, found)}; {UNCHECKED}"
    elif minor(found) != minor(client):
        repair = f"newer than the client, which is untested: run Spark {minor(client)} there"
    return Requirement(f"version of {place}", f"Spark {minor(client)}", f"Spark {found}", repair)


def _version_of_executors(session: "SparkSession", client: str) -> Requirement:
    """Run a task, which executors of another Spark can't read. The driver's Spark is this one."""
    context = session.sparkContext
    master = str(context.master)
    item, needs = f"version of {master}", f"Spark {minor(client)}"
    if not master.startswith("local") and not _await_executor(context):
        found = f"no executor in {PATIENCE:.0f} s"
        return Requirement(item, needs, found, f"{FREE}; {UNCHECKED}")
    try:
        with lasting():
            session.range(1).collect()
    except SluiceError as error:
        return Requirement(item, needs, error.message, f"{error.hint}; {UNCHECKED}")
    return Requirement(item, needs, f"Spark {session.version}")


def _await_executor(context: "SparkContext") -> bool:
    """Return True once an executor has registered, and False if none does in a minute."""
    store, begun = context._jsc.sc().statusStore(), time.monotonic()  # noqa: SLF001 - shown nowhere else
    while time.monotonic() - begun < PATIENCE:
        if store.executorList(True).size() > 1:  # beside the driver
            return True
        time.sleep(0.2)
    return False


def _setting(session: "SparkSession", name: str, value: str) -> Requirement:
    """Check a setting that only a restart changes; a list of extensions contains it."""
    found = session.conf.get(name, "") or "not set"
    is_met = value in found.split(",")
    return Requirement(name, value, found, "" if is_met else RESTART.format(name, value))


def _changeable(session: "SparkSession", name: str, value: str) -> Requirement:
    """Check that a setting of a session can be made, as each batch does."""
    try:
        session.conf.set(name, value)
        return Requirement(name, value, session.conf.get(name) or "not set")
    except Exception as error:  # noqa: BLE001 - whatever a managed cluster refuses
        return Requirement(name, value, _words(error), RESTART.format(name, value))


def _delta(session: "SparkSession") -> Requirement:
    """Look for Delta's classes: they name a missing table, and Spark a missing source."""
    fault = ""
    try:
        session.read.format("delta").load("/no/such/table").schema  # noqa: B018 - it is analysed
    except Exception as error:  # noqa: BLE001 - Java's are of many kinds
        fault = _words(error)
    is_missing = any(name in fault for name in NO_DELTA)
    found = fault if is_missing else "found"
    return Requirement("jars of Delta", "found", found, FETCH if is_missing else "")


def _lake(session: "SparkSession", root: str, table: Callable[[], str | None]) -> Requirement:
    """Read a row of a table of the lake, as tasks do."""
    item = f"access to {root}"
    if not takes_spark(root):
        return Requirement(item, "none: Sluice reads for it", "not asked")
    if (name := table()) is None:
        return Requirement(item, "a table is read", "no table yet")
    try:
        session.read.format("delta").load(f"{root}/{name.replace('.', '/')}").limit(1).toArrow()
    except Exception as error:  # noqa: BLE001 - Java's are of many kinds
        fault, repair = _words(error), MOUNT
        if any(missing in fault for missing in NO_DELTA):
            repair = FETCH
        return Requirement(item, f"{name} is read", fault, repair)
    return Requirement(item, f"{name} is read", "read")


def _executors(session: "SparkSession") -> Iterator[Requirement]:
    """Run Python on an executor: aggregators and sort keys of users do."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    repair = (
        f"install Python {here} with pyspark and pyarrow {minor(version('pyarrow'))} on each "
        "worker, and name it in PYSPARK_PYTHON"
    )
    try:
        found = dict(_ask_executor(session))
    except Exception as error:  # noqa: BLE001 - a worker fails in many ways
        yield Requirement("Python of executors", here, _words(error), repair)
        return
    python = found["python"]
    yield Requirement("Python of executors", here, python, "" if python == here else repair)
    for name in ("pyspark", "pyarrow"):
        has = found[name] or "not installed"
        yield Requirement(f"{name} of executors", "installed", has, "" if found[name] else repair)


def _ask_executor(session: "SparkSession") -> list[tuple[str, str]]:
    from pyspark.sql.functions import udf

    def look(name: str) -> str:  # sent by value: it imports all that it uses
        import sys as there
        from importlib.metadata import PackageNotFoundError, version

        if name == "python":
            return f"{there.version_info.major}.{there.version_info.minor}"
        try:
            return version(name)
        except PackageNotFoundError:
            return ""

    names = session.createDataFrame([("python",), ("pyspark",), ("pyarrow",)], "name STRING")
    rows = names.select(
        "name", udf(look, "STRING", useArrow=False)("name").alias("found")
    ).collect()
    return [(row["name"], row["found"]) for row in rows]


def _words(error: Exception) -> str:
    """Return the first line of a fault that says something; of a task's, what failed there.

    A server shows the trace of a worker's Python, whose error is the first line after it.
    """
    if raised := RAISED.search(str(error)):
        return raised[1][:LONGEST]
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    telling = [line for line in lines if not line.startswith("An error occurred while calling")]
    first = (telling or lines or [type(error).__name__])[0]
    return first.rpartition("most recent failure: ")[2][:LONGEST]
