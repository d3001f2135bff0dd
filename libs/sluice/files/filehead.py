"""Names and types of a file's columns, read here so that Spark needs no job to find them.

A file delivered as text is reported as a whole, not line by line, if its first bytes are those of
another format. A CSV file is searched whole for faults of its quotes, at the speed of a regular
expression: a quote that is never closed, or text after a closing one. Spark's parser cuts such a
value, or keeps its quotes. It drops control characters after a closing quote, and null characters
inside quotes.
"""

import codecs
import csv
import io
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Self, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem, LocalFileSystem

from sluice.delta.places.delta_rs import locate, store_fault
from sluice.delta.places.folders import LandedFile, local_path
from sluice.engine.retries import is_transient
from sluice.errors import Retryable
from sluice.files.conversion import stored_type
from sluice.spark.paths import CODECS, spark_path

LONGEST = 600  # bytes that show a format
_BEGINS = {
    "gzip": rb"\x1f\x8b",
    "bz2": rb"BZh[1-9](1AY&SY|\x17rE8P\x90)",
    "zstd": rb"\x28\xb5\x2f\xfd",
    "lz4": rb"\x04\x22\x4d\x18",
    "xz": rb"\xfd7zXZ\0",
    "a ZIP archive": rb"PK(\x03\x04|\x05\x06|\x07\x08)",
    "a 7z archive": rb"7z\xbc\xaf\x27\x1c",
    "a RAR archive": rb"Rar!\x1a\x07",
    "a tar archive": rb".{257}ustar",
    "Parquet": rb"PAR1[^\s -~]",
    "Avro": rb"Obj\x01",
    "ORC": rb"ORC[^\s -~]",
    "Arrow": rb"ARROW1\0",
    "SQLite": rb"SQLite format 3\0",
    "PDF": rb"%PDF-",
    "a document of an old Office": rb"\xd0\xcf\x11\xe0",
    "an image": rb"\x89PNG\r\n|\xff\xd8\xff|GIF8[79]a",
    "a program": rb"\x7fELF",
}
_KINDS = {kind: re.compile(begin, re.DOTALL) for kind, begin in _BEGINS.items()}
_UTF_16 = re.compile(rb"\xff\xfe|\xfe\xff")  # also how UTF-32 begins
_ODD = re.compile("[\x01-\x08\x0e-\x1f\x7f-\x9f\ufffd]")
_LOOKED_AT = 1000  # characters


def kind_of(first: bytes, encoding: str) -> str:
    """Return the format that begins with these bytes; '' for unknown ones."""
    kind = next((kind for kind, begin in _KINDS.items() if begin.match(first)), "")
    if not kind and _UTF_16.match(first) and not encoding.upper().startswith(("UTF-16", "UTF-32")):
        return "text in UTF-16"
    return kind


def is_text(text: str) -> bool:
    """False if it begins with zeros among other bytes that no text has."""
    begin = text[:_LOOKED_AT]
    return "\0" not in begin or len(_ODD.findall(begin)) * 10 <= len(begin)


CHUNK = 1 << 22
BLANK = r"[\x00-\x20]"  # dropped by Spark's parser after a closing quote


@dataclass(frozen=True)
class Faults:
    """`is_cut`: the file ends inside quotes; `has_odd`: something follows a closing quote.

    `is_mixed`: a line feed occurs in a file whose lines end with bare carriage returns. `lost_in`:
    the line of the first value whose control characters would be dropped; 0 for none.
    """

    is_cut: bool = False
    has_odd: bool = False
    is_mixed: bool = False
    lost_in: int = 0


