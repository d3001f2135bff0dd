"""Load of a dimension: its current source is compared with the table, the difference committed.

A rebuild is a new full load that replaces the current table.

The load is one commit, so nothing is ever joined to half of it. If nothing differs, nothing is
committed and the delivery is only noted.

Each file of a log of changes is read once. `<dimension>__state` has the last row of each key,
deletes among them, and the file that it is from. Rows of new files are merged with the state's rows
of their keys, in the order that reading all files at once would give. Only these keys can change in
the dimension's own table.

A source no longer has the earlier versions of a history. They are converted to the current columns,
or the rebuild is refused.
"""

import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changes import diff, insertions
from sluice.declare.connections import VARIABLE, read_connection
from sluice.declare.meaning import definition, meaning
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta import intervals
from sluice.delta.log.continuity import check_definition, is_of_another, replaceable
from sluice.delta.log.files import FeedSize, table_size
from sluice.delta.log.position import REBUILD, Head, Pin, Pins, Position, head, head_as_found
from sluice.delta.reading import landing
from sluice.delta.reading.spark_reads import snapshot
from sluice.delta.writing.own_commits import Committed
from sluice.dimensions import Dimension
from sluice.dimensions.rows import (
    ORIGIN,
    columns_of,
    current_rows,
    judge_rows,
    last_rows,
    table_rows,
    without_deletes,
)
from sluice.dimensions.source import WHOLE, LandedDimension, PendingFiles, choose_files, find
from sluice.engine import BatchReport
from sluice.engine.advance import Run
from sluice.engine.batch_plan import Context
from sluice.engine.committing import Swapped, Target, swap, write
from sluice.engine.forgotten import read_forgotten, withhold
from sluice.engine.judging import JudgedBatch, Passed, gate_rows
from sluice.engine.next_batch import NextBatch, with_marking
from sluice.engine.operator import names, within
from sluice.engine.retries import naming_faults, with_retries
from sluice.engine.rows import bounds_of
from sluice.errors import DamagedFile, HistoryLost, QualityStop, UsageError
from sluice.files.here import with_faults
from sluice.files.reading import OP, POSITION, Reading, is_of_files, look, operations, read_files
from sluice.gate.gate import Gate
from sluice.gate.results import Verdict
from sluice.interpreter import is_here, rehearse
from sluice.language.names import COLUMNS, CURRENT, FORGOTTEN, QUARANTINE, internal
from sluice.limits import Limits
from sluice.meter import Clock
from sluice.spark.engine import engine_of, reason_for_spark, too_large
from sluice.spark.session import Spark

DATABASE = "postgresql://user:password@host:port/database"
KINDS = {"postgres": "postgresql"}  # Airflow's names with another spelling in JDBC
PORTS = {"postgresql": 5432}


@dataclass(frozen=True)
class Loaded:
    """Rows that a dimension should have by its source; only of the keys `touched`, if given.

    `made_from`: the pins that the table's position should name.
    """

    rows: DataFrame
    touched: DataFrame | None = None
    made_from: Pins = field(default_factory=dict)


def next_position(table: Table, before: Head | None, run: str) -> Position:
    """Return the position of a load's commit to a table whose head is `before`."""
    batch = before.next_batch if before else 1
    made, meant = definition(table), meaning(table)
    return Position(batch, uuid.uuid4().hex, "load", made, run=run, meaning=meant)


def merge_log(
    session: SparkSession,
    context: Context,
    landed: LandedDimension,
    due: PendingFiles,
    accepted: DataFrame,
    run: str,
    clock: Clock,
) -> Loaded:
    """Commit the state after new rows, and return its rows without deletes. Raises LostRace.

    Safe to repeat, as when what follows is left to Spark: rows that the state has already are
    merged into it again.
    """
    spec = landed.spec
    columns = (*columns_of(landed.table, spec), OP, ORIGIN)
    fresh = operations(accepted, spec.change).select(*names((*columns, POSITION)))
    before = head_as_found(landed.state_uri)
    position = next_position(landed.table, before, run)
    target = Target(landed.state_uri, spec.identity, before, FeedSize(due.bytes, rows=None))
    if due.state is None or before is None:
        touched, rows = None, last_rows(fresh, spec).select(*names(columns))
        done = swap(session, context, target, rows, position, clock).done
    else:
        touched = fresh.select(*names(spec.key)).distinct()
        old = rows_of_keys(session, context.limits, before, touched, spec.key)
        known = old.withColumn(POSITION, F.lit(0).cast("bigint")).unionByName(fresh)
        rows = last_rows(known, spec).select(*names(columns))
        changelog = diff(old, rows, spec.identity)
        done = write(session, context, target, changelog, position, clock)
    at = head_as_found(landed.state_uri)
    made_from = {landed.state_id: Pin(at.table, done.version)} if at else {}
    return Loaded(without_deletes(rows, landed.table), touched, made_from)


