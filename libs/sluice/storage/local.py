"""Small reads that need no Spark job: Delta tables and feeds as Arrow, handed to Spark as rows.

Planning and starting a Spark scan of a few thousand rows costs hundreds of milliseconds, reading
them here takes a few. Spark still computes: it gets them as a local relation.
"""

from functools import lru_cache

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

SMALL_BYTES = 4_000_000
KEPT = 32  # snapshots, of at most SMALL_BYTES each


def local_snapshot(session: SparkSession, uri: str, version: int) -> DataFrame:
    """The rows of the table as of `version`. Several views of a run share one reading."""
    table = DeltaTable(uri, version=version)
    return _snapshot(session, uri, version, str(table.metadata().id))


@lru_cache(maxsize=KEPT)
def _snapshot(session: SparkSession, uri: str, version: int, _id: str) -> DataFrame:
    rows = DeltaTable(uri, version=version).to_pyarrow_table()
    return session.createDataFrame(plain(rows))


def local_feed(session: SparkSession, uri: str, after: int, upto: int) -> DataFrame:
    """The change feed of versions (after, upto]."""
    reader = DeltaTable(uri, version=upto).load_cdf(
        starting_version=after + 1, ending_version=upto, allow_out_of_range=True
    )
    return session.createDataFrame(plain(pa.table(reader.read_all())))


def plain(rows: pa.Table) -> pa.Table:
    """The same rows in the Arrow types that Spark knows."""
    schema = pa.schema([pa.field(f.name, _plain(f.type)) for f in rows.schema])
    return rows.cast(schema)


def _plain(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.list_(_plain(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(f.name, _plain(f.type)) for f in type_])
    if pa.types.is_map(type_):
        return pa.map_(_plain(type_.key_type), _plain(type_.item_type))
    return _plain_scalar(type_)


def _plain_scalar(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(type_) or pa.types.is_large_string(type_):
        return pa.string()
    if pa.types.is_binary_view(type_) or pa.types.is_large_binary(type_):
        return pa.binary()
    if pa.types.is_dictionary(type_):
        return _plain(type_.value_type)
    return pa.int64() if pa.types.is_uint64(type_) else type_