@dataclass(frozen=True)
class Quotes:
    """Patterns for the rest of a quoted text, and for whole ones with what is between them.

    `strict` is `outside` with only spaces between a closing quote and a separator, `kept` is
    `outside` without dropped characters. `closed` and `lost` follow a quote that closes so.

    A quote within a text that does not begin with one is an ordinary character, and so is one in a
    comment.
    """

    options: Mapping[str, str]
    line_end: str
    inside: re.Pattern[str]
    outside: re.Pattern[str]
    strict: re.Pattern[str]
    kept: re.Pattern[str]
    closed: re.Pattern[str]
    lost: re.Pattern[str]

    @classmethod
    def of(cls, options: Mapping[str, str], line_end: str = "\n") -> Self:
        quote, escape = options.get("quote", '"'), options.get("escape", '"') or "\0"
        q, e, s = (re.escape(c) for c in (quote, escape, separator_of(options)))
        # After several characters, Spark's parser doubles a quote at the end of a file.
        last = r"(?!\Z)" if len(separator_of(options)) > 1 else ""
        pair = f"{q}{q}" if e == q else f"{e}."
        body = f"[^{q}{e}]*+(?:{pair}[^{q}{e}]*+)*+"
        begins, goes_on = rf"(?:(?<={line_end})|(?<={s}))", rf"(?<!{line_end})(?<!{s})"
        end = r"\r*\n|\r*\Z" if line_end == "\n" else r"\r|\Z"
        closed = rf"(?=[ \t]*(?:{end}|{s}))"
        lost = rf"(?!{closed})(?={BLANK}*?(?:{end}|{s}))"
        other, comment = _comment(options.get("comment", ""), line_end)
        whole = body.replace("]*+", r"\0]*+").replace(f"{e}.", rf"{e}[^\0]")
        outside, strict, kept = (
            f"(?:[^{q}{other}]++{comment}|{begins}{q}{inside}{q}{then}|{goes_on}{q}{last})*+"
            for inside, then in ((body, ""), (body, closed), (whole, f"(?!{lost})"))
        )
        patterns = (rf"{body}({q})?", outside, strict, kept, closed, lost)
        return cls(options, line_end, *(re.compile(p, re.DOTALL) for p in patterns))

    def faults(self, stream: BinaryIO) -> Faults:
        """Return the faults of a file's quotes."""
        found, last, line = Faults(), self.line_end, 1
        longest = len(separator_of(self.options))
        for chunk in self._chunks(stream):
            whole = last + chunk
            here = self._go_on(whole, len(last), is_inside=found.is_cut)
            lost_in = found.lost_in or (here.lost_in and line + here.lost_in - 1)
            is_mixed = found.is_mixed or (self.line_end == "\r" and "\n" in chunk)
            found = Faults(here.is_cut, found.has_odd or here.has_odd, is_mixed, lost_in)
            line += chunk.count(self.line_end)
            last = whole[-longest:]
        return found

    def _go_on(self, text: str, start: int, *, is_inside: bool) -> Faults:
        """Return the faults of `text` from `start`; its lines are counted from there."""
        if not is_inside and text.find(self.options.get("quote", '"'), start) < 0:
            return Faults()
        at, is_odd, lost_at = start, False, -1
        if is_inside:
            found = self.inside.match(text, at)
            at = found.end() if found and found[1] else len(text)
            lost_at = text.find("\0", start, at)
            if not (found and found[1]):
                return Faults(True, lost_in=self._line(text, start, lost_at))
            is_odd = self.closed.match(text, at) is None
            lost_at = at if lost_at < 0 and self.lost.match(text, at) else lost_at
        strict = _end(self.strict, text, at)
        end = _end(self.outside, text, strict)
        if lost_at < 0 and (end > strict or "\0" in text):
            kept = _end(self.kept, text, at)
            lost_at = kept if kept < end or "\0" in text[end:] else -1
        lost_in = self._line(text, start, lost_at)
        return Faults(end < len(text), is_odd or end > strict, lost_in=lost_in)

    def _line(self, text: str, start: int, at: int) -> int:
        return text.count(self.line_end, start, at) + 1 if at >= 0 else 0

    def _chunks(self, stream: BinaryIO) -> Iterator[str]:
        """Yield parts that end in no quote or space, so a quote stays with its next character.

        If there are comments, a text ends where a line ends.
        """
        options = self.options
        decoder = codecs.getincrementaldecoder(_encoding(options))("replace")
        quotes = options.get("quote", '"') + options.get("escape", '"') + separator_of(options)
        odd = "".join(map(chr, range(33))) + quotes + "\\"
        held, is_first = "", True
        while data := stream.read(CHUNK):
            text = held + decoder.decode(data)
            if is_first and text:
                text, is_first = text.removeprefix("\ufeff"), False
            ends = text.rfind(self.line_end) + 1
            kept = text[:ends] if options.get("comment") else text.rstrip(odd)
            held = text[len(kept) :]
            yield kept
        yield held


