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

from sluice.delta.places.delta_rs import located
from sluice.delta.places.faults import store_fault
from sluice.delta.places.landed_files import LandedFile, local_path
from sluice.engine.retries import is_transient
from sluice.errors import Retryable
from sluice.files.csv_quotes import Faults, Quotes
from sluice.files.magic_numbers import LONGEST, is_text, kind_of
from sluice.files.parquet_types import stored_type
from sluice.spark.paths import CODECS, spark_paths

FIRST_BYTES = 1_000_000
FIRST_LINES = 100
MIXED = "its first line ends with a carriage return alone, others do not"
T = TypeVar("T", bound=Hashable)
_FAULTS = (PermissionError, ConnectionError, TimeoutError)


class Unreadable(Exception):
    """Raised if the file does not have the declared format."""


class Gone(Unreadable):
    """Raised if the file was listed, but is missing now."""


@dataclass(frozen=True)
class FileHead:
    """Column names of a file; for Parquet also their types, as Spark writes or calls them.

    `is_complete`: the file has no further names. `line_end` of a CSV: a line feed, with or without
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
        """True if it has no header either."""
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
        return _json_head(file, options)
    _first_text(file, format_, "utf-8")
    return FileHead(file, (), is_complete=False)


def content(file: LandedFile) -> bytes:
    """Return a file's content, decompressed. Raises Unreadable or Retryable."""
    _, codec = _compression(file)

    def read(filesystem: FileSystem, path: Any) -> bytes:
        with filesystem.open_input_file(path) as found:
            stream = pa.CompressedInputStream(found, codec) if codec else found
            return bytes(stream.read())

    return bytes(opened(file, read))


def _csv_head(file: LandedFile, options: Mapping[str, str]) -> FileHead:
    """Return the names, if there is a header, and how the lines and the quotes end."""
    text = _first_text(file, "csv", _encoding(options))
    end = "\r" if "\r" in text and "\n" not in text else "\n"
    has_header = options.get("header", "true").lower() == "true"
    found = FileHead(file, (), is_complete=not text)
    if has_header:
        found = _header(file, _behind_comments(text, options.get("comment", ""), end), options)
    _check_line_ends(text)
    faults = _quotes(file, options, end)
    if faults.is_mixed:
        raise Unreadable(MIXED)
    if faults.lost_in:
        raise Unreadable(
            f"control characters at quotes would be lost, first in line {faults.lost_in}"
        )
    separator = options.get("sep", options.get("delimiter", ","))
    if faults.has_odd and len(separator) > 1:  # Spark's parser misreads the rest there
        raise Unreadable("a value continues after its closing quote")
    return replace(found, line_end=end, is_cut=faults.is_cut, has_odd_quotes=faults.has_odd)


def _encoding(options: Mapping[str, str]) -> str:
    return options.get("encoding", options.get("charset", "utf-8"))


def _behind_comments(text: str, mark: str, end: str) -> str:
    """Return the text from its header on: Spark skips empty lines and comments before it."""
    if not mark:
        return text
    skipped = re.match(rf"(?:{re.escape(mark)}[^{end}]*(?:{end}|\Z)|\r?{end})*", text)
    return text[skipped.end() :] if skipped else text


def _check_line_ends(text: str) -> None:
    first = re.search(r"\r\n|\r|\n", text)
    if first and first[0] == "\r" and "\n" in text:
        raise Unreadable(MIXED)
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


def _json_head(file: LandedFile, options: Mapping[str, str]) -> FileHead:
    """Return the names in the first lines' objects, as far as they can be parsed."""
    text = _first_text(file, "json", _encoding(options))
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
    parquet = opened(file, lambda f, path: pq.ParquetFile(f.open_input_file(path)))
    columns = [parquet.schema.column(i) for i in range(len(parquet.schema))]
    of_leaf = {c.path: (c.physical_type, str(c.logical_type)) for c in columns}
    fields = list(parquet.schema_arrow)
    types = (stored_type(field.type, *of_leaf.get(field.name, ("", ""))) for field in fields)
    return FileHead(file, tuple(f.name for f in fields), tuple(types))


def opened(file: LandedFile, work: Callable[[FileSystem, Any], Any]) -> Any:
    """Return what `work` makes of a file. Raises Unreadable, or Retryable if that may pass."""
    place = local_path(file.uri)
    try:
        if place is None:
            return work(*located(file.uri))
        return work(LocalFileSystem(), os.fsencode(place))
    except FileNotFoundError as error:
        raise Gone("it disappeared before it was read") from error
    except (pa.ArrowException, OSError, EOFError, LookupError, UnicodeError) as error:
        if place is None and (fault := store_fault(error)):
            raise fault from error
        if isinstance(error, _FAULTS) or is_transient(str(error)):
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
            kind = kind_of(found.read(LONGEST), encoding)
            if codec and kind not in ("", codec):
                raise Unreadable(f"it is {kind}, though its name ends with {ending}")
            found.seek(0)
            if not codec:
                return bytes(found.read(FIRST_BYTES))
            stream = pa.CompressedInputStream(found, codec)
            first = bytes(stream.read(FIRST_BYTES))
            # Only its end shows that it is complete; for CSV, the quote search reads to the end.
            while format_ != "csv" and stream.read(FIRST_BYTES):
                pass
            return first

    first = opened(file, read)
    if kind := kind_of(first, encoding):
        holds = f"holds {kind} within {codec}" if codec else f"is {kind}"
        raise Unreadable(f"it {holds}, though its source is {format_}")
    if first and not first.strip(b"\0"):
        raise Unreadable("it holds nothing but zeros")
    text = str(first.decode(encoding, "replace")).lstrip("\ufeff")
    if not is_text(text):
        raise Unreadable("it is not text")
    return text


def _compression(file: LandedFile) -> tuple[str, str]:
    """Return the ending by which Spark decompresses it, and the codec; empty texts for none."""
    name = file.uri.lower()  # like Spark, which takes `.GZ` for `.gz`
    return next(((e, c) for e, c in CODECS.items() if name.endswith(e)), ("", ""))


def _quotes(file: LandedFile, options: Mapping[str, str], line_end: str) -> Faults:
    """Return the faults of the file's quotes."""
    if not options.get("quote", '"'):
        return Faults()
    quotes = Quotes.of(options, line_end)
    _, codec = _compression(file)

    def read(filesystem: FileSystem, path: Any) -> Faults:
        with filesystem.open_input_file(path) as found:
            stream = pa.CompressedInputStream(found, codec) if codec else found
            return quotes.faults(stream)

    found: Faults = opened(file, read)
    return found
