"""Read Delta tables with Spark, at exactly one version; create them without it.

Of somebody else's table: a whole version, some of its files, or a commit's change data.

A pinned version always bounds a snapshot and a feed. So all tasks of a batch see the same rows,
whatever is committed meanwhile.

Few rows of such a table are read here as Arrow. Spark reads many rows, and tables with features
that only it supports. Nothing is ever written to it.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from urllib.parse import unquote
from weakref import WeakSet

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import DeltaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from sluice.declare.stores import store_of, takes_spark
from sluice.delta.log import Log, WeightedFiles
from sluice.delta.log.continuity import lost_race_of
from sluice.delta.log.files import active_files, feed_size, table_size
from sluice.delta.log.opened import CHECKPOINTS, naming_refusals, open_version
from sluice.delta.log.position import Head, Position, head_of, unread_features
from sluice.delta.places.delta_rs import open_table, options
from sluice.delta.places.failpoint import passing
from sluice.delta.places.lake_layout import note_format
from sluice.delta.places.table_files import check_exclusive
from sluice.delta.reading.live import change_data, live_rows, rows_of_files
from sluice.delta.reading.local import (
    is_bare,
    local_feed,
    local_snapshot,
    narrowed_snapshot,
    nullable,
    plain,
    spark_schema,
)
from sluice.errors import ColumnsChanged, FeedVacuumed, LogCleaned, TableAltered, UsageError
from sluice.interpreter import UnsupportedLocally, is_here
from sluice.language.names import CHANGE_TYPE
from sluice.limits import Limits

_checked: "WeakSet[SparkSession]" = WeakSet()
PROPERTIES: Mapping[str, str] = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "false",
    "delta.enableExpiredLogCleanup": "false",
    **CHECKPOINTS,
}
DISK = "keep tables of this size in a lake on a disk"


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


def create(
    uri: str,
    schema: StructType,
    position: Position,
    *,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
) -> Head:
    """Create an empty table with a change feed and nullable columns. LostRace if there is one."""
    check_exclusive(uri)
    note_format(uri)
    passing("creating", uri)
    metadata = {"userMetadata": position.to_json()}
    with lost_race_of(uri, version=-1):
        table = DeltaTable.create(
            uri,
            Schema.from_json(nullable(schema).json()),
            mode="error",
            partition_by=list(partition_by) or None,
            configuration={**PROPERTIES, **(properties or {})},
            commit_properties=CommitProperties(custom_metadata=metadata, max_commit_retries=0),
            storage_options=options(uri),
        )
    passing("created", uri)
    return head_of(table, uri)


def snapshot(
    session: SparkSession, uri: str, version: int, limits: Limits, columns: Sequence[str] = ()
) -> DataFrame:
    """Return the rows of the table as of `version`, at least with these columns; none means all."""
    size = table_size(uri, version).bytes
    if size <= limits.read_here_bytes:
        return local_snapshot(session, uri, version)
    if is_here(session) and size <= limits.computed_here_bytes:
        return narrowed_snapshot(session, uri, version, columns)
    if not is_here(session) and not takes_spark(uri):
        check_handed(uri, size, limits, DISK)
        return local_snapshot(session, uri, version)
    return session.read.format("delta").option("versionAsOf", version).load(uri)


def feed(session: SparkSession, uri: str, after: int, upto: int, limits: Limits) -> DataFrame:
    """Return the change feed of versions (after, upto], with Delta's own columns."""
    if after >= upto:
        raise ValueError(f"an empty range of versions: ({after}, {upto}]")
    most = limits.computed_here_bytes if is_here(session) else limits.read_here_bytes
    size = feed_size(uri, after, upto).bytes
    if size <= most:
        held = limits.held_bytes if is_here(session) else sys.maxsize
        return local_feed(session, uri, after, upto, held)
    if not is_here(session) and not takes_spark(uri):
        check_handed(uri, size, limits, DISK)
        return local_feed(session, uri, after, upto)
    reader = session.read.format("delta").option("readChangeFeed", "true")
    return reader.option("startingVersion", after + 1).option("endingVersion", upto).load(uri)


def check_handed(what: str, size: int, limits: Limits, hint: str) -> None:
    """Raise UsageError, with a hint of what to do, if this process can't read so much for Spark."""
    if size > limits.computed_here_bytes:
        raise UsageError(
            f"{what}: Spark has no access to this store, and {size:,} bytes are more than Sluice "
            f"reads for it ({limits.computed_here_bytes:,})",
            hint=f"nothing was committed; {hint}",
        )


def replace_where(uri: str, rows: DataFrame, predicate: str) -> None:
    """Replace the rows that `predicate` selects by `rows`, with Spark. Raises LostRace."""
    check_spark_may_commit(rows.sparkSession, uri)
    with lost_race_of(uri, open_table(uri).version()):
        writer = rows.write.format("delta").mode("overwrite")
        writer.option("replaceWhere", predicate).save(uri)


