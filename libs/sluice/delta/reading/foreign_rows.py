"""Rows of somebody else's table: a whole version, some of its files, or a commit's change data.

Few rows are read here as Arrow. Spark reads many rows, and tables with features that only it
supports. Nothing is ever written.
"""

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from sluice.changes.feed_columns import CHANGE_TYPE
from sluice.declare.stores import takes_spark
from sluice.delta.log.actions import WeightedFiles
from sluice.delta.log.files import active_files, table_size
from sluice.delta.log.opened import naming_refusals, open_version
from sluice.delta.log.position import MAPPING
from sluice.delta.reading.live import change_data, live_rows, rows_of_files
from sluice.delta.reading.local import is_bare, plain, spark_schema
from sluice.errors import UsageError
from sluice.interpreter.refusals import UnsupportedLocally, is_here
from sluice.limits import Limits

ELSEWHERE = re.compile("[a-z0-9]+:/")  # how an address begins
KNOWN = {"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
UNREADABLE = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)


def read_part(
    session: SparkSession, uri: str, part: WeightedFiles, wanted: StructType, limits: Limits
) -> DataFrame:
    """Return the wanted columns of a part's rows, and CHANGE_TYPE; a column it lacks is null."""
    table = open_version(uri, part.version)
    if needs_spark(table) or _is_clone(table):
        why = f"{uri} has features that only Spark reads"
    elif part.bytes > _most(session, uri, limits):
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


def needs_spark(table: DeltaTable) -> bool:
    """True if the table has features that only Spark reads rightly."""
    mapping = table.metadata().configuration.get(MAPPING, "none").lower()
    return mapping != "none" or not KNOWN.issuperset(table.protocol().reader_features or ())


def _is_clone(table: DeltaTable) -> bool:
    """True if its files may be elsewhere, in the table that it was cloned from."""
    return any(ELSEWHERE.match(path) for path in active_files(table)["path"].to_pylist())


def _most(session: SparkSession, uri: str, limits: Limits) -> int:
    if is_here(session):
        return limits.computed_here_bytes
    return limits.swept_bytes if takes_spark(uri) else limits.handed_bytes


def _by_arrow(
    session: SparkSession, table: DeltaTable, uri: str, part: WeightedFiles, wanted: StructType
) -> DataFrame:
    if is_bare():
        found = pa.schema([]).empty_table()
    elif not part.weight:
        found = change_data(table, uri, part.files)
    else:
        rows = rows_of_files(table, uri, part.paths) if part.files else live_rows(table, uri)
        found = rows.to_table(columns=[n for n in wanted.names if n in rows.schema.names])
        does = pa.repeat(pa.scalar("insert" if part.weight > 0 else "delete"), found.num_rows)
        found = found.append_column(CHANGE_TYPE, does)
    fields = StructType([*wanted.fields]).add(CHANGE_TYPE, StringType())
    return session.createDataFrame(_shape(plain(found), _arrow_types(fields)), fields)


def _arrow_types(fields: StructType) -> Mapping[str, pa.DataType]:
    from pyspark.sql.pandas.types import to_arrow_type

    return {f.name: to_arrow_type(f.dataType, timezone="UTC") for f in fields}


def _shape(rows: pa.Table, types: Mapping[str, pa.DataType]) -> pa.Table:
    count, have = rows.num_rows, set(rows.column_names)
    columns = {
        name: rows[name].cast(type_) if name in have else pa.nulls(count, type_)
        for name, type_ in types.items()
    }
    return plain(pa.table(columns))


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
