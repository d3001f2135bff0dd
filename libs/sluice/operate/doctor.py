"""Faults of a lake, found before a batch, a reader or a VACUUM meets them.

Each finding has a name, a description, and a next step. Those that `stops` marks block the next
batch or a reader; the others will later, or are clutter. Nothing is changed and no Spark is
started. Brokers of topics and schema registries are asked, too.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import version
from itertools import chain

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.opened import exists
from sluice.delta.log.position import head
from sluice.delta.notes.failures import stored_failures
from sluice.delta.notes.intervals import deliveries
from sluice.delta.places.lake_layout import (
    LEFT_BEHIND,
    REPAIR,
    layout,
    leftovers,
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
from sluice.spark.starting import minor

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
