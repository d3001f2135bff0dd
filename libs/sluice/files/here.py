"""Small files read in this process, as the same rows that Spark's readers give.

Only files without any fault of form are read here: a faulty one raises NotHere, and Spark reads the
delivery. Values are converted by the rules that both share, in `texts` and `conversion`.
"""

import csv
import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from sluice.declare.declared import Declared
from sluice.declare.delivered_row import CUT, FILE, RAW
from sluice.files.conversion import BLOCK, ROW, ddl
from sluice.files.filehead import FileHead, Unreadable, content
from sluice.files.json_texts import MARK, MAY_BE_ALTERED
from sluice.files.nested_types import texts_of
from sluice.files.parquet_types import NANOS
from sluice.files.retyped import NESTED
from sluice.interpreter.errors import NotHere
from sluice.interpreter.values.arrow import arrow_type

PLACE = (
    StructField(FILE, StringType()),
    StructField(BLOCK, LongType()),
    StructField(ROW, LongType()),
)
CSV_OPTIONS = frozenset({"header", "sep", "delimiter"})
_ALTERED = re.compile(MAY_BE_ALTERED)
_ODD = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]")
_BARE_RETURN = re.compile(r"\r(?!\n)")
NO_FAULT = "CAST(NULL AS STRING)"


def lines_here(session: SparkSession, spec: Declared, heads: Sequence[FileHead]) -> DataFrame:
    """Return the objects of files of JSON lines: declared columns as texts, MARK, RAW and place."""
    if spec.options:
        raise NotHere("JSON with options")
    declared = session.createDataFrame([], ddl(spec)).schema.fields
    types = {f.name: as_texts(f.dataType, session) for f in declared}
    lower = {name.lower(): name for name in types}
    has_nested = any(isinstance(f.dataType, NESTED) for f in declared)
    rows: list[tuple[Any, ...]] = []
    for found in heads:
        for line in _lines(_content(found)):
            mark = _mark(line) if has_nested else ""
            fields = _object(line, mark)
            if any(lower.get(key.lower(), key) != key for key in fields):
                raise NotHere("a field whose name differs from a column's only in case")
            values = (_text(fields.get(name), type_) for name, type_ in types.items())
            rows.append((*values, mark or None, line, found.file.uri, 0, len(rows)))
    marked = [StructField(MARK, StringType()), StructField(RAW, StringType()), *PLACE]
    return frame(session, rows, [*(StructField(n, t) for n, t in types.items()), *marked])


def _content(found: FileHead) -> bytes:
    try:
        return content(found.file)
    except Unreadable as error:
        raise NotHere(str(error)) from error


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
    return session.createDataFrame(table, StructType(list(fields)))


def _lines(data: bytes) -> Iterator[str]:
    for line in _decoded(data).split("\n"):
        stripped = line.removesuffix("\r")
        if "\r" in stripped:
            raise NotHere("a carriage return within a line")
        if stripped.strip(" \t"):
            yield stripped


