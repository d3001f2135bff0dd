"""Commits by Spark, of any size: appends, merges, and rewrites of the same rows."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changes.diff import CHANGE
from sluice.delta.log.feed_size import table_size
from sluice.delta.log.lost_race import lost_race_of
from sluice.delta.log.position import Head, Position
from sluice.delta.places.delta_rs import open_table
from sluice.delta.places.failpoint import passing
from sluice.delta.places.spark_commits import check_spark_may_commit
from sluice.delta.reading.local import plain
from sluice.delta.writing import statistics
from sluice.delta.writing.fence import Committed, fenced, result_of, won
from sluice.delta.writing.filing import in_order
from sluice.delta.writing.merge import check_applied, merge_spark
from sluice.delta.writing.merge_bounds import arrow_bounds, spark_bounds
from sluice.limits import Limits

_TXN = "spark.databricks.delta.write"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_ROW_GROUP = "parquet.block.row.count.limit"
_NO_VECTORS = {"spark.databricks.delta.merge.deletionVectors.persistent": "false"}  # see 0040
_SOURCE_STAYS = {"spark.databricks.delta.merge.materializeSource": "none"}

Filed = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class SparkCommit:
    """One commit onto exactly the version that `before` names; it records `position`.

    Every method commits, and raises LostRace if the table has moved on. `key`: that of the rows.
    """

    session: SparkSession
    before: Head
    position: Position
    key: Sequence[str] = ()
    limits: Limits = field(default_factory=Limits)

    def changelog(
        self, rows: DataFrame, counts: Mapping[str, int], *, has_new_columns: bool = False
    ) -> Committed:
        """Commit a changelog with these numbers of changes.

        It is appended if it only inserts, else merged. `has_new_columns`: the same commit adds the
        changelog's columns that the table lacks.
        """
        done = result_of(self.before, counts)
        if done.changed == done.inserted:
            rows = in_order(rows, self.before.uri, self.key, done.inserted, self.limits)
            return self._appended(rows, done, has_new_columns=has_new_columns)
        return self._merged(rows, done, None, has_new_columns=has_new_columns)

    def arrow(self, rows: pa.Table) -> Committed:
        """Commit a changelog held in this process; its counts and bounds need no Spark job."""
        counts = Counter(rows[CHANGE].to_pylist())
        table = open_table(self.before.uri, version=self.before.version)
        bounds = arrow_bounds(table, rows, self.key, "`")
        handed = self.session.createDataFrame(plain(rows))
        with _set(self.session, _SOURCE_STAYS):
            if counts.keys() <= {"insert"}:
                return self.changelog(handed, counts)
            return self._merged(handed, result_of(self.before, counts), bounds)

    def first(self, rows: DataFrame) -> Committed:
        """Commit the first rows of a table, written to files in their present layout.

        The rows are computed once, because the log reports their number.
        """
        done = self._appended(rows, Committed(self.before.version + 1))
        counted = table_size(self.before.uri, done.version).rows
        return replace(done, inserted=rows.count() if counted is None else counted)

    def replace(self, rows: DataFrame, counts: Mapping[str, int]) -> Committed:
        """Commit a changelog that leaves no row unchanged: its new rows overwrite the table.

        The table is not searched. The feed shows deletes and inserts from the table's own files.
        """
        done = result_of(self.before, counts)
        new = rows.where(F.col(CHANGE) != "delete").drop(CHANGE)
        total = done.inserted + done.updated
        new = in_order(new, self.before.uri, self.key, total, self.limits)
        with self._fenced():
            new.write.format("delta").mode("overwrite").save(self.before.uri)
        return won(self.before, self.position, done)

    def overwrite(self, rows: DataFrame, partition_by: Sequence[str] | None = None) -> Committed:
        """Replace the table and its columns whole, in one commit.

        `partition_by`: the new partition columns; without it, the table keeps its own.
        """
        with self._fenced():
            had = open_table(self.before.uri).metadata().partition_columns
            partitions = had if partition_by is None else partition_by
            writer = rows.write.format("delta").mode("overwrite").partitionBy(*partitions)
            writer.option("overwriteSchema", "true").save(self.before.uri)
        done = Committed(self.before.version + 1, inserted=rows.count())
        return won(self.before, self.position, done)

    def rewrite(self, filed: Filed, where: str | None) -> None:
        """Write the rows, or those of the partitions that `where` selects, into other files.

        The change feed does not show it. `filed` puts the rows in order. Delta takes no batch
        number in such a commit. The rows are read within the transaction, hence at the version that
        it replaces. Delta refuses the commit if one of their files was removed meanwhile. A
        position that came too late is recognized by its `after`.
        """
        uri = self.before.uri
        check_spark_may_commit(self.session, uri)
        settings = {_METADATA: self.position.to_json(), _ROW_GROUP: str(statistics.GROUP_ROWS)}
        with lost_race_of(uri, self.before.version), _set(self.session, settings):
            rows = self.session.read.format("delta").load(uri)  # no version: the transaction's
            writer = filed(rows.where(F.expr(where)) if where else rows).write.format("delta")
            writer = writer.mode("overwrite").option("dataChange", "false")
            if where:
                writer = writer.option("replaceWhere", where)
                writer = writer.option("maxRecordsPerFile", self.limits.slice_file_rows)
            passing("committing", uri)
            writer.save(uri)
            passing("committed", uri)

    def _appended(
        self, rows: DataFrame, done: Committed, *, has_new_columns: bool = False
    ) -> Committed:
        with self._fenced():
            writer = rows.drop(CHANGE).write.format("delta").mode("append")
            writer.option("mergeSchema", has_new_columns).save(self.before.uri)
        return won(self.before, self.position, done)

    def _merged(
        self,
        rows: DataFrame,
        done: Committed,
        bounds: Sequence[str] | None,
        *,
        has_new_columns: bool = False,
    ) -> Committed:
        """Commit by MERGE. `bounds`: conditions on keys; a Spark job finds them if not given."""
        with self._fenced():
            bounds = spark_bounds(self.before, rows, self.key) if bounds is None else bounds
            uri = self.before.uri
            if applied := merge_spark(self.session, uri, rows, self.key, bounds, has_new_columns):
                check_applied(self.before, done, applied)
        return won(self.before, self.position, done)

    @contextmanager
    def _fenced(self) -> Iterator[None]:
        """Number the commit, and put the position into it."""
        with fenced(self.before, self.position) as mine:
            check_spark_may_commit(self.session, self.before.uri)
            settings = {
                f"{_TXN}.txnAppId": self.before.table,
                f"{_TXN}.txnVersion": str(mine.batch),
                _METADATA: mine.to_json(),
                _ROW_GROUP: str(statistics.GROUP_ROWS),
                **_NO_VECTORS,
            }
            with _set(self.session, settings):
                yield


@contextmanager
def _set(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            session.conf.unset(name)


def changelog_counts(rows: DataFrame) -> dict[str, int]:
    """Count the rows of each change type in a changelog. One Spark job."""
    counted = rows.groupBy(CHANGE).agg(F.count(F.lit(1)).alias("n")).collect()
    return {row[CHANGE]: row["n"] for row in counted}