def rows_of_keys(
    session: SparkSession, limits: Limits, at: Head, keys: DataFrame, key: tuple[str, ...]
) -> DataFrame:
    """Return the rows of a table that have one of these keys."""
    rows = snapshot(session, at.uri, at.version, limits)
    if not is_here(session) and table_size(at.uri, at.version).bytes > limits.read_here_bytes:
        bounds = bounds_of(keys, key)
        rows = rows if bounds is None else rows.where(bounds)
    return within(rows, keys, key)


Put = Callable[[SparkSession, Loaded, Target, Position, Clock], Committed]


def load(spark: Spark, project: Project, table: Table, run: Run) -> tuple[BatchReport, ...]:
    """Bring a dimension to its source's state. Unchanged files are not read again.

    Raises UsageError if there are no files.
    """
    context = Context.of(project)
    put = partial(_put, context, table)

    def work() -> BatchReport:
        with naming_faults(table.id):
            found = find(project, table)
            before = head(found.uri)
            check_definition(table, before)
            if before and found.is_loaded(before) and not run.full_refresh:
                return BatchReport.unchanged(table.id, "dimension", before)
            return load_as(spark, context, found, run, before, put)

    return (with_retries(work),)


def load_as(
    spark: Spark, context: Context, landed: LandedDimension, run: Run, before: Head | None, put: Put
) -> BatchReport:
    """Read the due part of the source, check its rows, and `put` the good ones into the table."""
    clock = Clock()
    wanted = choose_files(landed, before, again=run.full_refresh)

    def work(session: SparkSession) -> BatchReport:
        return _judge_and_put(session, context, landed, wanted, run, before, put, clock)

    why = _why_not_here(context, landed, wanted, before)
    try:
        with naming_faults(landed.table.id):
            report, engine = spark.best(work, wanted.bytes, context.limits, clock=clock, why=why)
    except DamagedFile:
        look(landed.spec, with_faults(landed.spec, landed.files))  # it names the file and why
        raise
    return replace(report, engine=engine)


def _why_not_here(
    context: Context, landed: LandedDimension, pending: PendingFiles, before: Head | None
) -> str:
    """Return why Spark loads the pending part; '' if this process may."""
    if landed.spec.format != "delta" and not is_of_files(landed.spec):
        return f"the format {landed.spec.format}"
    return too_large(_size(pending, before, 0).bytes, context.limits.delivered_bytes)


def engine_of_load(
    context: Context, landed: LandedDimension, pending: PendingFiles, before: Head | None
) -> str:
    """Return the engine that a load would report, unless a value needs Spark."""

    def rehearsed(session: SparkSession) -> None:
        rows = _read(session, context, landed, pending).rows
        _compile(session, context, landed, rows, before)
        gate = Gate(landed.table.id, landed.table.expect, landed.spec.key)
        gate.check(gate.split(rows))

    return engine_of(context.settings, rehearsed, _why_not_here(context, landed, pending, before))


def _judge_and_put(
    session: SparkSession,
    context: Context,
    landed: LandedDimension,
    pending: PendingFiles,
    run: Run,
    before: Head | None,
    put: Put,
    clock: Clock,
) -> BatchReport:
    spec = landed.spec
    position = next_position(landed.table, before, run.id)
    stamps = landing.stamps(pending.files)
    with clock.phase("read"):
        reading = _read(session, context, landed, pending)
    if is_here(session):
        like = None if is_of_another(before, position.definition) else before
        _compile(session, context, landed, reading.rows, like)
    is_added = pending.state is not None
    judge_rows = JudgedBatch(run.id, position.batch, None, None, is_added=is_added)

    def refuse(_split: DataFrame, _verdict: Verdict) -> None:
        landing.check_unchanged(pending.files, stamps, landed.table.id)

    with clock.timed(
        "check", gate_rows(context, landed.table, reading.rows, judge_rows, refuse)
    ) as passed:
        _check_usable(landed, passed, before if pending.state is None else None)
        intervals.withdraw(landed.loads_uri, WHOLE)
        if spec.is_log:
            args = (session, context, landed, pending, passed.rows)
            loaded = merge_log(*args, run.id, clock)
        else:
            loaded = Loaded(current_rows(passed.rows, landed.table))
        size = _size(pending, before, passed.verdict.rows_read)
        keeps = spec.is_log  # a log records files that alter no row, too
        target = Target(landed.uri, landed.table.key, before, size, keeps_position=keeps)
        if replaces := replaceable(before, position.definition):
            target = replace(target, before=None, replaces=replaces)
        position = replace(position, references=loaded.made_from)
        done = put(session, loaded, target, position, clock)
    is_as_before = before is not None and done.version == before.version
    batch = before.next_batch - 1 if before and is_as_before else position.batch
    _record(landed, pending, passed, batch)
    report = replace(
        BatchReport.of(landed.table.id, "dimension", done, clock),
        batch=position.batch,
        strategy=spec.delivery,
        rows_in=passed.verdict.rows_read,
        quarantined=passed.verdict.rows_quarantined,
        warnings=(*reading.warnings, *passed.verdict.warnings),
    )
    return replace(report, outcome="unchanged") if is_as_before else report


