"""Committing a changelog exactly once, rows and position in one commit.

Two committers serve one contract: Spark's MERGE for large changelogs, delta-rs for small ones
(a tenth of a second where Spark's MERGE needs one or more). Both number their commits as the
table's batches in Delta's `txn` action, and both are followed by a look at the head: whose attempt
it names has won. A diff is never kept over a lost race: it was made from a head that is gone.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changelog.diff import CHANGE
from sluice.errors import LostRace
from sluice.storage.position import Head, Position, head

_TXN = "spark.databricks.delta.write"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


@dataclass(frozen=True)
class Committed:
    """What a commit did. `version` is the table's head after it."""

    version: int
    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    @property
    def changed(self) -> int:
        """Rows in the changelog."""
        return self.inserted + self.updated + self.deleted


def commit_position(before: Head, position: Position) -> Committed:
    """Record that changes were consumed which alter no row: no file, no feed row."""
    table = DeltaTable(before.uri, version=before.version)
    properties = _properties(before, position.without_change(before.data_version))
    with _conflicts(before, position):
        table.create_write_transaction(
            [], mode="append", schema=table.schema(), commit_properties=properties
        )
    return _won(before, position, Committed(before.version + 1))


def commit_arrow(before: Head, rows: pa.Table, key: Sequence[str], position: Position) -> Committed:
    """Commit a small changelog (columns of the table + CHANGE) by delta-rs.

    It goes on exactly the version that `before` names, or raises LostRace.
    """
    done = _count(before, rows)
    table = DeltaTable(before.uri, version=before.version)
    properties = _properties(before, position)
    columns = [field.name for field in table.schema().fields]
    with _conflicts(before, position):
        if done.changed == done.inserted:
            plain = rows.select(columns)
            write_deltalake(table, plain, mode="append", commit_properties=properties)
        else:
            _merge_arrow(table, rows, columns, key, properties)
    return _won(before, position, done)


def commit_spark(
    session: SparkSession,
    before: Head,
    rows: DataFrame,
    counts: dict[str, int],
    key: Sequence[str],
    position: Position,
) -> Committed:
    """Commit a changelog of any size by Spark: an append if it only inserts, else a MERGE."""
    done = Committed(
        before.version + 1,
        counts.get("insert", 0),
        counts.get("update", 0),
        counts.get("delete", 0),
    )
    with _numbered(session, before, position):
        if done.changed == done.inserted:
            rows.drop(CHANGE).write.format("delta").mode("append").save(before.uri)
        else:
            _merge_spark(session, before, rows, key)
    return _won(before, position, done)


def overwrite_spark(
    session: SparkSession, before: Head, rows: DataFrame, position: Position
) -> Committed:
    """Replace the table and its columns whole, in one commit."""
    with _numbered(session, before, position):
        writer = rows.write.format("delta").mode("overwrite")
        writer.option("overwriteSchema", "true").save(before.uri)
    return _won(before, position, Committed(before.version + 1, inserted=rows.count()))


def _merge_spark(session: SparkSession, before: Head, rows: DataFrame, key: Sequence[str]) -> None:
    columns = [c for c in rows.columns if c != CHANGE]
    rows.createOrReplaceTempView("_sluice_changelog")
    on = " AND ".join(f"t.`{c}` <=> s.`{c}`" for c in key)
    sets = ", ".join(f"`{c}` = s.`{c}`" for c in columns if c not in key)
    update = f"WHEN MATCHED AND s.{CHANGE} = 'update' THEN UPDATE SET {sets}" if sets else ""
    names, values = ", ".join(f"`{c}`" for c in columns), ", ".join(f"s.`{c}`" for c in columns)
    session.sql(
        f"MERGE INTO delta.`{before.uri}` t USING _sluice_changelog s ON {on} "
        f"WHEN MATCHED AND s.{CHANGE} = 'delete' THEN DELETE {update} "
        f"WHEN NOT MATCHED AND s.{CHANGE} = 'insert' THEN INSERT ({names}) VALUES ({values})"
    ).collect()


def _merge_arrow(
    table: DeltaTable,
    rows: pa.Table,
    columns: Sequence[str],
    key: Sequence[str],
    properties: CommitProperties,
) -> None:
    merge = table.merge(
        rows,
        predicate=" AND ".join(f'(t."{c}" IS NOT DISTINCT FROM s."{c}")' for c in key),
        source_alias="s",
        target_alias="t",
        commit_properties=properties,
    ).when_matched_delete(f"s.\"{CHANGE}\" = 'delete'")
    values = {f'"{c}"': f's."{c}"' for c in columns if c not in key}
    if values:
        merge = merge.when_matched_update(values, predicate=f"s.\"{CHANGE}\" = 'update'")
    everything = {f'"{c}"': f's."{c}"' for c in columns}
    merge.when_not_matched_insert(everything, predicate=f"s.\"{CHANGE}\" = 'insert'").execute()


def _count(before: Head, rows: pa.Table) -> Committed:
    kinds = rows.column(CHANGE).to_pylist()
    return Committed(
        before.version + 1, kinds.count("insert"), kinds.count("update"), kinds.count("delete")
    )


def _properties(before: Head, position: Position) -> CommitProperties:
    return CommitProperties(
        custom_metadata={"userMetadata": position.to_json()},
        max_commit_retries=0,
        app_transactions=[Transaction(before.table, position.batch)],
    )


@contextmanager
def _numbered(session: SparkSession, before: Head, position: Position) -> Iterator[None]:
    settings = {
        f"{_TXN}.txnAppId": before.table,
        f"{_TXN}.txnVersion": str(position.batch),
        _METADATA: position.to_json(),
    }
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        with _conflicts(before, position):
            yield
    finally:
        for name in settings:
            session.conf.unset(name)


@contextmanager
def _conflicts(before: Head, position: Position) -> Iterator[None]:
    try:
        yield
    except CommitFailedError as error:
        raise _lost(before, position) from error
    except DeltaError as error:
        if "version" in str(error).lower() and "exist" in str(error).lower():
            raise _lost(before, position) from error
        raise
    except Exception as error:
        if "Concurrent" in type(error).__name__ or "DELTA_CONCURRENT" in str(error):
            raise _lost(before, position) from error
        raise


def _won(before: Head, position: Position, done: Committed) -> Committed:
    after = head(before.uri)
    if after is None or after.position is None or after.position.attempt != position.attempt:
        raise _lost(before, position)
    return Committed(after.version, done.inserted, done.updated, done.deleted)


def _lost(before: Head, position: Position) -> LostRace:
    return LostRace(
        f"another writer committed to {before.uri} after version {before.version}: "
        f"batch {position.batch} of this attempt was thrown away",
        hint="nothing is lost; the next attempt starts from the new head",
    )


def changelog_counts(rows: DataFrame) -> dict[str, int]:
    """How many rows of each change type a changelog holds. One Spark job."""
    counted = rows.groupBy(CHANGE).agg(F.count(F.lit(1)).alias("n")).collect()
    return {row[CHANGE]: row["n"] for row in counted}
