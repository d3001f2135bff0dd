"""Commit a changelog exactly once: rows and position in one commit.

Two committers serve one contract: Spark's MERGE for large changelogs, delta-rs for small ones (a
tenth of a second instead of a second or more). Both number their commits as the table's batches in
Delta's `txn` action. Each commit is followed by a look at the log: the attempt that it names has
won. A diff is thrown away after a lost race, because it was made from an outdated head.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changes.diff import CHANGE
from sluice.delta.log.conflicts import lost_race_of
from sluice.delta.log.feed_size import table_size
from sluice.delta.log.opened import keep, taken
from sluice.delta.log.position import Head, Position
from sluice.delta.places.exclusive import check_spark_may_commit
from sluice.delta.places.failpoint import passing
from sluice.delta.places.lake import table_at
from sluice.delta.places.stores import open_table
from sluice.delta.reading.local import plain
from sluice.delta.writing.fence import Committed, fenced, properties, result_of, won
from sluice.delta.writing.filing import by_key, in_order
from sluice.delta.writing.merge import Applied, merge_arrow, merge_spark
from sluice.delta.writing.merge_bounds import arrow_bounds, spark_bounds
from sluice.delta.writing.statistics import GROUP_ROWS, writer_properties
from sluice.errors import HistoryLost
from sluice.limits import Limits

_TXN = "spark.databricks.delta.write"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_ROW_GROUP = "parquet.block.row.count.limit"
_SOURCE_STAYS = {"spark.databricks.delta.merge.materializeSource": "none"}


Filed = Callable[[DataFrame], DataFrame]


def commit_position(before: Head, position: Position) -> Committed:
    """Make a position-only commit: it consumed changes that alter no row. No file, no feed row."""
    table = taken(before.uri, before.version)
    unchanged = position.without_change(before.data_version)
    with fenced(before, unchanged) as mine:
        table.create_write_transaction(
            [],
            mode="append",
            schema=table.schema(),
            partition_by=table.metadata().partition_columns,
            commit_properties=properties(before, mine),
        )
    table.update_incremental()
    keep(before.uri, table)
    return won(before, position, Committed(before.version + 1))


def commit_arrow(before: Head, rows: pa.Table, key: Sequence[str], position: Position) -> Committed:
    """Commit a small changelog (columns of the table + CHANGE) by delta-rs.

    The commit goes onto exactly the version that `before` names, or raises LostRace.
    """
    done = result_of(before, Counter(rows[CHANGE].to_pylist()))
    table = taken(before.uri, before.version)
    columns = [field.name for field in table.schema().fields]
    with fenced(before, position) as mine:
        how = properties(before, mine)
        if done.changed == done.inserted:
            plain = by_key(rows.select(columns), key)
            write_deltalake(
                table,
                plain,
                mode="append",
                commit_properties=how,
                writer_properties=writer_properties(plain.schema),
            )
        else:
            _check_applied(before, done, merge_arrow(table, rows, columns, key, how))
    keep(before.uri, table)
    return won(before, position, done)


def overwrite_arrow(
    before: Head, rows: pa.Table, position: Position, partition_by: Sequence[str] | None = None
) -> Committed:
    """Replace the table and its columns whole by delta-rs, like `overwrite_spark`."""
    table = open_table(before.uri, before.version)
    had = table.metadata().partition_columns
    with fenced(before, position) as mine:
        write_deltalake(
            table,
            plain(rows),
            mode="overwrite",
            schema_mode="overwrite",
            partition_by=list(had if partition_by is None else partition_by),
            commit_properties=properties(before, mine),
            writer_properties=writer_properties(plain(rows).schema),
        )
    return won(before, position, Committed(before.version + 1, inserted=rows.num_rows))


def commit_arrow_by_spark(
    session: SparkSession,
    before: Head,
    rows: pa.Table,
    key: Sequence[str],
    position: Position,
    limits: Limits,
) -> Committed:
    """Commit like `commit_arrow`, but by Spark; counts and bounds of the rows need no Spark job."""
    counts = Counter(rows[CHANGE].to_pylist())
    bounds = arrow_bounds(open_table(before.uri, version=before.version), rows, key, "`")
    handed = session.createDataFrame(plain(rows))
    with _set(session, _SOURCE_STAYS):
        if counts.keys() <= {"insert"}:
            return commit_spark(session, before, handed, counts, key, position, limits)
        return _merged(session, before, handed, result_of(before, counts), key, position, bounds)


def commit_spark(
    session: SparkSession,
    before: Head,
    rows: DataFrame,
    counts: Mapping[str, int],
    key: Sequence[str],
    position: Position,
    limits: Limits,
    *,
    has_new_columns: bool = False,
) -> Committed:
    """Commit a changelog of any size by Spark: an append if it only inserts, else a MERGE.

    `has_new_columns`: the same commit adds the changelog's columns that the table lacks.
    """
    done = result_of(before, counts)
    if done.changed == done.inserted:
        rows = in_order(rows, before.uri, key, done.inserted, limits)
        return append_spark(session, before, rows, done, position, has_new_columns=has_new_columns)
    return _merged(
        session, before, rows, done, key, position, None, has_new_columns=has_new_columns
    )


def _merged(
    session: SparkSession,
    before: Head,
    rows: DataFrame,
    done: Committed,
    key: Sequence[str],
    position: Position,
    bounds: Sequence[str] | None,
    *,
    has_new_columns: bool = False,
) -> Committed:
    """Commit a changelog by MERGE.

    `bounds`: conditions on its keys; a Spark job finds them if they are not given.
    """
    with fenced(before, position) as mine, _numbered(session, before, mine):
        bounds = spark_bounds(before, rows, key) if bounds is None else bounds
        if applied := merge_spark(session, before.uri, rows, key, bounds, has_new_columns):
            _check_applied(before, done, applied)
    return won(before, position, done)


def append_spark(
    session: SparkSession,
    before: Head,
    rows: DataFrame,
    done: Committed,
    position: Position,
    *,
    has_new_columns: bool = False,
) -> Committed:
    """Commit a changelog of new rows, written to files in their present layout."""
    with fenced(before, position) as mine, _numbered(session, before, mine):
        writer = rows.drop(CHANGE).write.format("delta").mode("append")
        writer.option("mergeSchema", has_new_columns).save(before.uri)
    return won(before, position, done)


def append_filed(
    session: SparkSession, before: Head, rows: DataFrame, position: Position
) -> Committed:
    """Commit the first rows of a table, written to files in their present layout.

    The rows are computed once, because the log reports their number.
    """
    done = append_spark(session, before, rows, Committed(before.version + 1), position)
    counted = table_size(before.uri, done.version).rows
    return replace(done, inserted=rows.count() if counted is None else counted)


def replace_spark(
    session: SparkSession,
    before: Head,
    rows: DataFrame,
    counts: Mapping[str, int],
    key: Sequence[str],
    position: Position,
    limits: Limits,
) -> Committed:
    """Commit a changelog that leaves no row unchanged, by overwriting the table with its new rows.

    Nothing is searched in the table. The feed reports deletes and inserts, which it takes from the
    table's own files.
    """
    done = result_of(before, counts)
    new = rows.where(F.col(CHANGE) != "delete").drop(CHANGE)
    new = in_order(new, before.uri, key, done.inserted + done.updated, limits)
    with fenced(before, position) as mine, _numbered(session, before, mine):
        new.write.format("delta").mode("overwrite").save(before.uri)
    return won(before, position, done)


def overwrite_spark(
    session: SparkSession,
    before: Head,
    rows: DataFrame,
    position: Position,
    partition_by: Sequence[str] | None = None,
) -> Committed:
    """Replace the table and its columns whole, in one commit.

    `partition_by`: the new partition columns; without it the table keeps those that it has.
    """
    with fenced(before, position) as mine, _numbered(session, before, mine):
        had = open_table(before.uri).metadata().partition_columns
        partitions = had if partition_by is None else partition_by
        writer = rows.write.format("delta").mode("overwrite").partitionBy(*partitions)
        writer.option("overwriteSchema", "true").save(before.uri)
    return won(before, position, Committed(before.version + 1, inserted=rows.count()))


def rewrite_spark(
    session: SparkSession,
    before: Head,
    where: str | None,
    filed: Filed,
    position: Position,
    limits: Limits,
) -> None:
    """Write the table's rows, or those of the partitions that `where` selects, into other files.

    The change feed does not show it. `filed` puts the rows in order. Delta takes no batch number in
    such a commit. The rows are read within the transaction, hence at the version that it replaces.
    Delta refuses the commit if one of their files was removed meanwhile. A position that came too
    late is recognized by its `after`.
    """
    check_spark_may_commit(before.uri)
    settings = {_METADATA: position.to_json(), _ROW_GROUP: str(GROUP_ROWS)}
    with lost_race_of(before.uri, before.version), _set(session, settings):
        rows = session.read.format("delta").load(before.uri)  # no version: the transaction's
        writer = filed(rows.where(F.expr(where)) if where else rows).write.format("delta")
        writer = writer.mode("overwrite").option("dataChange", "false")
        if where:
            writer = writer.option("replaceWhere", where)
            writer = writer.option("maxRecordsPerFile", limits.slice_file_rows)
        passing("committing", before.uri)
        writer.save(before.uri)
        passing("committed", before.uri)


def drop_arrow(before: Head, where: str, position: Position) -> Committed:
    """Delete the whole partitions that `where` selects, in one commit that rewrites nothing."""
    with fenced(before, position) as mine:
        table = open_table(before.uri, version=before.version)
        said = table.delete(where, commit_properties=properties(before, mine))
    done = Committed(before.version + 1, deleted=int(said["num_deleted_rows"]))
    return won(before, position, done)


def _check_applied(before: Head, done: Committed, applied: Applied) -> None:
    """Raise HistoryLost if the changelog's rows were not those that the table held."""
    wanted = (done.inserted, done.updated, done.deleted)
    if wanted != applied:
        raise HistoryLost(
            f"a changelog of {wanted} inserts, updates and deletes changed {applied} rows: the "
            "table did not hold the rows that it was computed from",
            hint=f"run `sluice rebuild {table_at(before.uri)}`",
        )


@contextmanager
def _numbered(session: SparkSession, before: Head, position: Position) -> Iterator[None]:
    check_spark_may_commit(before.uri)
    settings = {
        f"{_TXN}.txnAppId": before.table,
        f"{_TXN}.txnVersion": str(position.batch),
        _METADATA: position.to_json(),
        _ROW_GROUP: str(GROUP_ROWS),
    }
    with _set(session, settings):
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