def _compile(
    session: SparkSession,
    context: Context,
    landed: LandedDimension,
    rows: DataFrame,
    before: Head | None,
) -> None:
    """Compile what follows the gate. Raises UnsupportedLocally."""
    whole = Loaded(current_rows(rows, landed.table))
    rehearse(_changelog(session, context, landed.table, whole, before))


def _read(
    session: SparkSession, context: Context, landed: LandedDimension, pending: PendingFiles
) -> Reading:
    spec = landed.spec
    secret = jdbc_options(spec.connection, landed.table.id) if spec.connection else {}
    here = {"path": landed.path, "options": {**landed.options, **secret}}
    rows = read_files(session, spec.model_copy(update=here), pending.files, context.limits)
    reading = Reading(rows.rows, (*pending.warnings, *rows.warnings))
    reading = judge_rows(reading, spec, Gate(landed.table.id, spec.expect).fits)
    notes = read_forgotten(context.lake.uri(landed.table.id, FORGOTTEN))
    return replace(reading, rows=withhold(reading.rows, notes))


def jdbc_options(connection: str, table: str) -> dict[str, str]:
    """Return Spark's options `url`, `user` and `password`; raise UsageError without them."""
    found = read_connection(connection, table, os.environ, DATABASE)
    if not found.host:
        name = VARIABLE.format(connection.upper())
        raise UsageError(f"{table}: {name} has no host", hint=f"set {name} to {DATABASE}")
    kind = KINDS.get(found.kind, found.kind)
    host = f"{found.host}:{found.port or PORTS.get(kind, '')}".rstrip(":")
    url = f"jdbc:{kind}://{host}/{found.schema or unquote(found.path.lstrip('/'))}"
    known = {"url": url, "user": found.login, "password": found.password}
    return {key: value for key, value in known.items() if value}


def _check_usable(landed: LandedDimension, passed: Passed, replaced: Head | None) -> None:
    """Raise QualityStop if a snapshot has rows but none can be used, like a page of HTML.

    The same holds for a log that is read whole, if the table that it replaces has rows.
    """
    verdict = passed.verdict
    is_whole = landed.spec.delivery == "snapshot" or (
        replaced and table_size(replaced.uri, replaced.version).rows
    )
    if is_whole and verdict.rows_read and not verdict.rows_accepted:
        raise QualityStop(
            f"{landed.table.id}: not one of its {verdict.rows_read:,} rows can be used",
            hint="the dimension stays as it was; `sluice read "
            f"{internal(landed.table.name, QUARANTINE)}` shows why; for an empty "
            "dimension, deliver a file without rows",
        )


def _size(pending: PendingFiles, before: Head | None, rows_read: int) -> FeedSize:
    """Return the size of what is compared.

    The table counts, too: a small source may delete many of its rows.
    """
    size = FeedSize(pending.bytes, len(pending.files), rows_read)
    return size + table_size(before.uri, before.version) if before and not pending.state else size


def _put(
    context: Context,
    table: Table,
    session: SparkSession,
    loaded: Loaded,
    target: Target,
    position: Position,
    clock: Clock,
) -> Committed:
    changelog = _changelog(session, context, table, loaded, target.before)
    return write(session, context, target, changelog, position, clock)


def _changelog(
    session: SparkSession, context: Context, table: Table, loaded: Loaded, before: Head | None
) -> DataFrame:
    assert isinstance(table.spec, Dimension)
    old, touched = None, loaded.touched
    if before and touched is None:
        old = snapshot(session, before.uri, before.version, context.limits)
    elif before and touched is not None:
        old = rows_of_keys(session, context.limits, before, touched, table.spec.key)
    rows = table_rows(session, table, loaded.rows, old)
    return insertions(rows) if old is None else diff(old, rows, table.key)


