"""Loading a dimension: its source as it is now, compared with the table, the difference committed.

The commit is one, so nothing is ever joined against half a load. Where nothing differs there is
none: what was read is only noted.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changelog.diff import CHANGE, diff
from sluice.errors import UsageError
from sluice.runtime.aside import NO_INTERVAL, Delivered
from sluice.runtime.batch import Run
from sluice.runtime.connections import jdbc_options
from sluice.runtime.dimension_rows import judged, table_rows
from sluice.runtime.gating import Passed, gated
from sluice.runtime.reading import Reading, read
from sluice.runtime.redefinition import check_definition
from sluice.runtime.report import BatchReport, Clock
from sluice.runtime.retries import naming_faults, tried
from sluice.runtime.session import Spark
from sluice.runtime.writing import Target, write
from sluice.specs.definition import definition
from sluice.specs.dimension import Dimension
from sluice.specs.interval import Interval
from sluice.specs.project import Project
from sluice.specs.settings import SparkSettings
from sluice.specs.table import Table
from sluice.storage import intervals, landing
from sluice.storage.commit import Committed
from sluice.storage.feed_size import FeedSize
from sluice.storage.lake import layout
from sluice.storage.landing import LandedFile
from sluice.storage.position import Head, Position, head
from sluice.storage.table import snapshot

INTERVALS = "intervals"
WHOLE = Interval(NO_INTERVAL, NO_INTERVAL + timedelta(microseconds=1))
IN_FILES = ("json", "csv", "parquet", "delta")
LARGE_BYTES = 8_000_000  # of files to read: from here on many tasks cost less than few


@dataclass(frozen=True)
class Snapshot:
    """A dimension's source as it was found at the run's start.

    `options`: how to read it, at the version of it that was found.
    """

    table: Table
    spec: Dimension
    files: tuple[LandedFile, ...]
    fingerprint: str
    uri: str
    loads_uri: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_loaded(self) -> bool:
        """Whether exactly this was loaded last."""
        known = intervals.is_delivered(self.loads_uri, WHOLE, self.fingerprint)
        return self.spec.format in IN_FILES and known

    @property
    def bytes(self) -> int:
        """The size of its files."""
        return sum(f.size for f in self.files)

    def warnings(self, before: Head | None) -> Iterator[str]:
        """What is to be said before anything was read."""
        if before and before.is_filled and not intervals.deliveries(self.loads_uri):
            yield (
                f"{self.table.id}: there is no record of what was loaded last; "
                "all of it is read again"
            )


Put = Callable[[SparkSession, DataFrame, Target, Position, Clock], Committed]


def load(spark: Spark, project: Project, table: Table, run: Run) -> tuple[BatchReport, ...]:
    """Bring a dimension to its source's state. Unchanged files are not read again."""
    found = plan_load(project, table)
    before = head(found.uri)
    check_definition(table, before)
    if before and found.is_loaded and not run.full_refresh:
        return (_unchanged(table, before),)

    put = partial(_put, table, settings=project.spark)

    def work() -> BatchReport:
        with naming_faults(table.id):
            return load_as(spark, project, found, run, head(found.uri), put)

    return (tried(work),)


def plan_load(project: Project, table: Table) -> Snapshot:
    """What a load would read. Starts no Spark. Raises UsageError if there are no files."""
    spec = table.spec
    assert isinstance(spec, Dimension)
    lake, path = layout(project), project.resolve(spec.path) if spec.path else ""
    made, options = definition(table), dict(spec.options)
    files: tuple[LandedFile, ...] = ()
    if spec.format == "delta" and (at := landing.delta_table(path)):
        files, made = at.files, f"{made} {at.identity} {at.version}"
        is_pinned = any(name.lower() in ("versionasof", "timestampasof") for name in options)
        options = options if is_pinned else {"versionAsOf": str(at.version), **options}
    elif spec.format in IN_FILES:
        files = _files(table, path)
    print_ = landing.fingerprint(files, made)
    uris = lake.uri(table.id), lake.uri(table.id, INTERVALS)
    return Snapshot(table, spec, files, print_, *uris, options)


