"""Small reads without a Spark job: Delta tables and feeds as Arrow, passed to Spark as rows.

Planning and starting a Spark scan of a few thousand rows costs hundreds of milliseconds; reading
them here takes a few. Spark still computes: it gets the rows as a local relation.

A plan compiles a batch over tables as if they had no rows (`without_rows`): their columns are known
from the log, and no file is opened.
"""

import json
import sys
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc
from cachetools import LRUCache
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from sluice.delta.log.opened import commit_of, open_version
from sluice.delta.reading.live import live_rows, stream_feed
from sluice.interpreter import UnsupportedLocally, is_here
from sluice.language.names import OF_FEED
from sluice.limits import Limits

_is_bare: ContextVar[bool] = ContextVar("_is_bare", default=False)


def is_bare() -> bool:
    """True if reads return no rows, in this thread."""
    return _is_bare.get()


@contextmanager
def without_rows() -> Iterator[None]:
    """Have reads in this thread return no rows while the context is open."""
    before = _is_bare.set(True)
    try:
        yield
    finally:
        _is_bare.reset(before)


_ADDED = dict(zip(OF_FEED, ("string", "long", "timestamp"), strict=True))
_ADDED_TYPES = (pa.string(), pa.int64(), pa.timestamp("us", "UTC"))
KEPT_BYTES = 24_000_000  # tables in Arrow, for other views of a run; Spark takes seven times that
MESSAGE_BYTES = 32_000_000  # of Arrow; a task of Spark takes messages of up to 128 MiB

_kept: LRUCache[tuple[Hashable, ...], tuple[DataFrame, int]] = LRUCache(
    KEPT_BYTES, getsizeof=lambda kept: kept[1]
)
_keeping = Lock()


def local_snapshot(session: SparkSession, uri: str, version: int) -> DataFrame:
    """Return the rows of the table as of `version`. Several views of a run share one reading.

    A reading is identified by its files, because a restored table reuses version numbers.
    """
    if is_bare():
        return _bare_snapshot(session, uri, version)
    table = open_version(uri, version)
    at = (session, uri, version, commit_of(uri, version), *sorted(table.file_uris()))
    with _keeping:
        if at in _kept:
            return _kept[at][0]
    arrow = live_rows(table, uri).to_table()
    rows = hand_over(session, arrow, spark_schema(table))
    with _keeping:
        if arrow.nbytes <= min(KEPT_BYTES, _kept.maxsize):
            _kept[at] = rows, arrow.nbytes
    return rows


def narrowed_snapshot(
    session: SparkSession, uri: str, version: int, columns: Sequence[str] = ()
) -> DataFrame:
    """Return these columns of a larger table for the interpreter; all of them if none is named.

    They are read when they are computed, and only those rows that a join needs.
    """
    from sluice.interpreter.local_session import hand_over

    if is_bare():
        return _bare_snapshot(session, uri, version)
    table = open_version(uri, version)
    wanted = [f for f in spark_schema(table).fields if not columns or f.name in columns]
    return hand_over(session, live_rows(table, uri), StructType(wanted))  # type: ignore[arg-type]


def _bare_snapshot(session: SparkSession, uri: str, version: int) -> DataFrame:
    """Return the columns of the table, without rows."""
    return hand_as_stored(session, uri, version, arrow_schema(uri, version).empty_table())


def snapshot_if_few(
    session: SparkSession,
    uri: str,
    version: int,
    where: pc.Expression,
    limits: Limits,
    columns: Sequence[str] | None = None,
) -> DataFrame | None:
    """Return the rows that meet a condition, if this process computes; None if they are too many.

    The condition skips files and row groups: statistics of its columns must be exact.
    """
    if not is_here(session):
        return None
    rows = read_if_few(uri, version, limits.reread_rows, columns, where, bounds=where)
    return None if rows is None else hand_as_stored(session, uri, version, rows)


def local_feed(
    session: SparkSession, uri: str, after: int, upto: int, most: int = sys.maxsize
) -> DataFrame:
    """Return the change feed of versions (after, upto], read here, like `read_feed`.

    Tables are partitioned by numbers alone: delta-rs does not find files whose path escapes a text.
    """
    return hand_as_stored(session, uri, upto, read_feed(uri, after, upto, most))


def read_feed(uri: str, after: int, upto: int, most: int = sys.maxsize) -> pa.Table:
    """Return the change feed of versions (after, upto] as Arrow, not yet Spark's.

    Raises UnsupportedLocally if it takes more than `most` bytes.
    """
    if is_bare():
        added = map(pa.field, _ADDED, _ADDED_TYPES)
        return pa.schema([*arrow_schema(uri, upto), *added]).empty_table()
    found, held = stream_feed(open_version(uri, upto), after, upto), 0
    pages = list[pa.RecordBatch]()
    for page in found:
        held += page.nbytes
        if held > most:
            raise UnsupportedLocally(f"more than {most / 1e6:,.1f} MB of rows in a change feed")
        pages.append(page)
    return to_spark_types(pa.Table.from_batches(pages, found.schema))