def _record(landed: LandedDimension, pending: PendingFiles, passed: Passed, batch: int) -> None:
    """Note the loaded files; of a log, all of its files, including those read before."""
    verdict, earlier = passed.verdict, pending.noted
    counts = (verdict.rows_read, verdict.rows_accepted, verdict.rows_quarantined)
    if earlier:
        known = (earlier.rows_read, earlier.rows_accepted, earlier.rows_quarantined)
        counts = (counts[0] + known[0], counts[1] + known[1], counts[2] + known[2])
    intervals.record(landed.loads_uri, intervals.Note(WHOLE, landed.note, *counts, batch))


def plan_load(project: Project, table: Table, what: str) -> NextBatch:
    """Return the next load, as `sluice plan` shows it; `what`: why everything is read again."""
    context = Context.of(project)
    return with_marking(context, _plan_load(context, project, table, what), table.key)


def _plan_load(context: Context, project: Project, table: Table, what: str) -> NextBatch:
    try:
        found = find(project, table)
    except UsageError as error:
        return NextBatch(table.id, "load", f"it would fail: {error.message}")
    before = head(found.uri)
    if not what and before and found.is_loaded(before):
        return NextBatch(table.id, "nothing", "the files are those that were loaded")
    wanted = choose_files(found, before, again=bool(what))
    reason = what or "; ".join(wanted.warnings) or "files are new or changed"
    way = REBUILD if what else "load"
    engine = engine_of_load(context, found, wanted, None if what else before)
    reason, size = "; ".join([reason, *reason_for_spark(engine)]), wanted.bytes
    return NextBatch(table.id, way, reason, engine, bytes=size, files=len(wanted.files))


def rebuild(spark: Spark, project: Project, table: Table, run: Run) -> tuple[BatchReport, bool]:
    """Load a dimension whole; return the report, and whether the change ends the table's feed.

    Raises HistoryLost if versions would be lost, UsageError if there are no files.
    """
    full = replace(run, full_refresh=True)
    context, swapped = Context.of(project), list[Swapped]()

    def put(
        session: SparkSession, loaded: Loaded, target: Target, position: Position, clock: Clock
    ) -> Committed:
        rows = table_rows(
            session, table, loaded.rows, _history(session, context.limits, table, target)
        )
        mine, whole = replace(position, kind=REBUILD), replace(target, keeps_position=True)
        swapped.append(swap(session, context, whole, rows, mine, clock))
        return swapped[-1].done

    def work() -> BatchReport:
        with naming_faults(table.id):
            found = find(project, table)
            return load_as(spark, context, found, full, head_as_found(found.uri), put)

    return with_retries(work), swapped[-1].ends_feed


def _history(
    session: SparkSession, limits: Limits, table: Table, target: Target
) -> DataFrame | None:
    """Return the versions that the table keeps, in the current types."""
    if target.before is None:
        return None
    before, spec = target.before, table.spec
    old = snapshot(session, target.uri, before.version, limits)
    assert isinstance(spec, Dimension)
    if CURRENT not in old.columns:
        return None
    if not spec.history:
        if closed := old.where(~F.col(CURRENT)).count():
            raise _lost(table, f"without a history, {closed} earlier versions have no place")
        return None
    if lacking := [c for c in spec.key if c not in old.columns]:
        raise _lost(table, f"its versions have no {', '.join(lacking)}, which is in the key now")
    kept = {name: type_ for name, type_ in table.columns.items() if name in old.columns}
    _check_types(table, old, kept)
    return old.select(*[F.col(f"`{c}`").cast(type_).alias(c) for c, type_ in kept.items()])


def _check_types(table: Table, old: DataFrame, kept: dict[str, str]) -> None:
    """Raise HistoryLost if a value of an earlier version does not fit the current type."""
    for name, type_ in kept.items():
        value = F.col(f"`{name}`")
        if name in COLUMNS or old.schema[name].dataType.simpleString() == type_.lower():
            continue
        if bad := old.where(value.isNotNull() & value.try_cast(type_).isNull()).count():
            raise _lost(table, f"{bad} versions have a {name} that is not a valid {type_}")


def _lost(table: Table, why: str) -> HistoryLost:
    return HistoryLost(
        f"{table.id} can't be rebuilt from its source alone: {why}",
        hint="revert the change; or declare the changed dimension under another name. "
        "Nothing was changed",
    )
