"""Files as sources: those of an interval's path, or a stream of files as they arrive.

A stream's micro-batch is a separate interval, from the instant of its arrival. Its rows replace
only what an interrupted run left of it. The commit's position names the version of the arrivals
that it reflects, and the next run continues from there. Nothing is read twice, and nothing is
skipped.

Arrivals are noted in `<source>__arrivals`, which keeps only the names of files. The files are read
at the gate, so a corrected file can pass. A file is new if the table does not name it yet; the
table is its own record and needs no checkpoint. ARRIVED is the time of a run's note, later than any
before it. If the clock was set back, it continues from the last one.
"""

import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from sluice.changes import CHANGE
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.intervals import check_kept
from sluice.delta.log.continuity import as_of, is_past
from sluice.delta.log.files import CUT, FeedSize, feed_size, table_size
from sluice.delta.log.position import Head, Position, head
from sluice.delta.note_tables import read_table
from sluice.delta.places.folders import LandedFile
from sluice.delta.places.lake_layout import LakeLayout, layout
from sluice.delta.reading import landing
from sluice.delta.reading.spark_reads import check_feed, feed, snapshot
from sluice.delta.writing.commit import commit_arrow, create
from sluice.engine import BatchReport
from sluice.engine.advance import Run
from sluice.engine.batch_plan import Context
from sluice.errors import HistoryLost, UsageError
from sluice.language.interval import Interval
from sluice.language.names import ARRIVALS, CHANGE_TYPE, COMMIT_VERSION, internal
from sluice.sources import Source
from sluice.sources.delivery import Delivery, check_presence, plan_delivery
from sluice.sources.origins import ARRIVED, FileOrigin, check_source, file_of
from sluice.sources.replacement import (
    Replacement,
    next_position,
    or_unchanged,
    replace_interval,
    report_unchanged,
)
from sluice.spark.engine import too_large
from sluice.spark.session import Spark

MICROS = pa.timestamp("us", "UTC")
_NOTED = pa.schema({"path": pa.string(), ARRIVED: MICROS})
_LISTING = StructType(
    [
        StructField("path", StringType()),
        StructField("length", LongType()),
        StructField("modified", TimestampType()),
        StructField(ARRIVED, TimestampType()),
    ]
)


@dataclass(frozen=True)
class FileFeed(FileOrigin):
    """Files that are read: by interval, or as they arrive."""

    def read(
        self, spark: Spark, run: Run, interval: Interval | None = None
    ) -> Iterator[BatchReport]:
        """Deliver an interval of the grid, or the files that have arrived since the last run.

        Unchanged files are not read again. Without arrivals, nothing is committed.
        """
        if interval is None:
            yield from self._read_stream(spark, run)
        else:
            yield self._read_interval(spark, run, interval)

    def replay(
        self, spark: Spark, run: Run, intervals: Iterable[Interval]
    ) -> Iterator[BatchReport]:
        """Read intervals whole, as at their first delivery; of a stream, its micro-batches.

        Raises UsageError if a file of these is missing: its good rows would be lost, too.
        """
        if not self.spec.is_by_interval:
            yield from self._replay_stream(spark, run, [i.start for i in intervals])
            return
        for interval in intervals:
            yield self._read_interval(spark, replace(run, full_refresh=True), interval)

    def _read_interval(self, spark: Spark, run: Run, interval: Interval) -> BatchReport:
        project, table = self.project, self.table
        plan = partial(plan_delivery, project, table, interval, allow_empty=run.allow_empty)
        delivery = plan()
        before = head(self.kept_uri)
        check_source(project, table, before)
        check_kept(table.id, delivery.noted, before)
        if delivery.is_delivered and before and not run.full_refresh:
            return report_unchanged(table.delivered_to, before, delivery.interval)
        return replace_interval(spark, project, delivery, run, again=plan)

    def _read_stream(self, spark: Spark, run: Run) -> Iterator[BatchReport]:
        stream, target = self._stream, self.table.delivered_to
        check_source(self.project, self.table, head(self.kept_uri))
        files = landing.list_delivered(stream.path, self.table.id)
        check_presence(self.table, self.spec, stream.path, files)
        name = internal(self.table.id, ARRIVALS)
        _reflected_version(head(self.kept_uri), target, name, head(stream.uri))
        warnings = tuple(_warn_of_skipped(stream, files))
        stream.note([f for f in files if f.size], run)
        reports = _deliver(spark, self.project, stream, target, run)
        yield from or_unchanged(self.project, self.table, reports, warnings=warnings)

    def _replay_stream(
        self, spark: Spark, run: Run, moments: Collection[datetime]
    ) -> Iterator[BatchReport]:
        stream = self._stream
        now, before = head(stream.uri), head(self.kept_uri)
        if now is None or before is None or before.position is None:
            return
        limits = self.project.limits

        def work(session: SparkSession) -> list[_Arrival]:
            rows = snapshot(session, stream.uri, now.version, limits)
            rows = rows.where(F.col(ARRIVED).isin(list(moments)))
            return list(_group_arrivals(rows.withColumn(COMMIT_VERSION, F.lit(now.version))))

        size = table_size(stream.uri, now.version)
        arrivals = _find_files(stream, _read_arrivals(spark, self.project, size, work))
        for delivery in [_delivery(stream, arrival) for arrival in arrivals]:
            yield replace_interval(
                spark, self.project, delivery, run, inputs=before.position.inputs
            )

    @property
    def _stream(self) -> "FileStream":
        path = self.project.resolve(self.spec.path)
        return FileStream.of(self.table, self.spec, path, layout(self.project))


