"""Rows in this process as a DataFrame, and Parquet files as the rows that Spark's reader gives.

A file that is not plain raises UnsupportedLocally, and Spark reads the delivery. Only reading a
file to its end shows that it is damaged. So nothing is checked in advance: a batch that meets such
a file looks for all of them here, and begins again with their faults.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, IntegerType, LongType, StringType, StructField, StructType

from sluice.declare.declared import CUT, FILE, Declared
from sluice.delta.places.folders import LandedFile
from sluice.delta.reading.local import hand_over, is_bare
from sluice.delta.reading.spark_reads import check_handed
from sluice.engine.operator import union
from sluice.errors import DamagedFile, UsageError
from sluice.files.conversion import BLOCK, NANOS, ROW, texts_of
from sluice.files.filehead import FileHead, Unreadable, content, open_file
from sluice.interpreter import UnsupportedLocally, is_here
from sluice.interpreter.values import arrow_type
from sluice.limits import Limits
from sluice.spark.paths import sees_copies

ROWS = 65_536
UNKNOWN = "not yet implemented"  # in a file that Arrow can't read, but perhaps Spark
LESS = "deliver less in an interval, or run it on one machine: `master: local[*]`"
SPARK, NEWEST = b"org.apache.spark.version", b"9"
JULIAN = frozenset({b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"})
DAMAGED = "nothing of this delivery was committed; fix the file, or remove it"
PLACE = (
    StructField(FILE, StringType()),
    StructField(BLOCK, LongType()),
    StructField(ROW, LongType()),
)


def with_faults(spec: Declared, files: Sequence[LandedFile]) -> tuple[LandedFile, ...]:
    """Return the files, the damaged ones with their faults."""
    if spec.format != "parquet":
        return tuple(files)
    return tuple(file if file.fault else replace(file, fault=_fault(spec, file)) for file in files)


def _fault(spec: Declared, file: LandedFile) -> str:
    """Read the declared columns to their end; return why that fails, '' if it does not."""

    def read(filesystem: FileSystem, path: Any) -> None:
        with filesystem.open_input_file(path) as found:
            parquet = pq.ParquetFile(found)
            names = [name for name in spec.of_files if name in parquet.schema_arrow.names]
            for batch in parquet.iter_batches(ROWS, columns=names):
                batch.validate(full=True)

    try:
        open_file(file, read)
    except Unreadable as error:
        return "" if UNKNOWN in str(error).lower() else str(error)
    return ""


def read_here(
    session: SparkSession,
    heads: Sequence[FileHead],
    read: Callable[[Sequence[FileHead]], DataFrame],
    limits: Limits,
) -> DataFrame | None:
    """Return the result of `read` in this process; None if Spark should read the files.

    Rows of a store that a cluster can't access are passed to it. It gets them file by file. Raises
    UsageError if it can't.
    """
    if is_here(session):
        return read(heads)
    if sees_copies(session, (found.file.uri for found in heads)):
        return None
    size, shown = sum(found.file.size for found in heads), heads[0].file.shown
    others = " and others" if len(heads) > 1 else ""
    check_handed(f"{shown}{others}", size, limits, LESS)
    try:
        return union([read([found]) for found in heads])
    except UnsupportedLocally as reason:
        raise UsageError(
            f"{shown}: only Spark can read this ({reason}), and it has no access to this store",
            hint="nothing was committed; run it on one machine: `master: local[*]`",
        ) from reason


def content_of(found: FileHead) -> bytes:
    """Return a file's content. Raises UnsupportedLocally if it can't be read to its end."""
    if is_bare():
        return b""
    try:
        return content(found.file)
    except Unreadable as error:
        raise UnsupportedLocally(str(error)) from error


def as_texts(type_: DataType, session: SparkSession) -> DataType:
    """Return the type with STRING in place of every scalar in it."""
    return session.createDataFrame([], f"v {texts_of(type_)}").schema["v"].dataType


def frame(
    session: SparkSession, rows: Sequence[tuple[Any, ...]], fields: Sequence[StructField]
) -> DataFrame:
    """Return rows of Python's values as a DataFrame."""
    from pyspark.sql.pandas.types import to_arrow_type

    columns = list(zip(*rows, strict=True)) if rows else [()] * len(fields)
    arrays = [
        pa.array(column, to_arrow_type(f.dataType))
        for column, f in zip(columns, fields, strict=True)
    ]
    table = pa.Table.from_arrays(arrays, names=[f.name for f in fields])
    return hand_over(session, table, StructType(list(fields)))


