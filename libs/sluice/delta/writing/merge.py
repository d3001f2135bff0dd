"""Apply a changelog by one MERGE, Spark's or delta-rs', and make all other commits of Spark.

Rows are found by their key. Literal bounds of the keys let a MERGE skip files before it reads
anything. Only whole numbers have bounds, because their statistics are exact from every writer. Both
report how many rows they inserted, updated and deleted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from weakref import WeakSet

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType

from sluice.changes import CHANGE
from sluice.declare.stores import store_of
from sluice.delta.log.continuity import lost_race_of
from sluice.delta.log.files import table_size
from sluice.delta.log.opened import open_version
from sluice.delta.log.position import Head, Position
from sluice.delta.places.delta_rs import open_table
from sluice.delta.places.failpoint import passing
from sluice.delta.places.lake_layout import table_at
from sluice.delta.reading.local import to_spark_types
from sluice.delta.reading.wanted import KeyBounds, clusters
from sluice.delta.writing import own_commits
from sluice.delta.writing.filing import in_order
from sluice.delta.writing.own_commits import (
    Committed,
    confirm,
    count_changes,
    fenced,
    result_of,
    writer_properties,
)
from sluice.errors import HistoryLost, UsageError
from sluice.interpreter import is_here
from sluice.limits import Limits

Applied = tuple[int, ...]  # number of rows for each of CHANGES
CHANGES = ("inserted", "updated", "deleted")
Filed = Callable[[DataFrame], DataFrame]
_TXN = "spark.databricks.delta.write"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_ROW_GROUP = "parquet.block.row.count.limit"
_NO_VECTORS = {"spark.databricks.delta.merge.deletionVectors.persistent": "false"}  # see 0040
_SOURCE_STAYS = {"spark.databricks.delta.merge.materializeSource": "none"}


def arrow_bounds(
    table: DeltaTable, rows: pa.Table, key: Sequence[str], quote: str = '"'
) -> list[str]:
    """Return bounds like `spark_bounds`, for rows in this process; `quote` encloses names."""
    filed = set(table.metadata().partition_columns)
    found = []
    for name in key:
        column = rows.column(name)
        if not pa.types.is_integer(column.type) or column.null_count or not len(column):
            continue
        values = column.unique().to_pylist() if name in filed else None
        found.append(_bound(f"t.{quote}{name}{quote}", clusters(column), values))
    return found


def spark_bounds(before: Head, rows: DataFrame, key: Sequence[str]) -> list[str]:
    """Return literal conditions that every row of the table with a key of the changelog meets.

    With them a MERGE skips files and partitions before it reads anything. One Spark job.
    """
    table = open_version(before.uri, before.version)
    filed = set(table.metadata().partition_columns)
    whole = [c for c in key if isinstance(rows.schema[c].dataType, IntegralType)]
    wanted = [
        extremes(c, *([F.collect_set(f"`{c}`").alias("values")] if c in filed else [])).alias(c)
        for c in whole
    ]
    found = rows.agg(*wanted).collect()[0].asDict(recursive=True) if wanted else {}
    return [
        _bound(f"t.`{name}`", [(b["least"], b["most"])], b.get("values"))
        for name, b in found.items()
        if not b["has_null"]
    ]


def extremes(column: str, *more: Column) -> Column:
    """Return a column's least and greatest value, and `has_null`, as one struct of a query."""
    has_null = F.bool_or(F.col(f"`{column}`").isNull()).alias("has_null")
    least, most = F.min(f"`{column}`").alias("least"), F.max(f"`{column}`").alias("most")
    return F.struct(least, most, has_null, *more)


def _bound(column: str, spans: Sequence[KeyBounds], values: Sequence[int] | None) -> str:
    if values is not None:
        return f"{column} IN ({', '.join(map(str, sorted(values)))})"
    within = (f"({column} >= {least} AND {column} <= {most})" for least, most in spans)
    return f"({' OR '.join(within)})"


def merge_arrow(
    table: DeltaTable,
    rows: pa.Table,
    columns: Sequence[str],
    key: Sequence[str],
    properties: CommitProperties,
) -> Applied:
    """Merge by delta-rs, in one commit with these properties."""
    same = [f'(t."{c}" IS NOT DISTINCT FROM s."{c}")' for c in key]
    merge = table.merge(
        rows,
        predicate=" AND ".join([*arrow_bounds(table, rows, key), *same]),
        source_alias="s",
        target_alias="t",
        commit_properties=properties,
        writer_properties=writer_properties(rows.select(columns).schema),
    ).when_matched_delete(f"s.\"{CHANGE}\" = 'delete'")
    values = {f'"{c}"': f's."{c}"' for c in columns if c not in key}
    if values:
        merge = merge.when_matched_update(values, predicate=f"s.\"{CHANGE}\" = 'update'")
    everything = {f'"{c}"': f's."{c}"' for c in columns}
    merge = merge.when_not_matched_insert(everything, predicate=f"s.\"{CHANGE}\" = 'insert'")
    said = merge.execute()
    return tuple(said[f"num_target_rows_{change}"] for change in CHANGES)