def engine_of_delivery(project: Project, table: Table, interval: Interval) -> str:
    """Return the engine that delivers an interval's files, in the words of the report."""
    delivery = plan_delivery(project, table, interval, allow_empty=True)
    context, run = Context.of(project), Run()
    at = head(context.lake.uri(table.delivered_to))
    return Replacement(context, delivery, at, next_position(delivery, at, run, {}), run).engine


@dataclass(frozen=True)
class FileStream:
    """Stream of a source: the path it is read from, and its arrivals table."""

    table: Table
    spec: Source
    path: str
    uri: str

    @classmethod
    def of(cls, table: Table, spec: Source, path: str, lake: LakeLayout) -> "FileStream":
        return cls(table, spec, path, lake.uri(table.id, ARRIVALS))

    def note(self, files: Iterable[LandedFile], run: Run) -> None:
        """Append the files that are not known yet. Starts no Spark. Raises LostRace."""
        before = head(self.uri)
        noted = read_table(self.uri) if before else _NOTED.empty_table()
        known = {file_of(path) for path in noted["path"].to_pylist()}
        fresh = [file for file in files if file.uri not in known]
        if not fresh:
            return
        before = before or create(self.uri, _LISTING, Position(0, uuid.uuid4().hex, "create"))
        last = pc.max(noted[ARRIVED]).as_py()
        at = datetime.now(UTC) + timedelta(microseconds=self._behind(last))
        rows = pa.Table.from_pydict(
            {
                "path": [file.uri for file in fresh],
                "length": [file.size for file in fresh],
                "modified": pa.array([f.modified // 1000 for f in fresh], MICROS),
                ARRIVED: pa.array([at] * len(fresh), MICROS),
                CHANGE: ["insert"] * len(fresh),
            }
        )
        position = Position(before.next_batch, uuid.uuid4().hex, "arrival", run=run.id)
        commit_arrow(before, rows, ["path"], position)

    def _behind(self, last: datetime | None) -> int:
        """Return the microseconds by which the clock is behind the latest arrival."""
        behind = last + 2 * CUT - datetime.now(UTC) if last else timedelta()
        return max(behind // timedelta(microseconds=1), 0)


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
    after = _reflected_version(head(layout(project).uri(target)), target, name, now)
    if now is None or after >= now.data_version:
        return
    check_feed(stream.uri, name, stream.table.id, after, now.version)

    def work(session: SparkSession) -> list[_Arrival]:
        rows = feed(session, stream.uri, after, now.version, project.limits)
        return list(_group_arrivals(rows.where(f"{CHANGE_TYPE} = 'insert'")))

    for arrival in _read_arrivals(spark, project, feed_size(stream.uri, after, now.version), work):
        delivery = _delivery(stream, arrival)
        pin = {name: as_of(now, arrival.version).pin}
        yield replace_interval(spark, project, delivery, run, inputs=pin)


def _read_arrivals(
    spark: Spark, project: Project, size: FeedSize, work: Callable[[SparkSession], list[_Arrival]]
) -> list[_Arrival]:
    """Read notes of arrivals: in this process, unless there are very many."""
    why = too_large(size.bytes, project.limits.delivered_bytes)
    return spark.best(work, size.bytes, project.limits, why=why)[0]


def _warn_of_skipped(stream: FileStream, files: Iterable[LandedFile]) -> Iterator[str]:
    """Yield warnings of unreadable and of empty files; empty ones are read once they have rows."""
    for file in files:
        if file.fault:
            yield f"{stream.table.id}: {file.shown} can't be read: {file.fault}"
        elif not file.size:
            yield f"{stream.table.id}: {file.shown} is empty and is skipped until it has rows"


def _find_files(stream: FileStream, arrivals: Sequence[_Arrival]) -> list[_Arrival]:
    """Return the arrivals with their files as they are now; they may have changed."""
    listed = landing.list_delivered(stream.path, stream.table.id)
    there = {file.uri: file for file in listed}
    gone = [f.uri for a in arrivals for f in a.files if f.uri not in there]
    if gone:
        raise UsageError(
            f"{stream.table.id}: {', '.join(gone)} arrived together with quarantined rows, and "
            f"does not exist any more",
            hint="restore the files of that time: they are read together again",
        )
    return [replace(a, files=tuple(there[f.uri] for f in a.files)) for a in arrivals]


def _reflected_version(before: Head | None, target: str, name: str, now: Head | None) -> int:
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


def _group_arrivals(rows: DataFrame) -> Iterator[_Arrival]:
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
