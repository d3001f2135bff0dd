"""Delta tables that others write as sources: their commits up to now, in batches of whole ones.

The first batch is the whole table. A batch is a separate interval, from the instant at which it was
read. Its commit holds the place that it reached, and the next one continues there.

Copies of a row that came and went within a batch cancel out, so a commit that rewrites a file
brings only what differs. If a row of a key comes, those that went are hidden. A row that goes keeps
only its key, if there is one: it is found by that, and its other values may be bad. A row with a
null key was never stored, so its delete is ignored.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from sluice.changes import WEIGHT, sum_weights, weigh
from sluice.declare.declared import FILE, OP
from sluice.delta.intervals import deliveries
from sluice.delta.log import CommitRange, WeightedFiles
from sluice.delta.log.files import table_size
from sluice.delta.log.opened import Foreign
from sluice.delta.log.position import Head, head
from sluice.delta.note_tables import read_rows
from sluice.delta.places.failpoint import passing
from sluice.delta.reading.foreign import columns_of, read_part
from sluice.delta.reading.spark_reads import is_readable
from sluice.engine import BatchReport
from sluice.engine.advance import Run
from sluice.engine.operator import names, union
from sluice.errors import FeedVacuumed, InputReplaced
from sluice.files.conversion import BLOCK, ROW, convert
from sluice.files.reading import comparable
from sluice.gate.sql import field_name, text
from sluice.language.interval import INSTANT, Interval
from sluice.language.names import CHANGE_TYPE
from sluice.limits import Limits
from sluice.sources import Source
from sluice.sources.delivery import Delivery, judge_rows, next_moment
from sluice.sources.origins import TableOrigin, check_source
from sluice.sources.replacement import or_unchanged, replace_interval
from sluice.sources.versions import VersionRange, check_columns, check_files, range_of
from sluice.spark.session import Spark

NOTHING = -1  # the version before the first
MOST = 2**62
AS_LANDED = "nothing was changed; `sluice rebuild {} --as-landed` reads the table as it is now"


@dataclass(frozen=True)
class TableFeed(TableOrigin):
    """A Delta table that is read."""

    def read(
        self, spark: Spark, run: Run, interval: Interval | None = None
    ) -> Iterator[BatchReport]:
        """Deliver the commits that are there now. Without any, nothing is committed.

        Raises HistoryLost if the table no longer has what follows the recorded place.
        """
        before = head(self.kept_uri)
        check_source(self.project, self.table, before)
        return or_unchanged(self.project, self.table, _deliver(spark, self, before, run))

    def replay(
        self, spark: Spark, run: Run, intervals: Iterable[Interval]
    ) -> Iterator[BatchReport]:
        """Read those batches again. Safe to repeat.

        Raises HistoryLost if the table no longer has what one of them has read.
        """
        check_source(self.project, self.table, head(self.kept_uri))
        found = self.open_table()
        versions = VersionRange.of(head(self.kept_uri), self.table.id)
        noted = {d.interval.start: d.files for d in deliveries(self.intervals_uri)}
        if versions and versions.at:
            noted.setdefault(versions.at, versions.fingerprint())
        for at in sorted(interval.start for interval in intervals):
            again = _span_of(self, found, noted.get(at, ""), at)
            yield self.deliver(spark, found, *again, run)

    def deliver(
        self,
        spark: Spark,
        found: Foreign,
        commits: CommitRange,
        versions: VersionRange,
        run: Run,
        after: Mapping[str, Any] | None = None,
    ) -> BatchReport:
        """Deliver a span of commits as the batch of a place.

        `after`: the place that the table's position holds until then; None if it does not move.
        """
        assert versions.at
        check_columns(found, commits.upto, self.spec.of_files, self.table.id)
        check_files(found, commits, self.table.id)
        interval = Interval(versions.at, versions.at + INSTANT)
        delivery = Delivery(
            self.table,
            self.spec,
            interval,
            self.uri,
            fingerprint=versions.fingerprint(),
            message_bytes=commits.bytes,
            topic={} if after is None else versions.to_dict(),
            after=after or {},
        )

        def rows(session: SparkSession) -> DataFrame:
            limits = self.project.limits
            return judge_rows(rows_of(session, self.spec, found, commits, limits), delivery)

        return replace_interval(spark, self.project, delivery, run, arrived=rows)


def _deliver(
    spark: Spark, source: TableFeed, before: Head | None, run: Run
) -> Iterator[BatchReport]:
    found = source.open_table()
    versions = VersionRange.of(before, source.table.id)
    if versions:
        versions.check(found, source.table.id)
        yield from _note_last(spark, source, versions, found, run)
    after = dict(before.position.topic) if before and before.position else {}
    last = versions or VersionRange(found.table_id, NOTHING, NOTHING)
    some = source.ranges(found, versions.upto) if versions else [_whole_table(found)]
    for nth, span in enumerate(some):
        if not nth:
            source.clear_quarantine(versions.at if versions else None)
        passing("read", source.table.id)
        last = last.advance(found, span, next_moment(last.at))
        report = source.deliver(spark, found, span, last, run, after)
        replaced = (
            f"{source.table.id}: {what} of {source.uri} replaced its rows; the difference is read"
            for what in span.replaced
        )
        yield replace(report, warnings=(*replaced, *report.warnings))
        after = last.to_dict()


def _whole_table(found: Foreign) -> CommitRange:
    """Return the whole table, as if one commit had written it."""
    size = table_size(found.uri, found.version).bytes
    return CommitRange(NOTHING, found.version, (WeightedFiles(found.version, bytes=size),))


def _span_of(
    source: TableFeed, found: Foreign, noted: str, at: datetime
) -> tuple[CommitRange, VersionRange]:
    """Return what a batch has read, by its note."""
    read = range_of(noted)
    if read is None or read[0] != found.table_id:
        raise InputReplaced(
            f"{source.table.id}: the batch of {at.isoformat()} was read from another table than "
            f"the one that is at {found.uri} now",
            hint=AS_LANDED.format(source.table.id),
        )
    _, after, upto = read
    if after == NOTHING and not is_readable(found.uri, upto):
        raise FeedVacuumed(
            f"{source.table.id}: version {upto} of {found.uri}, which the batch of "
            f"{at.isoformat()} has read, can't be read any more",
            hint=AS_LANDED.format(source.table.id),
        )
    if after == NOTHING:
        span = _whole_table(replace(found, version=upto))
    else:
        past = replace(found, version=upto)
        span = next(source.ranges(past, after, MOST, MOST), CommitRange(after, upto))
    return span, VersionRange(found.table_id, after, upto, at=at)


def _note_last(
    spark: Spark, source: TableFeed, versions: VersionRange, found: Foreign, run: Run
) -> Iterator[BatchReport]:
    """Read the last batch again if it has no note."""
    if not versions.at or read_rows(source.intervals_uri, [("interval_start", "=", versions.at)]):
        return
    span, again = _span_of(source, found, versions.fingerprint(), versions.at)
    yield source.deliver(spark, found, span, again, run)


INSERT, DELETE = "insert", "delete"


def rows_of(
    session: SparkSession, spec: Source, found: Foreign, commits: CommitRange, limits: Limits
) -> DataFrame:
    """Return the rows that a span of commits brings and takes, for the gate."""
    wanted = columns_of(found.uri, commits.upto, tuple(spec.of_files))
    parts = [read_part(session, found.uri, part, wanted, limits) for part in commits.parts]
    if not parts:
        fields = wanted.add(CHANGE_TYPE, "string")
        parts = [session.createDataFrame([], fields)]
    own = [f"{field_name(theirs)} AS `{name}`" for theirs, name in spec.of_files.items()]
    feed = union([part.selectExpr(*own, CHANGE_TYPE) for part in parts])
    rows = _cancel_out(feed, spec, only_comes=all(part.weight > 0 for part in commits.parts))
    origin = f"{found.uri} at version {commits.upto}"
    known = rows.selectExpr(
        *(f"`{name}`" for name in spec.types),
        OP,
        f"{text(origin)} AS {FILE}",
        f"CASE WHEN {OP} = '{DELETE}' THEN 0L ELSE 1L END AS {BLOCK}",
    )
    placed = known.withColumn(ROW, F.xxhash64(*comparable(known, tuple(spec.types))))
    return convert(placed, spec, origin=origin)


def _cancel_out(feed: DataFrame, spec: Source, *, only_comes: bool) -> DataFrame:
    """Return each row that came or went, with OP."""
    columns = tuple(spec.types)
    if only_comes:
        return feed.drop(CHANGE_TYPE).withColumn(OP, F.lit(INSERT))
    net = sum_weights(weigh(feed, columns), columns)
    does = F.when(F.col(WEIGHT) > 0, INSERT).otherwise(DELETE)
    copies = F.explode(F.sequence(F.lit(1), F.abs(F.col(WEIGHT)).cast("int")))
    each = net.withColumn(OP, does).withColumn("_copy", copies)
    if not spec.key:
        return each
    best = F.max(WEIGHT).over(Window.partitionBy(*names(spec.key)))
    goes = F.expr(" AND ".join(f"`{name}` IS NOT NULL" for name in spec.key)) & (F.col("_best") < 0)
    kept = each.withColumn("_best", best).where((F.col(WEIGHT) > 0) | goes)
    return kept.select(*_keep_keys(columns, spec), OP)


def _keep_keys(columns: tuple[str, ...], spec: Source) -> Iterator[Column]:
    for name in columns:
        value = F.col(f"`{name}`")
        is_kept = name in spec.key
        yield value if is_kept else F.when(F.col(OP) == INSERT, value).alias(name)
