"""Small reads that need no Spark job: Delta tables and feeds as Arrow, handed to Spark as rows.

Planning and starting a Spark scan of a few thousand rows costs hundreds of milliseconds, reading
them here takes a few. Spark still computes: it gets them as a local relation.
"""

import json
import sys
from collections.abc import Hashable, Sequence
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc
from cachetools import LRUCache
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from sluice.limits import Limits

_ADDED = {"_change_type": "string", "_commit_version": "long", "_commit_timestamp": "timestamp"}
KEPT_BYTES = 24_000_000  # of Arrow in all; as rows in the heap of Spark they are seven times that

_kept: LRUCache[tuple[Hashable, ...], tuple[DataFrame, int]] = LRUCache(
    KEPT_BYTES, getsizeof=lambda kept: kept[1]
)
_keeping = Lock()


def local_snapshot(session: SparkSession, uri: str, version: int, limits: Limits) -> DataFrame:
    """The rows of the table as of `version`. Several views of a run share one reading.

    It is known by its files: a table that was put back gives its numbers to other versions.
    """
    table = DeltaTable(uri, version=version)
    at = (session, uri, version, *sorted(table.file_uris()))
    with _keeping:
        if at in _kept:
            return _kept[at][0]
    arrow = table.to_pyarrow_table()
    rows = _rows(session, arrow, spark_schema(table))
    with _keeping:
        if arrow.nbytes <= min(limits.kept_bytes, KEPT_BYTES):
            _kept[at] = rows, arrow.nbytes
    return rows


def has_local_feed(uri: str, version: int) -> bool:
    """Whether delta-rs finds the files of the change feed.

    It does not where a partition's value is escaped in the path, as texts and times are.
    """
    table = DeltaTable(uri, version=version)
    parts = set(table.metadata().partition_columns)
    types = [f.type for f in pa.schema(table.schema().to_arrow()) if f.name in parts]
    return all(pa.types.is_date(t) or pa.types.is_integer(t) for t in types)


def local_feed(session: SparkSession, uri: str, after: int, upto: int) -> DataFrame:
    """The change feed of versions (after, upto]."""
    return handed_over(session, uri, upto, read_feed(uri, after, upto))


def read_feed(uri: str, after: int, upto: int) -> pa.Table:
    """The change feed of versions (after, upto], not yet Spark's."""
    reader = DeltaTable(uri, version=upto).load_cdf(
        starting_version=after + 1, ending_version=upto, allow_out_of_range=True
    )
    return plain(pa.table(reader.read_all()))


def read_rows(
    uri: str, version: int, columns: Sequence[str] | None = None, where: pc.Expression | None = None
) -> pa.Table:
    """The rows of the table as of `version` that meet a condition, not yet Spark's.

    No more of the others is held at a time than a page of each file that is read.
    """
    found = read_few(uri, version, sys.maxsize, columns, where)
    assert found is not None
    return found


def read_few(
    uri: str,
    version: int,
    most: int,
    columns: Sequence[str] | None = None,
    where: pc.Expression | None = None,
    bounds: pc.Expression | None = None,
) -> pa.Table | None:
    """As `read_rows`; None if more than `most` rows meet the condition.

    `bounds`: what they meet as well, of columns whose statistics are exact: files and row groups
    are left out by it.
    """
    dataset = DeltaTable(uri, version=version).to_pyarrow_dataset()
    chosen = list(columns) if columns else dataset.schema.names
    found, count = [plain(dataset.schema.empty_table().select(chosen))], 0
    for batch in dataset.to_batches(columns=chosen, filter=bounds):
        page = plain(pa.Table.from_batches([batch]))
        found.append(page if where is None or where is bounds else page.filter(where))
        count += found[-1].num_rows
        if count > most:
            return None
    return pa.concat_tables(found)


def arrow_schema(uri: str, version: int) -> pa.Schema:
    """The types in which rows of the table are read here."""
    schema = pa.schema(DeltaTable(uri, version=version).schema().to_arrow())
    return plain(schema.empty_table()).schema


def handed_over(session: SparkSession, uri: str, version: int, rows: pa.Table) -> DataFrame:
    """Columns that were read of a table or of its feed, as Spark's, in the types of the table."""
    schema = types_of(uri, version)
    for name, type_ in _ADDED.items():
        schema.add(name, type_)
    present = [field for field in schema.fields if field.name in rows.column_names]
    return _rows(session, rows, StructType(present))


def types_of(uri: str, version: int) -> StructType:
    """The columns of a table as Spark has them."""
    return spark_schema(DeltaTable(uri, version=version))


def spark_schema(table: DeltaTable) -> StructType:
    """The table's columns as Spark has them: Arrow's types don't tell all of Spark's apart."""
    return nullable(StructType.fromJson(json.loads(table.schema().to_json())))


def nullable(schema: StructType) -> StructType:
    """The same columns without metadata and without NOT NULL, also of what is nested in them.

    Delta-rs reads no list whose type promises elements without nulls from a file that does not,
    which is what Spark writes.
    """
    plain = StructType()
    for column in schema.fields:
        plain.add(column.name, _nullable(column.dataType), nullable=True)
    return plain


def _nullable(type_: DataType) -> DataType:
    match type_:
        case ArrayType():
            return ArrayType(_nullable(type_.elementType))
        case MapType():
            return MapType(type_.keyType, _nullable(type_.valueType))
        case StructType():
            return nullable(type_)
        case _:
            return type_


def to_arrow(rows: DataFrame) -> pa.Table:
    """All rows, in this process. Pyarrow takes no null where Spark promises a struct's fields."""
    fields = nullable(rows.schema).fields
    return rows.select(
        *[F.col(f"`{f.name}`").cast(f.dataType).alias(f.name) for f in fields]
    ).toArrow()


def _rows(session: SparkSession, rows: pa.Table, schema: StructType) -> DataFrame:
    return session.createDataFrame(plain(rows.select(schema.names)), schema)


def plain(rows: pa.Table) -> pa.Table:
    """The same rows in the Arrow types that Spark knows, and in one piece.

    Of a table in pieces Spark takes an empty one for the end, and loses what comes behind it.
    """
    schema = pa.schema([pa.field(f.name, _plain(f.type)) for f in rows.schema])
    if not rows.num_rows:  # Spark takes no column without a chunk
        return pa.Table.from_batches([pa.RecordBatch.from_pylist([], schema=schema)])
    return rows.cast(schema).combine_chunks()


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
