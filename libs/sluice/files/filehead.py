"""Names and types of a file's columns, read here so that Spark needs no job to find them."""

import csv
import io
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem, LocalFileSystem

from sluice.delta.landing import LandedFile, local_path
from sluice.engine.retries import is_transient
from sluice.errors import Retryable
from sluice.files.csv_quotes import Quotes
from sluice.spark.paths import CODECS, spark_paths

FIRST_BYTES = 1_000_000
FIRST_LINES = 100
NANOS = "NANOS"
MAX_PRECISION = 38  # of Spark's DECIMAL
VOID = "VOID"  # a column without a single value, as Arrow and pandas write it
_KINDS = {  # by first bytes that begin no text
    b"\x1f\x8b": "gzip",
    b"BZh91AY&SY": "bz2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "a ZIP archive",
    b"PAR1\x15": "Parquet",
    b"Obj\x01": "Avro",
    b"%PDF-": "PDF",
    b"\xd0\xcf\x11\xe0": "a document of an old Office",
}
_LONGEST = max(map(len, _KINDS))
T = TypeVar("T", bound=Hashable)
_FAULTS = (PermissionError, ConnectionError, TimeoutError)


class Unreadable(Exception):
    """Raised if the file is not what its format says."""


class Gone(Unreadable):
    """Raised if the file was listed, but is missing now."""


@dataclass(frozen=True)
class FileHead:
    """Column names of a file; for Parquet also their types, as Spark writes or calls them.

    `is_complete`: the file has no further names. Of CSV, `line_end` is a line feed, with or without
    a carriage return before it, or a carriage return alone. `is_cut`: the CSV ends inside quotes.
    """

    file: LandedFile
    names: tuple[str, ...]
    types: tuple[str, ...] = ()
    is_complete: bool = True
    line_end: str = "\n"
    is_cut: bool = False
    has_odd_quotes: bool = False

    @property
    def is_empty(self) -> bool:
        """True if it has not even a header."""
        return self.is_complete and not self.names


def grouped(heads: Iterable[FileHead], by: Callable[[FileHead], T]) -> dict[T, list[FileHead]]:
    """Return the files in groups that are read together."""
    groups: dict[T, list[FileHead]] = defaultdict(list)
    for found in heads:
        groups[by(found)].append(found)
    return groups


def uris(heads: Iterable[FileHead]) -> list[str]:
    """Return the files' paths for Spark."""
    return spark_paths(head.file.uri for head in heads)


def head_of(file: LandedFile, format_: str, options: Mapping[str, str]) -> FileHead:
    """Return the head of a file of that format. Raises Unreadable."""
    if format_ == "parquet":
        return _parquet_head(file)
    if format_ == "csv":
        return _csv_head(file, options)
    if format_ == "json":
        return _json_head(file)
    _first_text(file, format_, "utf-8")
    return FileHead(file, (), is_complete=False)


def _csv_head(file: LandedFile, options: Mapping[str, str]) -> FileHead:
    """Return the names, if there is a header, and how the lines and the quotes end."""
    encoding = options.get("encoding", options.get("charset", "utf-8"))
    text = _first_text(file, "csv", encoding)
    has_header = options.get("header", "true").lower() == "true"
    found = _header(file, text, options) if has_header else FileHead(file, (), is_complete=False)
    end = "\r" if "\r" in text and "\n" not in text else "\n"
    _check_line_ends(text)
    is_cut, has_odd_quotes = _quotes(file, options)
    return replace(found, line_end=end, is_cut=is_cut, has_odd_quotes=has_odd_quotes)


def _check_line_ends(text: str) -> None:
    first = re.search(r"\r\n|\r|\n", text)
    if first and first[0] == "\r" and "\n" in text:
        raise Unreadable("its first line ends with a carriage return alone, others do not")
    if "\n" in text and re.match(r"\n*\r", text):
        raise Unreadable("it begins with an empty line that has a carriage return")


def _header(file: LandedFile, text: str, options: Mapping[str, str]) -> FileHead:
    """Return the header line's names; none if the file is empty."""
    separator = options.get("sep", options.get("delimiter", ","))
    quote = options.get("quote", '"')
    if len(separator) != 1 or len(quote) != 1:
        return FileHead(file, tuple(text.splitlines()[0].split(separator)) if text else ())
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, quotechar=quote)
        header = next(filter(None, rows), [])  # Spark skips empty lines, too
    except csv.Error as error:
        raise Unreadable(str(error)) from error
    return FileHead(file, tuple(header))


def _json_head(file: LandedFile) -> FileHead:
    """Return the names in the first lines' objects, as far as they can be parsed."""
    text = _first_text(file, "json", "utf-8")
    names = dict.fromkeys(name for line in _first_lines(text) for name in _json_names(line))
    return FileHead(file, tuple(names), is_complete=False)


def _first_lines(text: str) -> list[str]:
    """Return the first lines, or the whole text if it is a document of several lines.

    That text begins with an object's start.
    """
    lines = [line for line in text.split("\n", FIRST_LINES)[:FIRST_LINES] if line.strip()]
    return [text] if lines and not _json_names(lines[0]) else lines


def _json_names(text: str) -> tuple[str, ...]:
    try:
        found, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return ()
    first = found[0] if isinstance(found, list) and found else found
    return tuple(first) if isinstance(first, dict) else ()