def parquet_here(
    session: SparkSession,
    pairs: Sequence[tuple[str, str]],
    heads: Iterable[FileHead],
    names: Mapping[str, str],
    options: Mapping[str, str],
) -> DataFrame:
    """Return these columns of Parquet files, in the given types, and their place.

    `names`: the columns' names in the files, if they differ. Nanoseconds are cut to microseconds;
    CUT is the number of times of a row that lost digits.
    """
    if options:
        raise UnsupportedLocally(
            f"Parquet with {', '.join(f'`{name}`' for name in sorted(options))}"
        )
    nanos = tuple(name for name, type_ in pairs if type_ == NANOS)
    schema = ", ".join(f"`{n}` {'TIMESTAMP' if n in nanos else t}" for n, t in pairs)
    fields = session.createDataFrame([], schema).schema.fields if pairs else []
    try:
        rows = pa.concat_tables([_table(found, fields, nanos, names) for found in heads])
    except (pa.ArrowException, LookupError) as error:
        raise UnsupportedLocally(
            f"a Parquet file that Arrow can't read as Spark does: {error}"
        ) from error
    cut = [StructField(CUT, IntegerType())] if nanos else []
    return hand_over(session, rows, StructType([*fields, *PLACE, *cut]))


def _table(
    found: FileHead, fields: Sequence[StructField], nanos: Collection[str], names: Mapping[str, str]
) -> pa.Table:
    stored = [names.get(f.name, f.name) for f in fields]
    data = pa.BufferReader(content_of(found))
    has_times = any(re.search("DATE|TIMESTAMP", f.dataType.simpleString().upper()) for f in fields)
    _check_as_spark(pq.read_metadata(data), has_times=has_times)
    try:
        table = pq.read_table(data, columns=stored, coerce_int96_timestamp_unit="us")
    except (OSError, pa.ArrowInvalid) as error:
        raise _report_damage(found, error) from error
    table = table.select(stored).rename_columns([f.name for f in fields])
    cut: dict[str, pa.Array] = {}
    for name in nanos:
        place = table.column_names.index(name)
        micros, is_cut = _micros(table[name])
        table = table.set_column(place, name, micros)
        cut[CUT] = pc.add(cut[CUT], is_cut) if cut else is_cut
    columns = {f.name: table[f.name].cast(arrow_type(f.dataType)) for f in fields}
    count = table.num_rows
    where = {FILE: [found.file.uri] * count, BLOCK: [0] * count, ROW: list(range(count))}
    return pa.table({**columns, **where, **cut})


def _report_damage(found: FileHead, error: Exception) -> Exception:
    if UNKNOWN in str(error).lower():
        return UnsupportedLocally(f"a Parquet file that Arrow can't read: {error}")
    why = (str(error).splitlines() or [type(error).__name__])[0]
    return DamagedFile(f"{found.file.shown} can't be read: {why}", hint=DAMAGED)


def _check_as_spark(footer: pq.FileMetaData, *, has_times: bool) -> None:
    """Refuse a file that Spark can't read, or whose dates it reads differently.

    Spark before 3.1, and its legacy mode, wrote times in the Julian calendar.
    """
    notes = footer.metadata or {}
    is_old = notes.get(SPARK, NEWEST) < b"3.1.0"
    if has_times and (is_old or not JULIAN.isdisjoint(notes)):
        raise UnsupportedLocally("Parquet with dates or times written by Spark before 3.1")
    groups = (footer.row_group(n) for n in range(footer.num_row_groups))
    chunks = [group.column(n) for group in groups for n in range(footer.num_columns)]
    if any(c.compression == "BROTLI" or "BYTE_STREAM_SPLIT" in c.encodings for c in chunks):
        raise UnsupportedLocally("Parquet with BROTLI or BYTE_STREAM_SPLIT")


def _micros(times: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return nanoseconds as the microseconds they are in, and 1 for each that lost digits."""
    nanos = times.cast(pa.int64())
    whole = pc.divide(nanos, 1000)
    rest = pc.subtract(nanos, pc.multiply(whole, 1000))
    micros = pc.subtract(whole, pc.less(rest, 0).cast(pa.int64()))
    is_cut = pc.fill_null(pc.not_equal(rest, 0), False).cast(pa.int32())
    return micros.cast(pa.timestamp("us", "UTC")), is_cut