def _decoded(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NotHere("bytes that are no UTF-8") from None
    if _ODD.search(text):
        raise NotHere("control characters, or the mark of bytes that were lost")
    return text


def _mark(line: str) -> str:
    """Return a mark that no value of the line has, by which reasons show numbers as written."""
    return f"#{hash(line)}#" if _ALTERED.search(line) else ""


def _object(line: str, mark: str) -> dict[str, Any]:
    if "\\ud" in line.lower():
        raise NotHere("a surrogate")
    try:
        found = _parser(mark).decode(line)
    except (ValueError, RecursionError):
        raise NotHere("a line that is no JSON") from None
    if not isinstance(found, dict):
        raise NotHere("a line that is no object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise NotHere("a field that stands twice")
    return found


@lru_cache(maxsize=1)
def _parser(mark: str) -> json.JSONDecoder:
    """Return a parser that gives numbers as texts, between marks."""

    def written(number: str) -> str:
        return f"{mark}{number}{mark}"

    return json.JSONDecoder(
        object_pairs_hook=_once, parse_float=written, parse_int=written, parse_constant=written
    )


def as_texts(type_: DataType, session: SparkSession) -> DataType:
    """Return the type with STRING in place of every scalar in it."""
    return session.createDataFrame([], f"v {texts_of(type_)}").schema["v"].dataType


def _text(value: Any, type_: DataType) -> Any:
    """Return a value of JSON as the texts of a type. Raises NotHere if its shape is another."""
    match value, type_:
        case None, _:
            return None
        case bool(), StringType():
            return "true" if value else "false"
        case str(), StringType():
            return value
        case list(), ArrayType():
            return [_text(v, type_.elementType) for v in value]
        case dict(), MapType():
            return [(k, _text(v, type_.valueType)) for k, v in value.items()]
        case dict(), StructType():
            return {f.name: _text(value.get(f.name), f.dataType) for f in type_.fields}
    raise NotHere("a value of another shape")


def cells_here(
    session: SparkSession,
    heads: Iterable[FileHead],
    columns: Sequence[str],
    options: Mapping[str, str],
) -> DataFrame:
    """Return the rows of CSV files as texts under these names, RAW, and their place."""
    if not options.keys() <= CSV_OPTIONS:
        raise NotHere("CSV with further options")
    separator = options.get("sep", options.get("delimiter", ","))
    has_header = options.get("header", "true").lower() == "true"
    rows: list[tuple[Any, ...]] = []
    for found in heads:
        if found.is_cut or found.has_odd_quotes or len(separator) != 1:
            raise NotHere("CSV that is not plain")
        cells = _cells(_decoded(_content(found)), separator, len(columns))
        for nth, row in enumerate(cells):
            if nth or not has_header:
                rows.append((*row, None, found.file.uri, 0, len(rows)))
    names = [StructField(c, StringType()) for c in columns]
    return frame(session, rows, [*names, StructField(RAW, StringType()), *PLACE])


def _cells(text: str, separator: str, width: int) -> Iterator[list[str | None]]:
    """Yield the rows, an empty cell as null."""
    if _BARE_RETURN.search(text):
        raise NotHere("a carriage return that is no part of CRLF")
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True):
            if not row:
                continue
            if len(row) != width or any("\n" in c or "\r" in c for c in row):
                raise NotHere("a row of another width, or with a line break")
            yield [cell or None for cell in row]
    except csv.Error:
        raise NotHere("CSV that Python reads otherwise") from None


def parquet_here(
    session: SparkSession, pairs: Sequence[tuple[str, str]], heads: Iterable[FileHead]
) -> DataFrame:
    """Return these columns of Parquet files, in the given types, and their place.

    Nanoseconds are cut to microseconds; CUT is the number of times of a row that lost digits.
    """
    nanos = tuple(name for name, type_ in pairs if type_ == NANOS)
    schema = ", ".join(f"`{n}` {'TIMESTAMP' if n in nanos else t}" for n, t in pairs)
    fields = session.createDataFrame([], schema).schema.fields if pairs else []
    try:
        rows = pa.concat_tables([_table(found, fields, nanos) for found in heads])
    except (pa.ArrowException, LookupError) as error:
        raise NotHere(f"Parquet that is not plain: {error}") from error
    cut = [StructField(CUT, IntegerType())] if nanos else []
    return session.createDataFrame(rows, StructType([*fields, *PLACE, *cut]))


def _table(found: FileHead, fields: Sequence[StructField], nanos: Collection[str]) -> pa.Table:
    names = [f.name for f in fields]
    table = pq.read_table(pa.BufferReader(_content(found)), columns=names)
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


def _micros(times: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return nanoseconds as the microseconds they are in, and 1 for each that lost digits."""
    nanos = times.cast(pa.int64())
    whole = pc.divide(nanos, 1000)
    rest = pc.subtract(nanos, pc.multiply(whole, 1000))
    micros = pc.subtract(whole, pc.less(rest, 0).cast(pa.int64()))
    is_cut = pc.fill_null(pc.not_equal(rest, 0), False).cast(pa.int32())
    return micros.cast(pa.timestamp("us", "UTC")), is_cut