def separator_of(options: Mapping[str, str]) -> str:
    """Return what separates the cells of a line."""
    return options.get("sep", options.get("delimiter", ","))


def _comment(mark: str, line_end: str) -> tuple[str, str]:
    """Return the characters that may begin a comment, and alternatives that match one."""
    if not mark:
        return "", ""
    c = re.escape(mark)
    return c, f"|(?<={line_end}){c}[^{line_end}]*+|(?<!{line_end}){c}"


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


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


def group_heads(heads: Iterable[FileHead], by: Callable[[FileHead], T]) -> dict[T, list[FileHead]]:
    """Return the files in groups that are read together."""
    groups: dict[T, list[FileHead]] = defaultdict(list)
    for found in heads:
        groups[by(found)].append(found)
    return groups


def uris(heads: Iterable[FileHead]) -> list[str]:
    """Return the files' paths for Spark."""
    return [spark_path(head.file.uri) for head in heads]


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

    return bytes(open_file(file, read))


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
    if faults.has_odd and len(separator_of(options)) > 1:  # Spark's parser misreads the rest there
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
    separator, quote = separator_of(options), options.get("quote", '"')
    if len(separator) != 1 or len(quote) != 1:
        return FileHead(file, tuple(text.splitlines()[0].split(separator)) if text else ())
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, quotechar=quote)
        header = next(filter(None, rows), [])  # Spark skips empty lines, too
    except csv.Error as error:
        raise Unreadable(str(error)) from error
    return FileHead(file, tuple(header))


def _json_head(file: LandedFile, options: Mapping[str, str]) -> FileHead:
    text = _first_text(file, "json", _encoding(options))
    lines = [line for line in text.split("\n", FIRST_LINES)[:FIRST_LINES] if line.strip()]
    if lines and not _json_names(lines[0]):  # a document of several lines
        lines = [text]
    names = dict.fromkeys(name for line in lines for name in _json_names(line))
    return FileHead(file, tuple(names), is_complete=False)


def _json_names(text: str) -> tuple[str, ...]:
    try:
        found, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return ()
    first = found[0] if isinstance(found, list) and found else found
    return tuple(first) if isinstance(first, dict) else ()


def _parquet_head(file: LandedFile) -> FileHead:
    """Return the columns of the footer; '' for the type of one that Spark can't read."""
    parquet = open_file(file, lambda f, path: pq.ParquetFile(f.open_input_file(path)))
    columns = [parquet.schema.column(i) for i in range(len(parquet.schema))]
    of_leaf = {c.path: (c.physical_type, str(c.logical_type)) for c in columns}
    fields = list(parquet.schema_arrow)
    types = (stored_type(field.type, *of_leaf.get(field.name, ("", ""))) for field in fields)
    return FileHead(file, tuple(f.name for f in fields), tuple(types))


def open_file(file: LandedFile, work: Callable[[FileSystem, Any], Any]) -> Any:
    """Return what `work` makes of a file. Raises Unreadable, or Retryable if that may pass."""
    place = local_path(file.uri)
    try:
        if place is None:
            return work(*locate(file.uri))
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

    first = open_file(file, read)
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

    found: Faults = open_file(file, read)
    return found