def _parquet_head(file: LandedFile) -> FileHead:
    """Return the columns of the footer; '' for the type of one that Spark can't read."""
    parquet = _opened(file, lambda f, path: pq.ParquetFile(f.open_input_file(path)))
    columns = [parquet.schema.column(i) for i in range(len(parquet.schema))]
    of_leaf = {c.path: (c.physical_type, str(c.logical_type)) for c in columns}
    fields = list(parquet.schema_arrow)
    types = (_type(field.type, *of_leaf.get(field.name, ("", ""))) for field in fields)
    return FileHead(file, tuple(f.name for f in fields), tuple(types))


def _opened(file: LandedFile, work: Callable[[FileSystem, Any], Any]) -> Any:
    place = local_path(file.uri)
    try:
        if place is None:
            return work(*FileSystem.from_uri(file.uri))
        return work(LocalFileSystem(), os.fsencode(place))
    except FileNotFoundError as error:
        raise Gone("it went away before it was read") from error
    except _FAULTS as error:
        raise Retryable(f"{file.shown} can't be opened now: {error}") from error
    except (pa.ArrowException, OSError, EOFError, LookupError) as error:
        if is_transient(str(error)):
            raise Retryable(f"{file.shown} can't be read now: {error}") from error
        why = str(error).splitlines()
        raise Unreadable(why[0] if why else type(error).__name__) from error


def _first_text(file: LandedFile, format_: str, encoding: str) -> str:
    """Return its beginning as text.

    Raises Unreadable if its first bytes are of another format, or if it can't be decompressed.
    """
    ending, codec = _compression(file)

    def read(filesystem: FileSystem, path: Any) -> bytes:
        with filesystem.open_input_file(path) as found:
            _check_kind(found.read(_LONGEST), codec or format_, ending)
            found.seek(0)
            if not codec:
                return bytes(found.read(FIRST_BYTES))
            stream = pa.CompressedInputStream(found, codec)
            first = bytes(stream.read(FIRST_BYTES))
            # Only its end shows that it is whole; the search for quotes reads CSV to there.
            while format_ != "csv" and stream.read(FIRST_BYTES):
                pass
            return first

    first = _opened(file, read)
    if first and not first.strip(b"\0"):
        raise Unreadable("it holds nothing but zeros")
    return str(first.decode(encoding, "replace")).lstrip("\ufeff")


def _check_kind(first: bytes, wanted: str, ending: str) -> None:
    kind = next((kind for mark, kind in _KINDS.items() if first.startswith(mark)), wanted)
    if kind != wanted:
        says = f"its name ends with {ending}" if ending else f"its source is {wanted}"
        raise Unreadable(f"it is {kind}, though {says}")


def _compression(file: LandedFile) -> tuple[str, str]:
    """Return the ending by which Spark decompresses it, and the codec; empty texts for none."""
    name = file.uri.lower()  # like Spark, which takes `.GZ` for `.gz`
    return next(((e, c) for e, c in CODECS.items() if name.endswith(e)), ("", ""))


def _quotes(file: LandedFile, options: Mapping[str, str]) -> tuple[bool, bool]:
    """Return whether the file ends inside quotes, and whether text goes on behind quotes."""
    if not options.get("quote", '"'):
        return False, False
    quotes = Quotes.of(options)
    _, codec = _compression(file)

    def read(filesystem: FileSystem, path: Any) -> tuple[bool, bool]:
        with filesystem.open_input_file(path) as found:
            stream = pa.CompressedInputStream(found, codec) if codec else found
            return quotes.faults(stream)

    found: tuple[bool, bool] = _opened(file, read)
    return found


def _type(type_: pa.DataType, physical: str, logical: str) -> str:
    if pa.types.is_timestamp(type_):
        if physical == "INT96":
            return "TIMESTAMP"
        if "nanoseconds" in logical:
            return NANOS
    try:
        return _ddl(type_)
    except KeyError:
        return ""


def _ddl(type_: pa.DataType) -> str:
    """Return the type as Spark's DDL. Raises KeyError for a type that Spark does not have."""
    if pa.types.is_dictionary(type_):
        return _ddl(type_.value_type)
    if pa.types.is_nested(type_):
        return _nested(type_)
    if pa.types.is_decimal(type_) and type_.precision <= MAX_PRECISION:
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if pa.types.is_timestamp(type_) and type_.unit != "ns":
        return "TIMESTAMP" if type_.tz else "TIMESTAMP_NTZ"
    return _PLAIN[str(type_)]


def _nested(type_: pa.DataType) -> str:
    if pa.types.is_map(type_):
        return f"MAP<{_ddl(type_.key_type)}, {_ddl(type_.item_type)}>"
    if pa.types.is_struct(type_):
        return f"STRUCT<{', '.join(f'`{f.name}`: {_ddl(f.type)}' for f in type_)}>"
    return f"ARRAY<{_ddl(type_.value_type)}>"


_PLAIN = {
    "null": VOID,
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "uint8": "SMALLINT",
    "uint16": "INT",
    "uint32": "BIGINT",
    "uint64": "DECIMAL(20, 0)",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "large_string": "STRING",
    "string_view": "STRING",
    "binary": "BINARY",
    "large_binary": "BINARY",
    "date32[day]": "DATE",
    "date64[ms]": "DATE",
}
