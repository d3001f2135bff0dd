"""Faults of a lake, found before a batch, a reader or a VACUUM meets them; and of a cluster.

Each finding has a name, a description, and a next step. Those that `stops` marks block the next
batch or a reader; the others will later, or are clutter. Nothing is changed and no Spark is
started. Brokers of topics and schema registries are asked, too.

docs/cluster.md has the table of what a cluster's Spark needs. Nothing is written. A cluster that is
older than the client is found before anything else is asked of it, because other answers would
mislead.
"""

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import version
from itertools import chain
from typing import TYPE_CHECKING

from sluice.declare.project import Project
from sluice.declare.stores import store_of, takes_spark
from sluice.declare.table import Table
from sluice.delta.failures import stored_failures
from sluice.delta.intervals import deliveries
from sluice.delta.log.opened import exists
from sluice.delta.log.position import head
from sluice.delta.places.lake_layout import (
    LEFT_BEHIND,
    REPAIR,
    layout,
    leftovers,
    stored_tables,
    undeclared_tables,
)
from sluice.delta.upkeep import erasure
from sluice.delta.upkeep.maintenance import committed_at
from sluice.engine.plan import nodes_of, plan_batch
from sluice.errors import MissingDependency, SluiceError
from sluice.extras import is_installed
from sluice.language.names import ARRIVALS, INTERVALS, QUARANTINE, declared_id, internal
from sluice.operate.delivering import delivering
from sluice.operate.maintain import consumers, kept_in
from sluice.read.status import missing
from sluice.spark.jars import delta
from sluice.spark.session import RUNTIME_CONF, STATIC_CONF, remote_of
from sluice.spark.starting import is_older, lasting, minor, run_or_install

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

NOTES = (QUARANTINE, INTERVALS, ARRIVALS)
MISSING = "missing-intervals"
UNDECLARED = "undeclared"
LEFT = "left-behind"
UNTESTED = "untested-versions"
# Versions that the core suite has passed with: `make matrix`, and the table of docs/install.md.
PACKAGES = ("pyspark-client", "deltalake", "pyarrow", "pandas")
TESTED = (  # Python, then each of the packages, by minor version
    ("3.11", "4.1", "1.6", "25.0", "2.2"),
    ("3.11", "4.2", "1.6", "26.0", "2.3"),
    ("3.12", "4.1", "1.6", "26.0", "2.3"),
    ("3.13", "4.2", "1.6", "26.0", "2.3"),
    ("3.14", "4.2", "1.6", "26.0", "2.3"),
)
HARMLESS = ("orphan-files", "short-retention", MISSING, UNDECLARED, LEFT, UNTESTED)


@dataclass(frozen=True)
class Finding:
    """One fault of one Delta table."""

    table: str
    name: str
    what: str
    repair: str

    @property
    def stops(self) -> bool:
        """True if something can't continue because of it."""
        return self.name not in HARMLESS


def examine(project: Project, tables: Iterable[Table], now: datetime) -> list[Finding]:
    """Return all faults of these tables and of their internal tables."""
    found: list[Finding] = []
    failures, tables = stored_failures(layout(project)), list(tables)
    for table in tables:
        if table.is_stored:
            found += _of_files(project, table, now)
            found += _of_batches(project, table)
        if table.id in failures and not any(one.table == table.id and one.stops for one in found):
            kept = failures[table.id]
            what = f"its last batch failed at {kept.at:%Y-%m-%d %H:%M} UTC: {kept.reason}"
            found.append(Finding(kept.table, "failed", what, kept.hint or "run it again"))
    found += [
        Finding(name, LEFT, LEFT_BEHIND.format(view.id), REPAIR.format(view.name))
        for name, view in leftovers(project, tables).items()
    ]
    return list(dict.fromkeys(found))