def check_feed(uri: str, name: str, reader: str, after: int, upto: int) -> None:
    """Raise HistoryLost unless every commit of (after, upto] and its change data still exist.

    Cost: a look at each commit, and at each file that the feed would open anyway.
    """
    log = Log(uri)
    if gone := log.missing_commits(range(after + 1, upto + 1)):
        raise LogCleaned(
            f"{reader!r} last read {name!r} at version {after}, but its log starts at "
            f"{max(gone) + 1}",
            hint=f"run `sluice rebuild {reader}`; keep logs longer than the slowest consumer's lag",
        )
    for version in range(after + 1, upto + 1):
        is_altered = log.changes_schema(version)
        if is_altered and not is_wider(uri, after, upto):
            raise ColumnsChanged(
                f"{reader!r} last read {name!r} at version {after}, but version {version} removed "
                f"columns or changed their types, or can't be compared any more",
                hint=f"run `sluice rebuild {reader}`",
            )
        if is_altered and log.ends_feed(version):
            raise TableAltered(
                f"{reader!r} last read {name!r} at version {after}, but its change feed was "
                f"switched off at version {version}",
                hint=f"run `sluice rebuild {reader}`, once it is on again",
            )
        if deleted := log.missing_files(version):
            raise FeedVacuumed(
                f"{reader!r} last read {name!r} at version {after}, but version {version} can't be "
                f"read any more: {len(deleted)} of its files were deleted ({deleted[0]})",
                hint=f"run `sluice rebuild {reader}`; don't vacuum files that a consumer still "
                f"has to read",
            )


def is_readable(uri: str, version: int) -> bool:
    """True if the rows of a version can be read: its log and its files still exist.

    Cost: a look at each of its files that the table has removed since.
    """
    try:
        files, kept = (
            active_files(open_version(uri, v))["path"].to_pylist() for v in (version, None)
        )
    except DeltaError:
        return False
    return Log(uri).has_files({*files} - {*kept})


def is_wider(uri: str, after: int, upto: int) -> bool:
    """True if a version surely has all columns of an earlier one, in the same types.

    False if the log was cleaned and the earlier one can't be opened any more.
    """
    try:
        old, new = (open_version(uri, version).schema().fields for version in (after, upto))
    except DeltaError:
        return False
    return {(f.name, f.type.to_json()) for f in old} <= {(f.name, f.type.to_json()) for f in new}


ELSEWHERE = re.compile("[a-z0-9]+:/")  # how the path of a file of another, cloned table begins
UNREADABLE = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)


def read_part(
    session: SparkSession, uri: str, part: WeightedFiles, wanted: StructType, limits: Limits
) -> DataFrame:
    """Return the wanted columns of a part's rows, and CHANGE_TYPE; a column it lacks is null."""
    table = open_version(uri, part.version)
    is_clone = any(ELSEWHERE.match(path) for path in active_files(table)["path"].to_pylist())
    is_of_spark = takes_spark(uri) and not is_here(session)
    most = limits.collected_bytes if is_of_spark else limits.computed_here_bytes
    if unread_features(table) or is_clone:
        why = f"{uri} has features that only Spark reads"
    elif part.bytes > most:
        why = f"{part.bytes:,} bytes of {uri} are to be read"
    else:
        try:
            with naming_refusals(uri):
                return _by_arrow(session, table, uri, part, wanted)
        except UNREADABLE as error:
            why = f"{uri} at version {part.version}: {error}"
    if is_here(session):
        raise UnsupportedLocally(why)
    if not takes_spark(uri):
        raise UsageError(f"{why}, and Spark has no access to this store")
    return _by_spark(session, uri, part, wanted)


def read_version(
    session: SparkSession, uri: str, version: int, names: Sequence[str], limits: Limits
) -> DataFrame:
    """Return the named columns of a version's rows, those that it has."""
    part = WeightedFiles(version, bytes=table_size(uri, version).bytes)
    return read_part(session, uri, part, columns_of(uri, version, names), limits).drop(CHANGE_TYPE)


def _by_arrow(
    session: SparkSession, table: DeltaTable, uri: str, part: WeightedFiles, wanted: StructType
) -> DataFrame:
    from pyspark.sql.pandas.types import to_arrow_type

    if is_bare():
        found = pa.schema([]).empty_table()
    elif not part.weight:
        found = change_data(table, uri, part.files)
    else:
        rows = (
            rows_of_files(table, uri, lambda path: unquote(path) in part.paths)
            if part.files
            else live_rows(table, uri)
        )
        found = rows.to_table(columns=[n for n in wanted.names if n in rows.schema.names])
        does = pa.repeat(pa.scalar("insert" if part.weight > 0 else "delete"), found.num_rows)
        found = found.append_column(CHANGE_TYPE, does)
    fields, found = StructType([*wanted.fields]).add(CHANGE_TYPE, StringType()), plain(found)
    types = {f.name: to_arrow_type(f.dataType, timezone="UTC") for f in fields}
    columns = {
        name: found[name].cast(t) if name in found.column_names else pa.nulls(found.num_rows, t)
        for name, t in types.items()
    }
    return session.createDataFrame(plain(pa.table(columns)), fields)


def _by_spark(
    session: SparkSession, uri: str, part: WeightedFiles, wanted: StructType
) -> DataFrame:
    reader = session.read.format("delta")
    if not part.weight:
        at = str(part.version)
        reader = reader.option("readChangeFeed", "true").option("startingVersion", at)
        rows = reader.option("endingVersion", at).load(uri)
    else:
        rows = reader.option("versionAsOf", part.version).load(uri)
        if part.files:
            files = [path.rpartition("/")[2] for path in part.paths]
            rows = rows.where(F.col("_metadata.file_name").isin(files))
        rows = rows.withColumn(CHANGE_TYPE, F.lit("insert" if part.weight > 0 else "delete"))
    have = set(rows.columns)
    columns = (
        (F.col(f"`{f.name}`") if f.name in have else F.lit(None)).cast(f.dataType).alias(f.name)
        for f in wanted.fields
    )
    return rows.select(*columns, CHANGE_TYPE)


def columns_of(uri: str, version: int, names: Sequence[str]) -> StructType:
    """Return those of the named columns that a version has, in Spark's types."""
    fields = {field.name: field for field in spark_schema(open_version(uri, version)).fields}
    return StructType([fields[name] for name in names if name in fields])