def _files(table: Table, path: str) -> tuple[LandedFile, ...]:
    files = tuple(landing.list_files(path))
    if not files:
        raise UsageError(
            f"{table.id}: there are no files at {path}",
            hint="a dimension must be there before facts are joined; an empty one is a file "
            "without rows",
        )
    return files


def load_as(
    spark: Spark, project: Project, found: Snapshot, run: Run, before: Head | None, put: Put
) -> BatchReport:
    """Read the source whole, judge its rows, and `put` the accepted ones into the table."""
    clock, spec = Clock(), found.spec
    with clock.phase("session"):
        session = spark.tune(small=found.bytes < LARGE_BYTES)
    warnings, position = tuple(found.warnings(before)), _position(found, before, run)
    with clock.phase("read"):
        rows = read(session, _resolved(project, found), found.files)
        reading = judged(Reading(rows.rows, (*warnings, *rows.warnings)), spec)
    identity = Delivered(run.id, position.batch, None, None)
    with clock.timed("check", gated(project, found.table, reading.rows, identity)) as passed:
        size = FeedSize(found.bytes, len(found.files), passed.verdict.rows_read)
        target = Target(found.uri, found.table.key, before, size, keeps_position=False)
        intervals.withdraw(found.loads_uri, WHOLE)
        done = put(session, passed.rows, target, position, clock)
    _record(found, passed, position.batch)
    report = BatchReport(
        table=found.table.id,
        kind="dimension",
        outcome="committed" if done.changed else "position",
        version=done.version,
        batch=position.batch,
        strategy=spec.delivery,
        rows_in=passed.verdict.rows_read,
        inserted=done.inserted,
        updated=done.updated,
        deleted=done.deleted,
        quarantined=passed.verdict.rows_quarantined,
        seconds=clock.seconds,
        warnings=(*reading.warnings, *passed.verdict.warnings),
    )
    is_as_before = before is not None and done.version == before.version
    return replace(report, outcome="unchanged") if is_as_before else report


def _put(
    table: Table,
    session: SparkSession,
    accepted: DataFrame,
    target: Target,
    position: Position,
    clock: Clock,
    *,
    settings: SparkSettings,
) -> Committed:
    """Commit what differs."""
    before = target.before
    old = snapshot(session, target.uri, before.version) if before else None
    rows = table_rows(session, table, accepted, old)
    changelog = (
        diff(old, rows, table.key) if old is not None else rows.withColumn(CHANGE, F.lit("insert"))
    )
    return write(session, settings, target, changelog, position, clock)


def _resolved(project: Project, found: Snapshot) -> Dimension:
    """The declaration with its path and its connection as they are here and now."""
    spec = found.spec
    path = project.resolve(spec.path) if spec.path else ""
    secret = jdbc_options(spec.connection, found.table.id) if spec.connection else {}
    return spec.model_copy(update={"path": path, "options": {**found.options, **secret}})


def _position(found: Snapshot, before: Head | None, run: Run) -> Position:
    return Position(
        batch=before.next_batch if before else 1,
        attempt=uuid.uuid4().hex,
        kind="load",
        definition=definition(found.table),
        run=run.id,
    )


def _record(found: Snapshot, passed: Passed, batch: int) -> None:
    verdict = passed.verdict
    counts = (verdict.rows_read, verdict.rows_accepted, verdict.rows_quarantined)
    noted = intervals.Delivery(WHOLE, found.fingerprint, *counts, batch)
    intervals.record(found.loads_uri, noted)


def _unchanged(table: Table, before: Head) -> BatchReport:
    return BatchReport(
        table=table.id,
        kind="dimension",
        outcome="unchanged",
        version=before.version,
        batch=before.position.batch if before.position else None,
    )