def read_where(
    uri: str, version: int, columns: Sequence[str] | None = None, where: pc.Expression | None = None
) -> pa.Table:
    """Return the rows of the table as of `version` that meet a condition, not yet Spark's.

    At most one page of each file's other rows is held at a time.
    """
    found = read_if_few(uri, version, sys.maxsize, columns, where)
    assert found is not None
    return found


def read_if_few(
    uri: str,
    version: int,
    most: int,
    columns: Sequence[str] | None = None,
    where: pc.Expression | None = None,
    bounds: pc.Expression | None = None,
) -> pa.Table | None:
    """Return rows like `read_rows`; None if more than `most` rows meet the condition.

    `bounds`: a condition that these rows also meet, on columns with exact statistics. It skips
    files and row groups.
    """
    if is_bare():
        stored = arrow_schema(uri, version)
        return stored.empty_table().select(list(columns or stored.names))
    dataset = live_rows(open_version(uri, version), uri)
    chosen = list(columns) if columns else dataset.schema.names
    found, count = [to_spark_types(dataset.schema.empty_table().select(chosen))], 0
    for batch in dataset.to_batches(columns=chosen, filter=bounds):
        page = to_spark_types(pa.Table.from_batches([batch]))
        found.append(page if where is None or where is bounds else page.filter(where))
        count += found[-1].num_rows
        if count > most:
            return None
    return pa.concat_tables(found)


def arrow_schema(uri: str, version: int) -> pa.Schema:
    """Return the Arrow types in which rows of the table are read here."""
    return _plain_schema(pa.schema(open_version(uri, version).schema().to_arrow()))


def hand_as_stored(session: SparkSession, uri: str, version: int, rows: pa.Table) -> DataFrame:
    """Pass columns of a table or of its feed to Spark, in the table's types."""
    schema = types_of(uri, version)
    for name, type_ in _ADDED.items():
        schema.add(name, type_)
    present = [field for field in schema.fields if field.name in rows.column_names]
    return hand_over(session, rows, StructType(present))


def types_of(uri: str, version: int) -> StructType:
    """Return the columns of a table in Spark's types."""
    return spark_schema(open_version(uri, version))


def spark_schema(table: DeltaTable) -> StructType:
    """Return the table's columns in Spark's types, not all of which Arrow's types distinguish."""
    return nullable(StructType.fromJson(json.loads(table.schema().to_json())))


def column_types(rows: DataFrame) -> dict[str, DataType]:
    """Return the types of columns by name, as they compare with those of a stored table."""
    return {column.name: column.dataType for column in nullable(rows.schema).fields}


def nullable(schema: StructType) -> StructType:
    """Return the same columns without metadata and without NOT NULL, nested ones included.

    delta-rs can't read a list whose type forbids null elements from a file that allows them. Spark
    writes such files.
    """
    made = StructType()
    for column in schema.fields:
        made.add(column.name, _nullable(column.dataType), nullable=True)
    return made


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
    """Return all rows, in this process, in nullable types.

    Pyarrow accepts no null where Spark declares a struct's fields NOT NULL.
    """
    given = rows.schema
    wanted = nullable(given)
    if given != wanted:
        casts = [F.col(f"`{f.name}`").cast(f.dataType).alias(f.name) for f in wanted.fields]
        rows = rows.select(*casts)
    return rows.toArrow()


def hand_over(session: SparkSession, rows: pa.Table, schema: StructType) -> DataFrame:
    """Return rows of this process as a DataFrame; many travel to a cluster in several messages."""
    held = to_spark_types(rows.select(schema.names))
    if is_here(session) or held.nbytes <= MESSAGE_BYTES:
        return session.createDataFrame(held, schema)
    pieces = (session.createDataFrame(piece, schema) for piece in _pieces(held))
    return reduce(DataFrame.unionAll, pieces)


def _pieces(rows: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows in pieces that fit in a message, or of one row."""
    if rows.nbytes <= MESSAGE_BYTES or rows.num_rows == 1:
        yield rows
    else:
        half = rows.num_rows // 2
        yield from _pieces(rows.slice(0, half))
        yield from _pieces(rows.slice(half))


def to_spark_types(rows: pa.Table) -> pa.Table:
    """Return the same rows in the Arrow types that Spark knows, in one piece.

    In a table of several pieces, Spark takes an empty one for the end and loses the rest.
    """
    schema = _plain_schema(rows.schema)
    if not rows.num_rows:  # Spark accepts no column without a chunk
        return pa.Table.from_batches([pa.RecordBatch.from_pylist([], schema=schema)])
    is_plain = rows.schema.equals(schema, check_metadata=True)
    return (rows if is_plain else rows.cast(schema)).combine_chunks()


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, _plain(field.type)) for field in schema])


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