def check_applied(before: Head, done: Committed, applied: Applied) -> None:
    """Raise HistoryLost if the changelog's old rows were not in the table."""
    wanted = (done.inserted, done.updated, done.deleted)
    if wanted != applied:
        raise HistoryLost(
            f"a changelog of {wanted} inserts, updates and deletes changed {applied} rows: the "
            "table did not hold the rows that it was computed from",
            hint=f"run `sluice rebuild {table_at(before.uri)}`",
        )


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
            return self._append(rows, done, has_new_columns=has_new_columns)
        return self._merge(rows, done, None, has_new_columns=has_new_columns)

    def arrow(self, rows: pa.Table) -> Committed:
        """Commit a changelog held in this process; its counts and bounds need no Spark job."""
        counts = count_changes(rows[CHANGE])
        table = open_table(self.before.uri, version=self.before.version)
        bounds = arrow_bounds(table, rows, self.key, "`")
        handed = self.session.createDataFrame(to_spark_types(rows))
        with _set(self.session, _SOURCE_STAYS):
            if counts.keys() <= {"insert"}:
                return self.changelog(handed, counts)
            return self._merge(handed, result_of(self.before, counts), bounds)

    def first(self, rows: DataFrame) -> Committed:
        """Commit the first rows of a table, written to files in their present layout.

        The rows are computed once, because the log reports their number.
        """
        done = self._append(rows, Committed(self.before.version + 1))
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
        return confirm(self.before, self.position, done)

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
        return confirm(self.before, self.position, done)

    def rewrite(self, filed: Filed, where: str | None) -> None:
        """Write the rows, or those of the partitions that `where` selects, into other files.

        The change feed does not show it. `filed` puts the rows in order. Delta takes no batch
        number in such a commit. The rows are read within the transaction, hence at the version that
        it replaces. Delta refuses the commit if one of their files was removed meanwhile. A
        position that came too late is recognized by its `after`.
        """
        uri = self.before.uri
        check_spark_may_commit(self.session, uri)
        settings = {_METADATA: self.position.to_json(), _ROW_GROUP: str(own_commits.GROUP_ROWS)}
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

    def _append(
        self, rows: DataFrame, done: Committed, *, has_new_columns: bool = False
    ) -> Committed:
        with self._fenced():
            writer = rows.drop(CHANGE).write.format("delta").mode("append")
            writer.option("mergeSchema", has_new_columns).save(self.before.uri)
        return confirm(self.before, self.position, done)

    def _merge(
        self,
        rows: DataFrame,
        done: Committed,
        bounds: Sequence[str] | None,
        *,
        has_new_columns: bool = False,
    ) -> Committed:
        """Commit by MERGE. `bounds`: conditions on keys; a Spark job finds them if not given."""
        columns = [c for c in rows.columns if c != CHANGE]
        sets = ", ".join(f"`{c}` = s.`{c}`" for c in columns if c not in self.key)
        update = f"WHEN MATCHED AND s.{CHANGE} = 'update' THEN UPDATE SET {sets}" if sets else ""
        names, values = ", ".join(f"`{c}`" for c in columns), ", ".join(f"s.`{c}`" for c in columns)
        insert = f"INSERT ({names}) VALUES ({values})"
        with self._fenced():
            bounds = spark_bounds(self.before, rows, self.key) if bounds is None else bounds
            on = " AND ".join([*bounds, *(f"t.`{c}` <=> s.`{c}`" for c in self.key)])
            rows.createOrReplaceTempView("_sluice_changelog")
            said = self.session.sql(
                f"MERGE {'WITH SCHEMA EVOLUTION ' if has_new_columns else ''}"
                f"INTO delta.`{self.before.uri}` t USING _sluice_changelog s ON {on} "
                f"WHEN MATCHED AND s.{CHANGE} = 'delete' THEN DELETE {update} "
                f"WHEN NOT MATCHED AND s.{CHANGE} = 'insert' THEN {insert}"
            ).collect()
            if said:  # nothing if Delta skipped it as a repeated batch
                applied = tuple(said[0][f"num_{change}_rows"] for change in CHANGES)
                check_applied(self.before, done, applied)
        return confirm(self.before, self.position, done)

    @contextmanager
    def _fenced(self) -> Iterator[None]:
        with fenced(self.before, self.position) as mine:
            check_spark_may_commit(self.session, self.before.uri)
            settings = {
                f"{_TXN}.txnAppId": self.before.table,
                f"{_TXN}.txnVersion": str(mine.batch),
                _METADATA: mine.to_json(),
                _ROW_GROUP: str(own_commits.GROUP_ROWS),
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


_checked: "WeakSet[SparkSession]" = WeakSet()


def check_spark_may_commit(session: SparkSession, table_uri: str) -> None:
    """Raise UsageError if Spark's commits to a table would not exclude other processes'.

    On S3, Spark makes the same conditional request as delta-rs if it is configured for that. A
    Connect server that Sluice did not start may not be.
    """
    store = store_of(table_uri)
    if store and not store.takes_spark:
        raise UsageError(
            f"Spark must not commit to {table_uri}: {store.why_not_spark}",
            hint="nothing was committed; this is a defect of Sluice, which commits by delta-rs",
        )
    if not store or not store.conf or session in _checked or is_here(session):
        return  # what runs here leaves such a commit to Spark
    has = {name: session.conf.get(name, "") or "not set" for name in store.conf}
    faults = [f"{n} is {has[n]}, not {value}" for n, value in store.conf.items() if has[n] != value]
    if faults:
        raise UsageError(
            f"Spark must not commit to {table_uri}: {'; '.join(faults)}",
            hint="nothing was committed; set its server up for S3, or write `commit: delta-rs` "
            "under `spark:`",
        )
    _checked.add(session)


def replace_where(uri: str, rows: DataFrame, predicate: str) -> None:
    """Replace the rows that `predicate` selects by `rows`, with Spark. Raises LostRace."""
    check_spark_may_commit(rows.sparkSession, uri)
    with lost_race_of(uri, open_table(uri).version()):
        writer = rows.write.format("delta").mode("overwrite")
        writer.option("replaceWhere", predicate).save(uri)
