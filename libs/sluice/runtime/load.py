"""Loading a dimension: its source as it is now, compared with the table, the difference committed.

A snapshot that lacks a row deletes it. A dimension of changes is the latest of each key over all
its files. With history, rows that go are closed instead of deleted. The commit is one, so nothing
is ever joined against half a load.
"""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from sluice.changelog.diff import CHANGE, diff
from sluice.errors import UsageError
from sluice.operators import dimension as history
from sluice.operators.operator import names
from sluice.operators.order import last_first
from sluice.operators.source import OP, POSITION
from sluice.quality.tally import REASON
from sluice.runtime.batch import Run
from sluice.runtime.changes import operations, placed, unknown_word
from sluice.runtime.gating import NO_INTERVAL, Delivered, Passed, gated
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
from sluice.specs.table import Table
from sluice.storage import intervals, landing
from sluice.storage.feed_size import FeedSize
from sluice.storage.lake import layout
from sluice.storage.landing import LandedFile
from sluice.storage.position import Head, Position, head
from sluice.storage.table import snapshot

INTERVALS = "intervals"
WHOLE = Interval(NO_INTERVAL, NO_INTERVAL + timedelta(microseconds=1))


@dataclass(frozen=True)
class Snapshot:
    """A dimension's source as it was found at the run's start."""

    table: Table
    spec: Dimension
    files: tuple[LandedFile, ...]
    fingerprint: str
    uri: str
    loads_uri: str

    @property
    def is_loaded(self) -> bool:
        """Whether exactly these files were loaded last."""
        known = intervals.is_delivered(self.loads_uri, WHOLE, self.fingerprint)
        return bool(self.files) and known


def load(spark: Spark, project: Project, table: Table, run: Run) -> tuple[BatchReport, ...]:
    """Bring a dimension to its source's state. Unchanged files are not read again."""
    found = plan_load(project, table)
    before = head(found.uri)
    check_definition(table, before)
    if before and found.is_loaded and not run.full_refresh:
        return (_unchanged(table, before),)

    def work() -> BatchReport:
        with naming_faults(table.id):
            return _load(spark, project, found, run, head(found.uri))

    return (tried(work),)


def plan_load(project: Project, table: Table) -> Snapshot:
    """What a load would read. Starts no Spark. Raises UsageError if there are no files."""
    spec = table.spec
    assert isinstance(spec, Dimension)
    lake = layout(project)
    files: tuple[LandedFile, ...] = ()
    if spec.format in ("json", "csv", "parquet", "delta"):
        files = tuple(landing.list_files(project.resolve(spec.path)))
        if not files:
            raise UsageError(
                f"{table.id}: there are no files at {project.resolve(spec.path)}",
                hint="a dimension must be there before facts are joined; an empty one is a file "
                "without rows",
            )
    print_ = landing.fingerprint(files, definition(table))
    return Snapshot(table, spec, files, print_, lake.uri(table.id), lake.uri(table.id, INTERVALS))


def _load(
    spark: Spark, project: Project, found: Snapshot, run: Run, before: Head | None
) -> BatchReport:
    clock, table = Clock(), found.table
    with clock.phase("session"):
        session = spark.tune(small=sum(f.size for f in found.files) < 64_000_000)
    position = _position(found, before, run)
    identity = Delivered(run.id, position.batch, None, None)
    with clock.phase("read"):
        reading = _parse(session, project, found)
    with clock.timed("check", gated(project, table, reading.rows, identity)) as passed:
        loaded = _current_rows(passed.rows, found)
        changelog = _difference(session, found, before, loaded)
        rows = passed.verdict.rows_read
        size = FeedSize(sum(f.size for f in found.files), len(found.files), rows)
        target = Target(found.uri, table.key, before, size)
        intervals.withdraw(found.loads_uri, WHOLE)
        done = write(session, project.spark, target, changelog, position, clock)
    _record(found, passed, position.batch)
    return BatchReport(
        table=table.id,
        kind="dimension",
        outcome="committed" if done.changed else "position",
        version=done.version,
        batch=position.batch,
        strategy=found.spec.delivery,
        rows_in=passed.verdict.rows_read,
        inserted=done.inserted,
        updated=done.updated,
        deleted=done.deleted,
        quarantined=passed.verdict.rows_quarantined,
        seconds=clock.seconds,
        warnings=(*reading.warnings, *passed.verdict.warnings),
    )


def _parse(session: SparkSession, project: Project, found: Snapshot) -> Reading:
    spec = found.spec
    resolved = spec.model_copy(update={"path": project.resolve(spec.path)}) if spec.path else spec
    reading = read(session, resolved, found.files)
    rows = placed(reading.rows, spec.key)
    if spec.delivery == "changes":
        reason = unknown_word(spec.change) if spec.change else F.lit(None).cast("string")
    else:
        reason = _repeated(found)
    return Reading(rows.withColumn(REASON, F.coalesce(REASON, reason)), reading.warnings)


def _repeated(found: Snapshot) -> Column:
    """A second row of a key, which would multiply the facts that are joined to it."""
    spec = found.spec
    if not spec.valid_from:
        return F.when(F.col(POSITION) > 1, _same_key(spec.key))
    key, since = (*spec.key, spec.valid_from), F.col(f"`{spec.valid_from}`")
    by = Window.partitionBy(*names(key), F.isnull(REASON)).orderBy(POSITION)
    unknown = f"column {spec.valid_from} is null: since when the row holds is not known"
    return F.when(since.isNull(), unknown).when(F.row_number().over(by) > 1, _same_key(key))


def _same_key(key: tuple[str, ...]) -> str:
    return f"another row has the same key ({', '.join(key)})"


def _current_rows(rows: DataFrame, found: Snapshot) -> DataFrame:
    spec = found.spec
    declared = tuple(c for c in found.table.columns if c not in history.COLUMNS or not spec.history)
    if spec.delivery == "changes":
        by = Window.partitionBy(*names(spec.key))
        latest = F.row_number().over(by.orderBy(*last_first((*spec.sequence, POSITION))))
        rows = operations(rows, spec.change).withColumn("_last", latest)
        rows = rows.where((F.col("_last") == 1) & (F.col(OP) != "delete"))
    return rows.select(*names(declared))


def _difference(
    session: SparkSession, found: Snapshot, before: Head | None, loaded: DataFrame
) -> DataFrame:
    table, spec = found.table, found.spec
    old = snapshot(session, found.uri, before.version) if before else None
    if spec.history:
        loaded = _with_history(session, found, old, loaded)
    if old is None:
        return loaded.withColumn(CHANGE, F.lit("insert"))
    return diff(old, loaded, table.key)


def _with_history(
    session: SparkSession, found: Snapshot, old: DataFrame | None, loaded: DataFrame
) -> DataFrame:
    spec = found.spec
    if old is None:
        fields = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in loaded.schema.fields)
        own = "valid_from TIMESTAMP, valid_to TIMESTAMP, is_current BOOLEAN"
        old = session.createDataFrame([], f"{fields}, {own}")
    now = datetime.now(UTC)
    if spec.valid_from:
        return history.versions_by_column(old, loaded, spec.key, spec.valid_from, now)
    return history.versions_by_load(old, loaded, spec.key, now)


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
