"""Delivery of a stream: new arrivals pass the gate, one delivery per micro-batch.

A micro-batch is a separate interval, from the instant of its arrival. Its rows replace only what an
interrupted run left of it. The commit's position names the version of the arrivals that it
reflects, and the next run continues from there. Nothing is read twice, and nothing is skipped.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changes.feed_columns import CHANGE_TYPE, COMMIT_VERSION
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.continuity import as_of, is_past
from sluice.delta.log.feed_size import FeedSize, feed_size, table_size
from sluice.delta.log.position import Head, head
from sluice.delta.places.lake_layout import layout
from sluice.delta.places.landed_files import LandedFile
from sluice.delta.reading import landing
from sluice.delta.reading.spark_reads import check_feed, feed, snapshot
from sluice.engine.advance import Run
from sluice.engine.batch_report import BatchReport
from sluice.errors import HistoryLost, UsageError
from sluice.language.internal import ARRIVALS, internal
from sluice.language.interval import Interval
from sluice.sources.arrivals import ARRIVED, FileStream, file_of
from sluice.sources.delivery import Delivery, check_presence
from sluice.sources.foreign.ingest import ingest_table, replay_table
from sluice.sources.ingest import check_source, or_unchanged, replace_interval
from sluice.sources.kafka.ingest import ingest_topic
from sluice.sources.kafka.replay import replay_topic
from sluice.sources.spec import Source, is_foreign, is_topic
from sluice.spark.session import Spark


def ingest_stream(spark: Spark, project: Project, table: Table, run: Run) -> Iterator[BatchReport]:
    """Deliver what has arrived, and report each micro-batch when it is committed.

    Safe to repeat; without arrivals, nothing is committed.
    """
    if is_topic(table):
        return ingest_topic(spark, project, table, run)
    if is_foreign(table):
        return ingest_table(spark, project, table, run)
    return _ingest_files(spark, project, table, run)


def _ingest_files(spark: Spark, project: Project, table: Table, run: Run) -> Iterator[BatchReport]:
    stream, lake = _stream(project, table), layout(project)
    spec, path = stream.spec, stream.path
    target = table.delivered_to
    check_source(project, table, head(lake.uri(target)))
    files = landing.delivered(path, table.id)
    check_presence(table, spec, path, files)
    _reflected(head(lake.uri(target)), target, internal(table.id, ARRIVALS), head(stream.uri))
    warnings = tuple(_passed_by(stream, files))
    stream.note([f for f in files if f.size], run)
    yield from or_unchanged(
        project, table, _deliver(spark, project, stream, target, run), warnings=warnings
    )


@dataclass(frozen=True)
class _Arrival:
    """One micro-batch: its instant, and the version of the arrivals that brought it."""

    at: datetime
    version: int
    files: tuple[LandedFile, ...] = ()


def _deliver(
    spark: Spark, project: Project, stream: FileStream, target: str, run: Run
) -> Iterator[BatchReport]:
    """Deliver each micro-batch that the table does not reflect yet, and yield its report."""
    now, name = head(stream.uri), internal(stream.table.id, ARRIVALS)
    after = _reflected(head(layout(project).uri(target)), target, name, now)
    if now is None or after >= now.data_version:
        return
    check_feed(stream.uri, name, stream.table.id, after, now.version)

    def work(session: SparkSession) -> list[_Arrival]:
        rows = feed(session, stream.uri, after, now.version, project.limits)
        return list(_arrivals(rows.where(f"{CHANGE_TYPE} = 'insert'")))

    for arrival in _read(spark, project, feed_size(stream.uri, after, now.version), work):
        delivery = _delivery(stream, arrival)
        pin = {name: as_of(now, arrival.version).pin}
        yield replace_interval(spark, project, delivery, run, inputs=pin)


def replay_stream(
    spark: Spark, project: Project, table: Table, moments: Collection[datetime], run: Run
) -> Iterator[BatchReport]:
    """Judge the micro-batches of those moments again. Safe to repeat.

    Raises UsageError if one of their files is missing, because its good rows would be lost, too.
    """
    if is_topic(table):
        return replay_topic(spark, project, table, moments, run)
    if is_foreign(table):
        return replay_table(spark, project, table, moments, run)
    stream, target = _stream(project, table), table.delivered_to
    now, before = head(stream.uri), head(layout(project).uri(target))
    if now is None or before is None or before.position is None:
        return iter(())
    inputs = before.position.inputs

    def work(session: SparkSession) -> list[_Arrival]:
        rows = snapshot(session, stream.uri, now.version, project.limits)
        rows = rows.where(F.col(ARRIVED).isin(list(moments)))
        return list(_arrivals(rows.withColumn(COMMIT_VERSION, F.lit(now.version))))

    size = table_size(stream.uri, now.version)
    arrivals = _as_now(stream, _read(spark, project, size, work))
    deliveries = [_delivery(stream, arrival) for arrival in arrivals]
    return (replace_interval(spark, project, d, run, inputs=inputs) for d in deliveries)


def _read(
    spark: Spark, project: Project, size: FeedSize, work: Callable[[SparkSession], list[_Arrival]]
) -> list[_Arrival]:
    """Read notes of arrivals: in this process, unless there are very many."""
    is_small = size.bytes <= project.limits.computed_here_bytes
    found, _ = spark.best(
        work,
        lambda: spark.tune(small=True),
        project.limits,
        is_small=is_small,
        size=0 if is_small else size.bytes,
    )
    return found


def _passed_by(stream: FileStream, files: Iterable[LandedFile]) -> Iterator[str]:
    """Yield warnings of unreadable and of empty files; empty ones are read once they have rows."""
    for file in files:
        if file.fault:
            yield f"{stream.table.id}: {file.shown} can't be read: {file.fault}"
        elif not file.size:
            yield f"{stream.table.id}: {file.shown} is empty and is skipped until it has rows"


def _stream(project: Project, table: Table) -> FileStream:
    spec = table.spec
    assert isinstance(spec, Source)
    path = project.resolve(spec.path)
    return FileStream.of(table, spec, path, layout(project))


def _as_now(stream: FileStream, arrivals: Sequence[_Arrival]) -> list[_Arrival]:
    """Return the arrivals with their files as they are now; they may have changed."""
    listed = landing.delivered(stream.path, stream.table.id)
    there = {file.uri: file for file in listed}
    gone = [f.uri for a in arrivals for f in a.files if f.uri not in there]
    if gone:
        raise UsageError(
            f"{stream.table.id}: {', '.join(gone)} arrived together with quarantined rows, and "
            f"does not exist any more",
            hint="restore the files of that time: they are read together again",
        )
    return [replace(a, files=tuple(there[f.uri] for f in a.files)) for a in arrivals]


def _reflected(before: Head | None, target: str, name: str, now: Head | None) -> int:
    """Return the version of the arrivals that the table reflects."""
    pin = before.position.inputs.get(name) if before and before.position else None
    if pin is None:
        return 0
    if now is None or not is_past(now, pin):
        raise HistoryLost(
            f"{target} reflects version {pin.version} of {name}, which has been replaced or cut",
            hint="restore the arrivals; or move the source's tables away and read all again",
        )
    return pin.version


def _arrivals(rows: DataFrame) -> Iterator[_Arrival]:
    listed = rows.select(ARRIVED, COMMIT_VERSION, "path", "length", "modified").toArrow()
    by_batch: dict[tuple[int, datetime], list[LandedFile]] = defaultdict(list)
    for row in listed.to_pylist():
        modified = round(row["modified"].timestamp())
        file = LandedFile(file_of(row["path"]), row["length"], modified)
        by_batch[row[COMMIT_VERSION], row[ARRIVED]].append(file)
    for (version, at), files in sorted(by_batch.items()):
        yield _Arrival(at, version, tuple(sorted(files, key=lambda f: f.uri)))


def _delivery(stream: FileStream, arrival: _Arrival) -> Delivery:
    interval = Interval(arrival.at, arrival.at + timedelta(microseconds=1))
    print_ = landing.fingerprint(arrival.files, str(arrival.version))
    return Delivery(stream.table, stream.spec, interval, stream.path, arrival.files, print_, ())