def untested_versions() -> list[Finding]:
    """Return what was not tested together, and releases with which Spark does not start."""
    repair = "`pip install` those, or run your own tests: docs/install.md lists what was tested"
    found = []
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    mine = (here, *(minor(version(package)) for package in PACKAGES))
    if mine not in TESTED:
        near = max(TESTED, key=lambda row: sum(map(str.__eq__, row, mine)))
        shown, nearest = (
            ", ".join(map(" ".join, zip(("Python", *PACKAGES), row, strict=True)))
            for row in (mine, near)
        )
        what = f"{shown} were not tested together; the nearest that were: {nearest}"
        found.append(Finding("", UNTESTED, what, repair))
    if is_installed("spark"):
        try:
            delta()
        except MissingDependency as error:
            found.append(Finding("", UNTESTED, error.message, error.hint))
    return found


def strangers(project: Project) -> list[Finding]:
    """Return the tables of the lake that no declaration names."""
    what = "no declaration names this table"
    return [
        Finding(
            name,
            UNDECLARED,
            what,
            f"declare it again, `sluice drop {name}`, or `sluice rename {name} NEW`",
        )
        for name in undeclared_tables(project)
    ]


def _of_files(project: Project, table: Table, now: datetime) -> Iterator[Finding]:
    kept = {k.table for k in kept_in(table, project)}
    for table_id in (*kept, *(internal(table.id, note) for note in NOTES)):
        uri = layout(project).uri(table_id)
        if not exists(uri):
            continue
        found = [*erasure.log_faults(uri), *erasure.file_faults(uri)]
        found = found or [*erasure.index_faults(uri)]
        if not found:
            looks = [erasure.orphans(uri, now)]
            looks += [erasure.setting_faults(uri)] if table_id in kept else []
            found += chain(*looks)
        yield from (Finding(table_id, *one) for one in found)
        if not found and table_id in kept:
            yield from _of_retention(project, table_id, now)


def _of_batches(project: Project, table: Table) -> Iterator[Finding]:
    """Yield what the next batch would report."""
    lake = layout(project)
    if table.is_delivered:
        yield from _of_deliveries(project, table)
    nodes = nodes_of(table, project.graph)
    for table_id in dict.fromkeys([table.id, *(node.id for node in nodes)]):
        try:
            head(lake.uri(table_id))
        except SluiceError as error:
            yield Finding(table_id, *_finding(error))
    for node in nodes:
        try:
            plan_batch(node, lake, project.graph)
        except SluiceError as error:
            yield Finding(node.id, *_finding(error))


def _of_deliveries(project: Project, table: Table) -> Iterator[Finding]:
    """Yield why the next delivery can't succeed, and the intervals that are missing."""
    for check in delivering(table).checks(project, table):
        try:
            check()
        except SluiceError as error:
            yield Finding(table.id, *_finding(error))
    noted = deliveries(layout(project).uri(table.id, INTERVALS))
    for span in missing(project, table, noted):
        bounds = span.interval.options(span.timezone)
        what = f"{span} was not delivered, but earlier and later ones were"
        yield Finding(table.id, MISSING, what, f"`sluice run {table.pipeline} {bounds}`")


def _of_retention(project: Project, table_id: str, now: datetime) -> Iterator[Finding]:
    """Yield each consumer that lags longer than VACUUM keeps deleted files."""
    uri = layout(project).uri(table_id)
    try:
        at = head(uri)
    except SluiceError:
        return
    keep = erasure.file_retention(uri)
    for consumer, read in consumers(project, table_id, at.table) if at else ():
        next_one = committed_at(uri, read + 1) if at and read < at.data_version else None
        if next_one and now - next_one > keep:
            yield Finding(
                table_id,
                "short-retention",
                f"{consumer} has read it up to version {read}; the next one is "
                f"{_days(now - next_one)} old, and a VACUUM keeps deleted files for {_days(keep)}",
                f"`sluice advance {declared_id(consumer)}`; VACUUM by `sluice maintain` alone",
            )


def _days(length: timedelta) -> str:
    return f"{length / timedelta(days=1):.1f} days"


def _finding(error: SluiceError) -> erasure.TableFault:
    """Return an error's name as words: `FeedVacuumed` is `feed-vacuumed`."""
    name = "".join(f"-{c.lower()}" if c.isupper() else c for c in type(error).__name__)
    return name.removeprefix("-"), error.message, error.hint


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
