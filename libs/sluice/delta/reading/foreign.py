"""Rows of a table that others write: a whole version, some of its files, or a commit's changes.

Few rows are read here as Arrow. Spark reads many rows, and tables with features that only it
supports. Nothing is ever written to such a table.
"""

import re
from collections.abc import Sequence
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from sluice.declare.stores import takes_spark
from sluice.delta.log import WeightedFiles
from sluice.delta.log.files import active_files, table_size
from sluice.delta.log.opened import naming_refusals, open_version
from sluice.delta.log.position import unread_features
from sluice.delta.reading.live import change_data, live_rows, rows_of_files
from sluice.delta.reading.local import is_bare, spark_schema, to_spark_types
from sluice.errors import UsageError
from sluice.interpreter import UnsupportedLocally, is_here
from sluice.language.names import CHANGE_TYPE
from sluice.limits import Limits

ELSEWHERE = re.compile("[a-z0-9]+:/")  # how the path of a file of another, cloned table begins
UNREADABLE = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)


def read_version(
    session: SparkSession, uri: str, version: int, names: Sequence[str], limits: Limits
) -> DataFrame:
    """Return the named columns of a version's rows, those that it has."""
    part = WeightedFiles(version, bytes=table_size(uri, version).bytes)
    return read_part(session, uri, part, columns_of(uri, version, names), limits).drop(CHANGE_TYPE)


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


def columns_of(uri: str, version: int, names: Sequence[str]) -> StructType:
    """Return those of the named columns that a version has, in Spark's types."""
    fields = {field.name: field for field in spark_schema(open_version(uri, version)).fields}
    return StructType([fields[name] for name in names if name in fields])


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
    fields, found = (
        StructType([*wanted.fields]).add(CHANGE_TYPE, StringType()),
        to_spark_types(found),
    )
    types = {f.name: to_arrow_type(f.dataType, timezone="UTC") for f in fields}
    columns = {
        name: found[name].cast(t) if name in found.column_names else pa.nulls(found.num_rows, t)
        for name, t in types.items()
    }
    return session.createDataFrame(to_spark_types(pa.table(columns)), fields)


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
